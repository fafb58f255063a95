"""cache_index: index arithmetic is done once, before the block, and looked up in it."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, matmul, refused


def resized(n: int = 8):
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i * 3 // 4, j] + A[i * 3 // 4, n - 1 - j], name="B")
    return te.create_prim_func([A, B])


def test_indices_are_looked_up():
    before = resized()
    sch = tir.Schedule(before)
    made = sch.cache_index("B", "global", 1)
    assert [sch.get(block).name_hint for block in made] == ["index_0"]

    @T.prim_func
    def expected(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        T.func_attr({"tir.noalias": True})
        index_var_0 = T.alloc_buffer((8,), "int32")
        for ax0 in range(8):
            with T.block("index_0"):
                v0 = T.axis.spatial(8, ax0)
                T.reads()
                T.writes(index_var_0[v0])
                index_var_0[v0] = v0 * 3 // 4
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[0:8, 0:8], index_var_0[vi])
                T.writes(B[vi, vj])
                B[vi, vj] = A[index_var_0[vi], vj] + A[index_var_0[vi], 7 - vj]

    check(sch, before, expected)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.parametrize(("n", "count"), [(1, 2), (2, 1), (5, 2)])
def test_all_of_them(n, count):
    before = resized(n)
    sch = tir.Schedule(before)
    assert len(sch.cache_index("B", "global")) == count
    check(sch, before)


def test_it_runs_natively():
    before = resized()
    sch = tir.Schedule(before)
    sch.cache_index("B", "global")
    A = np.arange(64, dtype="float32").reshape(8, 8)
    one, other = np.zeros_like(A), np.zeros_like(A)
    loopwright.build(before)(A, one)
    loopwright.build(sch.mod)(A, other)
    np.testing.assert_array_equal(one, other)


def test_nothing_to_look_up_is_no_error():
    before = matmul()
    sch = tir.Schedule(before)
    assert sch.cache_index("C", "global") == []
    assert sch.mod["main"] is not None and len(sch.get_loops("C")) == 3
    check(sch, before, before)


def test_what_is_refused():
    sch = tir.Schedule(resized())
    refused(sch, BadStepArgument, "cse_thresh is -1", "cache_index", "B", "global", -1)
    refused(sch, BadStepArgument, "no memory scope 'x'", "cache_index", "B", "x")


def test_axes_that_start_below_zero():
    @T.prim_func
    def shifted(A: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
        for i in T.serial(-2, 6):
            with T.block("Y"):
                v = T.axis.spatial((-2, 6), i)
                Y[v + 2] = A[T.min(T.max(v, 0), 7)] + 1

    sch = tir.Schedule(shifted)
    sch.cache_index("Y", "global")
    assert_same_numbers(shifted, sch.mod["main"])


def test_looked_up_indices_in_a_vectorized_loop_that_prefetches():
    @T.prim_func
    def before(B0: T.Buffer((2, 4), "int32"), B1: T.Buffer((3, 4), "int32")):
        for i, j in T.grid(3, 4):
            with T.block("B1"):
                vi, vj = T.axis.remap("SS", [i, j])
                B1[vi, vj] = B0[vi // 2, vj] * 2

    sch = tir.Schedule(before)
    inner = sch.get_loops("B1")[1]
    sch.vectorize(inner)
    sch.prefetch("B1", inner, 1, 2)
    sch.cache_index("B1", "global", 0)
    given, out = np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros((3, 4), np.int32)
    loopwright.build(sch.mod)(given, out)
    np.testing.assert_array_equal(out, given[[0, 0, 1]] * 2)
