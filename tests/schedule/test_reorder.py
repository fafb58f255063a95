"""reorder: the loops of a nest in another order."""

from __future__ import annotations

import re
from itertools import permutations

import pytest

from loopwright import tir
from loopwright.ir import PrimFunc
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.script import from_source
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


def updated(update: str, start: str = "C[vi] = 0") -> PrimFunc:
    """A block over a data axis and two reduction axes; a is A[vi, vj, vk], c is C[vi]."""
    update = re.sub(r"\ba\b", "A[vi, vj, vk]", re.sub(r"\bc\b", "C[vi]", update))
    newline = "\n                "
    function = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((2, 3, 4), "int32"), I: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):
    for i, j, k in T.grid(2, 3, 4):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                {start.replace("; ", newline)}
"""
        + "".join([f"            {line}\n" for line in update.split(";")])
    )
    assert isinstance(function, PrimFunc)
    return function


@pytest.mark.parametrize(
    "update",
    [
        "c = c * 2 + a",
        "c = a - c",
        "c = T.Select(a > 0, a, c)",
        "c = T.Select(c < 9, c + a, c)",
        "c = c + a + c",
        "x: T.int32 = c * 2;c = x + a",
        "c = T.min(T.max(c + a, -8), 7)",
    ],
)
def test_updates_that_do_not_commute_keep_their_order(update):
    """A reduction axis says nothing about the order: the update does."""
    func = updated(update)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    why = r"iteration \(vi=0, vj=0, vk=1\) of C reads C\[0\] after iteration \(vi=0, vj=2, vk=0\) of C has overwritten"
    error = refused(sch, WouldChangeValues, why, "reorder", k, j)
    assert "hint: block C runs over a reduction axis, but its updates of C do not commute" in str(error)
    sch.reorder(j, k, i)  # each cell is updated in the same order as before
    check(sch, func)


@pytest.mark.parametrize(
    "update",
    [
        "c = c - a",
        "c = a + (c + 3)",
        "c = c + c * a",
        "c = T.Select(a > 0, c + a, c)",
        "c = T.Select(a > c, a, c)",
        "c = T.bitwise_xor(c, a)",
        "x: T.int32 = a * 2;c = x + c",
    ],
)
def test_updates_that_commute_go_in_any_order(update):
    func = updated(update)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    assert sch.history()[-1].proof == "lemma"
    check(sch, func)


@pytest.mark.parametrize("keeps", ["c >= a", "c > a", "not (c < a)"])
def test_which_of_equal_values_an_argmax_names_stays_the_same(keeps):
    func = updated(
        f"x: T.int32 = T.Select({keeps}, I[vi], vj * 4 + vk);y: T.int32 = T.Select({keeps}, c, a);I[vi] = x;c = y",
        "I[vi] = -1; C[vi] = -9",
    )
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    refused(sch, WouldChangeValues, r"reads I\[0\] after iteration .* of C has overwritten", "reorder", k, j)
    sch.reorder(j, k, i)
    check(sch, func)


def test_an_argmax_that_breaks_ties_by_the_index_goes_in_any_order():
    keeps = "c > a or (c == a and I[vi] < vj * 4 + vk)"
    func = updated(f"I[vi] = T.Select({keeps}, I[vi], vj * 4 + vk);c = T.max(c, a)", "I[vi] = -1; C[vi] = -9")
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, j)
    assert sch.history()[-1].proof == "lemma"
    check(sch, func)


@pytest.mark.parametrize(
    ("update", "start"),
    [
        (
            "I[vi] = T.Select(c > a or (c == a and I[vi] < vj * 4 + vk), I[vi], vj * 4 + vk);c = T.max(c, a)",
            "I[vi] = -1; C[vi] = -9",
        ),
        ("c = T.if_then_else(a > 0 and c < a, a, c)", "C[vi] = 0"),
        ("c = T.Select(a > 0 and c < a, a, c)", "C[vi] = 0"),
        ("c = T.if_then_else(a < 0, c, T.max(c, a))", "C[vi] = 0"),
    ],
)
def test_loads_of_the_cell_that_data_decides_about(update, start):
    """The exact test, which looks again at what the lemma accepts, knows such an update for a reduction as well."""
    func = updated(update, start)
    sch = tir.Schedule(func, debug_mask="all")
    i, j, k = sch.get_loops("C")
    sch.reorder(k, j)
    check(sch, func)


@pytest.mark.parametrize("update", ["c = T.if_then_else(a > 0, a, c)", "c = T.if_then_else(vj * 4 + vk < 1, a, c + a)"])
def test_loads_that_are_left_out_where_the_order_counts(update):
    sch = tir.Schedule(updated(update))
    _, j, k = sch.get_loops("C")
    refused(sch, WouldChangeValues, r"iteration .* of C", "reorder", k, j)
