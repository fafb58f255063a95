"""find_mismatch: pairs of programs that compute the same, and pairs that do not."""

from __future__ import annotations

import pytest

from loopwright.evaluator import difference, evaluate_terms
from loopwright.ir import ForKind, PrimFunc
from loopwright.schedule.proof import InitOf, Mismatch, Origins, Race, Unproved, find_mismatch, find_race
from loopwright.script import tir as T
from tests.schedule.pairs import axis, blocks_of, version_of


def same(before: PrimFunc, after: PrimFunc, origins: Origins | None = None, terms: bool = True) -> None:
    """Proved; and the evaluator agrees."""
    after = version_of(before, after)
    assert find_mismatch(before, after, origins or Origins()) is None
    if terms:
        assert difference(evaluate_terms(before), evaluate_terms(after)) is None


def refused(before: PrimFunc, after: PrimFunc, origins: Origins | None = None, terms: bool = True) -> Mismatch:
    """Refused with a witness; and the evaluator agrees."""
    after = version_of(before, after)
    found = find_mismatch(before, after, origins or Origins())
    assert isinstance(found, Mismatch)
    if terms:
        assert difference(evaluate_terms(before), evaluate_terms(after)) is not None
    return found


# --- order ----------------------------------------------------------------------------------------------------------


@T.prim_func
def pointwise(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func
def recurrence(A: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)


def test_reorder_is_free_without_dependences():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for j, i in T.grid(8, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    same(pointwise, after)


def test_reorder_of_a_recurrence():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32")):
        for j, i in T.grid(7, 5):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    found = refused(recurrence, after)
    assert found.why() == "iteration (vi=1, vj=0) of A reads A[1, 1] before iteration (vi=0, vj=1) of A writes it"
    assert found.cell == ("A", (1, 1))
    assert found.reader.iteration == {"vi": 1, "vj": 0}
    assert found.expected is not None and found.expected.iteration == {"vi": 0, "vj": 1}


def test_skewed_recurrence_may_be_reordered():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32")):
        for s, i in T.grid(11, 5):
            with T.block("A"):
                vi = T.axis.spatial(5, i)
                vj = T.axis.spatial(7, s - i)
                T.where(0 <= s - i and s - i < 7)
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    @T.prim_func
    def backwards(A: T.Buffer((6, 8), "float32")):
        for s, i in T.grid(11, 5):
            with T.block("A"):
                vi = T.axis.spatial(5, 4 - i)
                vj = T.axis.spatial(7, s - (4 - i))
                T.where(0 <= s - (4 - i) and s - (4 - i) < 7)
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    same(recurrence, after)  # (i, j) and (i - 1, j + 1) lie on one diagonal, where i runs in order ...
    refused(recurrence, backwards)  # ... and here it does not
