"""inject_virtual_thread: virtual threads take turns, statement by statement."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.script import tir as T
from loopwright.transform import canonicalize_loops, inject_virtual_thread
from tests.transform.before_after import same_at_every_stage, same_native, same_program, same_results


def both(func):
    return inject_virtual_thread(canonicalize_loops(func))


def test_loops_are_shared_and_memory_is_not():
    @T.prim_func
    def before(A: T.Buffer((2, 8)), C: T.Buffer((2,))):
        for v in T.thread_binding(2, thread="vthread.x"):
            B = T.decl_buffer((1,))
            for k in range(8):
                B[0] = A[v, k]
                C[v] = C[v] + B[0]

    @T.prim_func
    def after(A: T.Buffer((2, 8)), C: T.Buffer((2,))):
        B = T.decl_buffer((2, 1))
        for k in range(8):
            for v in T.unroll(2):
                B[v, 0] = A[v, k]
            for v in T.unroll(2):
                C[v] = C[v] + B[v, 0]

    same_program(both(before), after)
    same_results(before, after)
    same_at_every_stage(before)
    same_native(before, after)


def test_what_all_store_alike_exists_once():
    """A holds for both threads, B for one each; D is stored by A's tile, which is one."""

    @T.prim_func
    def before(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for v in T.thread_binding(2, thread="vthread"):
            for k in range(8):
                B = T.decl_buffer((4,))
                D = T.decl_buffer((4,))
                for i in range(4):
                    B[i] = A[k, i]
                for i in range(4):
                    D[i] = B[3 - i]
                for i in range(4):
                    C[v, i] = C[v, i] + B[i] * D[i] + T.Cast("float32", v)

    @T.prim_func
    def after(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for k in range(8):
            B = T.decl_buffer((4,))
            D = T.decl_buffer((4,))
            for i in range(4):
                B[i] = A[k, i]
            for i in range(4):
                D[i] = B[3 - i]
            for i in range(4):
                for v in T.unroll(2):
                    C[v, i] = C[v, i] + B[i] * D[i] + T.Cast("float32", v)

    same_program(both(before), after)
    same_results(before, after)
    same_at_every_stage(before)


def test_a_tile_that_vectors_fill_exists_once():
    @T.prim_func
    def before(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for v in T.thread_binding(2, thread="vthread"):
            B = T.decl_buffer((4,))
            for k in range(8):
                for i in T.vectorized(4):
                    B[i] = A[k, i]
                for i in range(4):
                    C[v, i] = C[v, i] + B[i]

    @T.prim_func
    def after(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        B = T.decl_buffer((4,))
        for k in range(8):
            for i in T.vectorized(4):
                B[i] = A[k, i]
            for i in range(4):
                for v in T.unroll(2):
                    C[v, i] = C[v, i] + B[i]

    same_program(both(before), after)
    same_results(before, after)
    same_at_every_stage(before)


def test_a_vector_that_stores_elsewhere_too_is_one_for_each():
    @T.prim_func
    def before(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for v in T.thread_binding(2, thread="vthread"):
            B = T.decl_buffer((4,))
            for k in range(8):
                for i in T.vectorized(4):
                    B[i] = A[k, i]
                    C[v, i] = C[v, i] + A[k, 3 - i]
                for i in range(4):
                    C[v, i] = C[v, i] + B[i]

    got = both(before)
    assert "T.decl_buffer((2, 4))" in got.script()
    same_results(before, got)
    same_at_every_stage(before)


def test_what_only_seems_alike_is_one_for_each():
    @T.prim_func
    def counted(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for v in T.thread_binding(2, thread="vthread"):
            B = T.decl_buffer((4,))
            for i in range(4):
                B[i] = T.float32(0)
            for k in range(8):
                for i in range(4):
                    B[i] = B[i] + A[k, i]  # reads what it stores
            for i in range(4):
                C[v, i] = B[i]

    @T.prim_func
    def one_by_one(A: T.Buffer((8, 4)), C: T.Buffer((2, 4))):
        for v in T.thread_binding(2, thread="vthread"):
            B = T.decl_buffer((4,))
            for i in range(4):
                B[i] = A[0, i]
            for k in range(v + 2):  # runs thread by thread, and stores to B on the way
                for i in range(4):
                    C[v, i] = C[v, i] + B[i]
                for i in range(4):
                    B[i] = A[k, i]

    for before in (counted, one_by_one):
        got = both(before)
        assert "T.decl_buffer((2, 4))" in got.script()
        same_results(before, got)
        same_at_every_stage(before)


def test_a_launch_of_virtual_threads():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        v = T.launch_thread("vthread", 4)
        for k in range(8):
            C[v, k] = A[v, 7 - k]

    got = both(before)
    assert "for k in range(8):\n        for" in got.script() and "T.unroll(4)" in got.script()
    same_results(before, got)
    same_native(before, got)


def test_what_differs_between_threads_runs_thread_by_thread():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8)), n: T.int32):
        for v in T.thread_binding(4, thread="vthread"):
            for k in range(v + 2):
                C[v, k] = A[v, k]
            if v < n:
                C[v, 7] = A[v, 0]
            if n < 3:
                C[v, 6] = A[v, 0]
            else:
                C[v, 6] = A[v, 1]
            with T.LetStmt(A[v, 3]) as x:
                C[v, 5] = x
            with T.LetStmt(n + 1) as m:
                C[v, 4] = T.Cast("float32", m + v)

    got = both(before)
    same_results(before, got)
    same_at_every_stage(before)
    same_native(before, got)


@pytest.mark.parametrize("threads", [1, 2, 17, 65])
def test_any_number_of_threads(threads):
    @T.prim_func
    def before(A: T.Buffer((threads, 3)), C: T.Buffer((threads, 3))):
        for v in T.thread_binding(threads, thread="vthread.y"):
            B = T.decl_buffer((3,))
            for k in range(3):
                B[k] = A[v, k]
            for k in range(3):
                C[v, k] = B[2 - k]

    got = both(before)
    assert "virtual_thread" not in got.script()
    same_results(before, got)
    same_native(before, got)


@pytest.mark.parametrize("tag", ["vthread", "vthread.y", "cthread"])
def test_all_names_of_virtual_threads(tag):
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for v in T.thread_binding(4, thread=tag):
            for k in range(8):
                C[v, k] = A[v, 7 - k]

    same_at_every_stage(before)


def test_threads_after_one_that_returns_do_nothing():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in T.thread_binding(2, thread="vthread.x"):
            for k in range(4):
                C[i * 4 + k] = A[i * 4 + k] + 1
                if i == 0 and k == 1:
                    T.ret(0)

    given, result = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    loopwright.build(func)(given, result)
    assert result.tolist() == [1, 2, 0, 0, 0, 0, 0, 0]


def test_a_launch_of_virtual_threads_takes_turns_too():
    @T.prim_func
    def before(A: T.Buffer((2, 8)), C: T.Buffer((2,))):
        v = T.launch_thread("vthread", 2)
        B = T.decl_buffer((1,))
        for k in range(8):
            B[0] = A[v, k]
            C[v] = C[v] + B[0]

    turned = inject_virtual_thread(before)
    assert [str(extent) for extent in turned.body.extents] == ["2", "1"]
    assert "vthread" not in str(turned).replace("for vthread", "")
    same_results(before, turned)
