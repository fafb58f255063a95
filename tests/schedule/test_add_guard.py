"""add_guard, remove_guard: a block runs only where a condition on its axes holds; or wherever its loops run."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument, WouldChangeValues
from loopwright.schedule.primitives.compute.add_guard import NoGuard
from loopwright.schedule.proof.speculative_runs import FailsInExtraRuns
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


def partly_used(n: int = 10, used: int = 6):
    """Only the first cells of B are read."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((used,), lambda i: B[i] * 2.0, name="C")
    return te.create_prim_func([A, C])


def test_what_nobody_reads_need_not_run():
    before = partly_used()
    sch = tir.Schedule(before)
    sch.add_guard("B", lambda i: i < 6)

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(6)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer((10,))
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.where(i < 6)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + T.float32(1)
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi] * T.float32(2)

    check(sch, before, expected)
    sch.remove_guard("B")
    check(sch, before, before)


@pytest.mark.parametrize(
    "condition",
    ["lambda i: i < 6", "lambda i: 0 <= i < 6", "lambda i: i <= 5 and i >= 0", "lambda i: not i >= 6",
     "lambda i: i < 3 or i < 6", "lambda i: i != 7", "lambda i: i // 2 < 3", "lambda i: i == i"],
)  # fmt: skip
def test_conditions_as_text(condition):
    before = partly_used()
    sch = tir.Schedule(before)
    sch.add_guard("B", condition)
    check(sch, before)


def test_a_value_that_is_missed_is_the_witness():
    sch = tir.Schedule(partly_used())
    error = refused(sch, WouldChangeValues, "add_guard would change a value", "add_guard", "B", lambda i: i < 5)
    assert "(v_i=5) of C reads B[5], but iteration (v_i=5) of B no longer writes it" in error.why
    refused(sch, WouldChangeValues, "add_guard would change a value", "add_guard", "C", lambda i: i < 5)


def test_guards_of_reductions():
    before = matmul(4, 3, 2)
    sch = tir.Schedule(before)
    error = refused(sch, WouldChangeValues, "add_guard would change", "add_guard", "C", lambda i, j, k: k < 1)
    assert "C" in error.why
    sch.add_guard("C", lambda i, j, k: tir.all(i < 4, k < 2))
    check(sch, before)


def test_a_guard_of_a_split_goes_when_the_buffer_has_room():
    before = partly_used(12, 10)
    sch = tir.Schedule(before)
    sch.cache_read("C", 0, "global")
    sch.split(sch.get_loops("C")[0], [None, 4])
    refused(sch, FailsInExtraRuns, r"C\[10\] is outside its shape \(10,\)", "remove_guard", "C")
    sch.cache_write("C", 0, "global")
    refused(sch, FailsInExtraRuns, r"C_global\[10\] is outside", "remove_guard", "C")
    refused(sch, BadStepArgument, "there is no condition 1", "remove_guard", "C", 1)


@T.prim_func
def guarded(A: T.Buffer(12), C: T.Buffer(10)):
    B = T.alloc_buffer((12,))
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            T.where(i < 10 and i >= 0)
            B[vi] = A[vi] + T.float32(1)
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi]


@T.prim_func
def needed(A: T.Buffer(12)):
    for i in range(12):
        with T.block("A"):
            vi = T.axis.spatial(12, i)
            T.where(i < 10)
            A[vi] = A[vi] + T.float32(1)


@pytest.mark.parametrize("index", [None, 0])
def test_extra_runs_that_nobody_sees(index):
    sch = tir.Schedule(guarded)
    sch.remove_guard("B", index)
    check(sch, guarded)


def test_extra_runs_that_are_seen():
    sch = tir.Schedule(needed)
    error = refused(sch, WouldChangeValues, "remove_guard would change a value", "remove_guard", "A")
    assert "A[10]" in error.why


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, NoGuard, "block 'C' has no guard", "remove_guard", "C")
    refused(sch, BadStepArgument, "the condition takes 1 axes, the block has 3", "add_guard", "C", lambda i: i < 2)
    refused(sch, BadStepArgument, "is no condition", "add_guard", "C", lambda i, j, k: i + j)
    refused(sch, BadStepArgument, "is no condition", "add_guard", "C", "i < 3")
    refused(sch, BadStepArgument, "is no condition", "add_guard", "C", "lambda i, j, k: open(i)")
    refused(sch, BadStepArgument, "expected a condition", "add_guard", "C", 3)
    refused(sch, BadStepArgument, "cannot be read", "add_guard", "C", lambda i, j, k: i < 3 and j < 2)
    refused(sch, BadStepArgument, "the root block has no guard", "add_guard", "root", "lambda: 1 < 2")
    other = tir.Schedule(guarded)
    refused(other, BadStepArgument, "there is no condition 5", "remove_guard", "B", 5)


@T.prim_func
def two_writers(A: T.Buffer((5,), "int32"), C: T.Buffer((10,), "int32")):
    B = T.alloc_buffer((10,), "int32")
    for i in range(5):
        with T.block("even"):
            vi = T.axis.spatial(5, i)
            B[vi * 2] = A[vi] + 1
    for i in range(5):
        with T.block("odd"):
            vi = T.axis.spatial(5, i)
            B[vi * 2 + 1] = A[vi] * 3
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi] * 2


def test_a_flow_that_isl_loses_half_of():
    sch = tir.Schedule(two_writers)
    sch.unroll_and_jam(sch.get_loops("odd")[0], 2)
    sch.unroll_and_jam(sch.get_loops("odd")[0], 4)
    why = r"iteration \(vi=8\) of C reads B\[8\], but iteration \(vi=4\) of even no longer writes it"
    refused(sch, WouldChangeValues, why, "add_guard", "even", "lambda v0: v0 != 4")


@T.prim_func
def never(C: T.Buffer((0, 3), "int32")):
    for f in range(0):
        with T.block("C"):
            vi = T.axis.spatial(0, f // 3)
            vj = T.axis.spatial(3, f % 3)
            C[vi, vj] = 1


def test_axes_that_have_no_values_do_not_grow():
    sch = tir.Schedule(never)
    sch.add_guard("C", "lambda vi, vj: vj >= 1")
    sch.remove_guard("C")
    check(sch, never, never)
