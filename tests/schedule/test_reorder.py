"""reorder: the loops of a nest in another order."""

from __future__ import annotations

from itertools import permutations

import pytest

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def copy(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
    for i, j in T.grid(4, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_reorder():
    sch = tir.Schedule(copy)
    i, j = sch.get_loops("B")
    sch.reorder(j, i)

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for j, i in T.grid(5, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    check(sch, copy, expected)
    assert [loop.var for loop in sch.get_loops("B")] == [j.var, i.var]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_reorder_matmul_every_way(order):
    func = matmul(2, 3, 4)
    sch = tir.Schedule(func)
    loops = sch.get_loops("C")
    sch.reorder(*[loops[position] for position in order])
    assert [loop.name for loop in sch.get_loops("C")] == ["ijk"[position] for position in order]
    check(sch, func)


def test_reorder_leaves_unnamed_loops_in_place():
    func = matmul(2, 3, 4)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i)
    assert [loop.name for loop in sch.get_loops("C")] == ["k", "j", "i"]
    check(sch, func)


def test_reorder_a_guarded_tile():
    func = matmul(5, 7, 3)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 2])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    check(sch, func)


def test_reorder_refuses_a_recurrence():
    @T.prim_func
    def func(A: T.Buffer((5, 5))):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1] + 1.0

    sch = tir.Schedule(func)
    i, j = sch.get_loops("A")
    error = refused(sch, WouldChangeValues, "reorder would change a value", "reorder", j, i)
    assert error.why


def test_reorder_accepts_a_recurrence_along_one_loop():
    @T.prim_func
    def func(A: T.Buffer((5, 4))):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj] + 1.0

    sch = tir.Schedule(func)
    i, j = sch.get_loops("A")
    sch.reorder(j, i)
    check(sch, func)


def test_reorder_refuses():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, BadStepArgument, "a loop is named twice among i, j, i", "reorder", i, j, i)
    refused(sch, BadStepArgument, "no loops are given", "reorder")


def test_reorder_refuses_loops_of_two_nests_and_statements_between(with_suggestions):
    @T.prim_func
    def func(A: T.Buffer((4, 5)), B: T.Buffer((4, 5)), C: T.Buffer(4)):
        for i in range(4):
            for j in range(5):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi, 0]
        for k in range(4):
            with T.block("D"):
                vk = T.axis.spatial(4, k)
                C[vk] = C[vk] + 1.0

    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    (k,) = sch.get_loops("D")
    refused(sch, NotSupported, "loop k is not in one nest with the others", "reorder", j, i, k)
    error = refused(sch, NotSupported, "there are other statements between the loops", "reorder", j, i)
    assert "fission" in str(error)
    sch.fission(i)
    sch.reorder(j, i)
    check(sch, func)


def test_reorder_refuses_a_triangle():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        for i in range(4):
            for j in range(i + 1):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    refused(sch, NotSupported, "the bounds of loop j depend on a loop that would be inside it", "reorder", j, i)
