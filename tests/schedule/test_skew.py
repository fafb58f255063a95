"""skew: iterations are moved along by a number that depends on an outer loop."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.script import tir as T
from tests.schedule.steps import check, refused


def copied(rows=5, columns=6):
    A = te.placeholder((rows, columns), name="A")
    return te.create_prim_func([A, te.compute((rows, columns), lambda i, j: A[i, j] + 1, name="B")])


@T.prim_func
def smoothed(A: T.Buffer((5, 6))):
    """Each cell needs the ones above and to the left: no loop may run in parallel."""
    for i, j in T.grid(4, 5):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj + 1] = A[vi, vj + 1] + A[vi + 1, vj]


def test_diagonals_become_columns():
    sch = tir.Schedule(smoothed)
    i, j = sch.get_loops("A")
    sch.reorder(sch.skew(j, i, 1), i)

    @T.prim_func
    def expected(A: T.Buffer((5, 6))):
        for j_s, i in T.grid(8, 4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(5, j_s - i)
                T.where(j_s - i >= 0 and j_s - i < 5)
                T.reads(A[vi : vi + 2, vj : vj + 2])
                T.writes(A[vi + 1, vj + 1])
                A[vi + 1, vj + 1] = A[vi, vj + 1] + A[vi + 1, vj]

    check(sch, smoothed, expected)
    sch.parallel(i)  # cells of a column do not need each other
    check(sch, smoothed)


def test_vectors_begin_at_multiples_of_an_address():
    func = copied()
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    outer, lane = sch.split(sch.skew(j, i, 6, 4), [None, 4])
    assert sch.get(outer).extent == 2  # of 6 + 2
    check(sch, func)
    sch.vectorize(lane)
    check(sch, func)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (7, 1), (9, 5), (4, 8)])
@pytest.mark.parametrize(("factor", "modulus"), [(1, None), (3, None), (7, 4), (5, 8), (8, 4), (3, 1)])
def test_sizes(rows, columns, factor, modulus):
    func = copied(rows, columns)
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    moved = sch.skew(j, i, factor, modulus)
    offsets = [row * factor % modulus if modulus else row * factor for row in range(rows)]
    assert sch.get(moved).extent == columns + max(offsets)
    check(sch, func)


def test_open_sizes():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    func = te.create_prim_func([A, te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")])
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    refused(sch, NotSupported, "how often loop i runs is not known", "skew", j, i, 1)
    sch.skew(j, i, 3, 4)
    for shape in ((0, 3), (3, 0), (5, 6)):
        a, b = np.random.default_rng(0).random(shape, np.float32), np.zeros(shape, np.float32)
        evaluate(sch.mod["main"], a, b)
        np.testing.assert_array_equal(b, a + np.float32(1))


@T.prim_func
def far_along(A: T.Buffer((4, 6)), B: T.Buffer((4, 6))):
    for i in T.serial(T.int64(2147483646), T.int64(2147483650)):
        for j in range(6):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(4), i - T.int64(2147483646))
                vj = T.axis.spatial(6, j)
                B[vi, vj] = A[vi, vj] * T.float32(2)


def test_outer_loops_of_64_bits():
    """Their numbers are too large for the type of the inner loop; remainders are not."""
    sch = tir.Schedule(far_along)
    i, j = sch.get_loops("B")
    refused(sch, BadStepArgument, "loop j of type int32 cannot count that far", "skew", j, i, 1)
    sch.skew(j, i, 1, 7)
    check(sch, far_along)


def test_large_numbers_are_refused_at_once():
    A = te.placeholder((1 << 30, 2), "int8", name="A")
    func = te.create_prim_func([A, te.compute((1 << 30, 2), lambda i, j: A[i, j] + A[i, j], name="B")])
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    refused(sch, BadStepArgument, "loop j of type int32 cannot count that far", "skew", j, i, 3, 1 << 29)
    assert sch.get(sch.skew(j, i, 6, 40_000)).extent == 2 + 40_000 - 2  # multiples of 2


def test_a_reduction():
    A, k = te.placeholder((5, 6), name="A"), te.reduce_axis((0, 6), "k")
    func = te.create_prim_func([A, te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="S")])
    sch = tir.Schedule(func)
    i, k = sch.get_loops("S")
    sch.skew(k, i, 1)
    check(sch, func)


def test_what_makes_no_sense():
    sch = tir.Schedule(copied())
    i, j = sch.get_loops("B")
    refused(sch, BadStepArgument, "loop j is not around loop i in its block", "skew", i, j, 1)
    refused(sch, BadStepArgument, "loop j is not around loop j in its block", "skew", j, j, 1)
    for factor in (0, -1, 1.5, True, "2", None):
        refused(sch, BadStepArgument, "factor is", "skew", j, i, factor)
    for modulus in (0, -4, 2.0, True):
        refused(sch, BadStepArgument, "modulus is", "skew", j, i, 1, modulus)
    refused(sch, BadStepArgument, "loop j of type int32 cannot count that far", "skew", j, i, 1 << 30)
    sch.unroll(j)
    refused(sch, NotSupported, "loop j is unrolled: a loop gets its kind last", "skew", j, i, 1)
