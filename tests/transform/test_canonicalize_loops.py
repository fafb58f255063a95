"""canonicalize_loops: loops count from 0, unit loops go."""

from __future__ import annotations

import pytest

from loopwright.ir import BufferStore, For, ForKind, IterType, IterVar, PrimFunc, Range, Var, const, decl_buffer
from loopwright.script import tir as T
from loopwright.transform import PassContext, ThreadLoopOnCpu, canonicalize_loops
from tests.transform.before_after import (
    check,
    same_at_every_stage,
    same_native,
    same_program,
    same_results,
    unchanged,
)


def test_loops_start_at_zero():
    @T.prim_func
    def before(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i in range(2, 10):
            B[i] = A[i - 2]

    @T.prim_func
    def after(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i in range(8):
            B[i + 2] = A[i + 2 - 2]

    check(canonicalize_loops, before, after)


def test_unit_loops_become_their_value():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(1):
            for j in T.vectorized(1):
                for k in range(3, 4):
                    B[i * 4 + j + k] = A[k + i]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        B[3] = A[3]

    check(canonicalize_loops, before, after)


def test_a_bound_of_a_unit_loop_reaches_inner_bounds():
    @T.prim_func
    def before(B: T.Buffer((8,))):
        for i in range(2, 3):
            for j in range(i, i + 4):
                B[j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((8,))):
        for j in range(4):
            B[j + 2] = T.float32(1)

    check(canonicalize_loops, before, after)


def test_annotated_unit_loops_stay():
    @T.prim_func
    def func(B: T.Buffer((8,))):
        for i in T.serial(1, annotations={"pragma_keep": 1}):
            B[i] = T.float32(1)

    unchanged(canonicalize_loops, func)


def test_unit_loops_may_be_kept_for_debugging():
    @T.prim_func
    def func(B: T.Buffer((8,))):
        for i in range(1):
            B[i] = T.float32(1)

    with PassContext(config={"tir.debug_keep_trivial_loop": True}):
        unchanged(canonicalize_loops, func)


def test_variable_and_bounds_get_one_type():
    B = decl_buffer((8,), name="B")
    i = Var("i", "int32")
    func = PrimFunc([B], For(i, 0, const(8, "int64"), ForKind.SERIAL, BufferStore(B, 1.0, [i])))
    loop = canonicalize_loops(func).body
    assert (loop.loop_var.dtype, loop.min.dtype, loop.extent.dtype) == ("int64", "int64", "int64")


def thread_loop(extent: int) -> PrimFunc:
    B = decl_buffer((8,), name="B")
    i = Var("i")
    axis = IterVar(Range(0, extent), "tx", IterType.ThreadIndex, "threadIdx.x")
    return PrimFunc([B], For(i, 0, extent, ForKind.THREAD_BINDING, BufferStore(B, 1.0, [i]), axis))


def test_a_thread_loop_is_refused_on_a_cpu():
    with pytest.raises(ThreadLoopOnCpu, match=r"loop i of extent 8 is bound to threadIdx.x, which a CPU does not have"):
        canonicalize_loops(thread_loop(8))


def test_a_thread_loop_of_one_iteration_is_none():
    B = decl_buffer((8,), name="B")
    same_program(canonicalize_loops(thread_loop(1)), PrimFunc([B], BufferStore(B, 1.0, [0])))


def test_bounds_that_read_memory_are_read_once():
    @T.prim_func
    def before(t: T.Buffer((2,), "int32"), B: T.Buffer((8,), "int32")):
        t[0] = 2
        t[1] = 5
        for i in range(t[0], t[0] + t[1]):
            t[0] = 0
            B[i] = 7

    @T.prim_func
    def after(t: T.Buffer((2,), "int32"), B: T.Buffer((8,), "int32")):
        t[0] = 2
        t[1] = 5
        i_min: T.int32 = t[0]
        i_extent: T.int32 = t[1]
        for i in range(i_extent):
            t[0] = 0
            B[i + i_min] = 7

    check(canonicalize_loops, before, after)
    same_native(before, canonicalize_loops(before))


def test_a_unit_loop_reads_its_start_once():
    @T.prim_func
    def before(t: T.Buffer((2,), "int32"), B: T.Buffer((8,), "int32")):
        t[0] = 5
        for i in T.serial(t[0], t[0] + 1):
            t[0] = 2
            B[i] = 77

    got = canonicalize_loops(before)
    same_results(before, got)
    same_native(before, got)
    same_at_every_stage(before)
