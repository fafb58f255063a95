"""vectorize: iterations as lanes in lockstep."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.schedule.errors import NotSupported, WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def test_text():
    sch = tir.Schedule(copy)
    sch.vectorize(sch.get_loops("B")[0])

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 7, 16])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_number_of_lanes(n, dtype):
    A = te.placeholder((n,), name="A", dtype=dtype)
    B = te.compute((n,), lambda i: A[i] + A[i], name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    sch.vectorize(sch.get_loops("B")[0])
    a, b = np.arange(n).astype(dtype), np.zeros(n, dtype)
    lw.build(sch.mod)(a, b)
    np.testing.assert_array_equal(b, a + a)


def test_lockstep_is_enough():
    @T.prim_func
    def shift(A: T.Buffer(9)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi + 1]

    sch = tir.Schedule(shift)
    sch.vectorize(sch.get_loops("A")[0])
    check(sch, shift)


def test_a_recurrence():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    sch = tir.Schedule(func)
    refused(sch, WouldRace, "vectorize: loop i", "vectorize", sch.get_loops("A")[0])


def test_data_loops_of_a_reduction():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, WouldRace, "vectorize: loop k", "vectorize", k)
    sch.parallel(i)
    sch.vectorize(j)
    check(sch, matmul())


def test_a_symbolic_extent():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    sch = tir.Schedule(func)
    refused(sch, NotSupported, "a vector has a constant number of lanes", "vectorize", sch.get_loops("B")[0])


def test_not_around_threads():
    sch = tir.Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    sch.parallel(j)
    refused(sch, NotSupported, "loop j runs on threads inside the vectorized loop i", "vectorize", i)


def test_a_loop_that_begins_elsewhere_in_each_lane_does_not_tell_the_time():
    """In lockstep the k-th iterations of j run together, whatever j is: the lanes update one cell at the same time."""

    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((4,), "int32")):
        for i in T.serial(1, 3):
            for j in T.serial(i, i + 3):
                with T.block("B"):
                    v0 = T.axis.opaque(4, j - i)
                    v1 = T.axis.opaque(8, j)
                    B[v0] = B[v0] + A[v1]

    sch = tir.Schedule(main)
    with pytest.raises(WouldRace, match=r"iterations i = 1 and i = 2 of the vectorized loop i both touch B\[0\]"):
        sch.vectorize(sch.get_loops("B")[0])
