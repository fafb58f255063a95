"""explain_loops: how innermost loops run, and what would make them faster."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotSupported
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import explain_loops

PLAIN = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64")


def told(func) -> list[tuple[str, str]]:
    return [(note.text, note.hint) for note in explain_loops(func, PLAIN)]


def test_a_matmul_in_every_order_says_how_it_runs():
    A = te.placeholder((64, 64), name="A")
    B = te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), "k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    assert sch.explain(PLAIN) == "C: i, j, k\n    vectors of 16 lanes over j; k runs serially inside"
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    assert sch.explain(PLAIN).splitlines()[-2:] == ["C: i, k, j", "    j is vectorized: unit stride in every access"]


def test_a_float_sum_along_a_row():
    @T.prim_func
    def func(A: T.Buffer((32, 64)), B: T.Buffer((32,))):
        for i, k in T.grid(32, 64):
            B[i] = B[i] + A[i, k]

    assert told(func) == [
        (
            "scalar: k carries the float sum B, which is not reassociated",
            "split k and rfactor the inner loop: each lane then has its own accumulator",
        )
    ]


def test_a_transpose_has_no_unit_stride():
    @T.prim_func
    def func(A: T.Buffer((32, 64)), B: T.Buffer((64, 32))):
        for i, j in T.grid(64, 32):
            B[i, j] = A[j, i]

    ((text, hint),) = told(func)
    assert text == "scalar: A has stride 64 over j"
    assert hint.startswith("no loop has unit stride in every access: tile so that")


def test_another_loop_would_have_unit_stride():
    @T.prim_func
    def func(A: T.Buffer((32, 64)), B: T.Buffer((32, 64))):
        for j in T.parallel(64):
            for i in range(32):
                B[i, j] = A[i, j] * 2.0

    assert told(func) == [
        (
            "scalar: B has stride 64, A has stride 64 over i",
            "make j the innermost loop: unit stride in A and B",
        )
    ]


def test_a_value_from_the_iteration_before():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((65,))):
        for i in range(64):
            B[i + 1] = B[i] * A[i]

    assert told(func) == [("scalar: i has a loop-carried dependence through B", "")]


def test_conditions_and_short_loops():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,)), C: T.Buffer((64, 3))):
        for i in range(64):
            if A[i] > 0.0:
                B[i] = A[i]
        for i, c in T.grid(64, 3):
            C[i, c] = A[i]

    assert [text for text, _ in told(func)] == [
        "scalar: a condition in the body is evaluated for each element",
        "scalar: c has only 3 iterations",
    ]


def test_lanes_that_gather():
    @T.prim_func
    def func(A: T.Buffer((64, 8)), B: T.Buffer((64,))):
        for i in T.vectorized(64):
            B[i] = A[i, 0]

    assert told(func) == [
        (
            "vectors of 64 lanes over i, gathered: A has stride 8 over i",
            "vectorize a loop with unit stride, or pack the buffer to get one",
        )
    ]


def test_lanes_within_a_packed_panel_have_unit_stride():
    @T.prim_func
    def func(A: T.Buffer((2, 64)), B: T.Buffer((128,))):
        for p, j_0 in T.grid(2, 4):
            for j_1 in T.vectorized(16):
                B[p * 64 + j_0 * 16 + j_1] = A[p, (p * 64 + j_0 * 16 + j_1) % 64]

    assert told(func) == [("vectors of 16 lanes over j_1", "")]


def test_other_compilers_decide_for_themselves():
    A = te.placeholder((4,), name="A")
    sch = Schedule(te.create_prim_func([A, te.compute((4,), lambda i: A[i] + 1, name="B")]))
    with pytest.raises(NotSupported, match="explain: for target c, another compiler decides how loops run"):
        sch.explain("c")
