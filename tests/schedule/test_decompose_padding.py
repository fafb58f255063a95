"""decompose_padding: a block that copies with padding becomes a fill and a copy of what there is."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.primitives.compute.decompose_padding import NoPadding
from loopwright.schedule.primitives.compute.decompose_reduction import LoopNotAround
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, matmul, refused


def padded(n: int = 8, low: int = 1, high: int = 1):
    A = te.placeholder((n,), name="A")
    B = te.compute(
        (n + low + high,), lambda i: te.if_then_else(te.all(i >= low, i < n + low), A[i - low], 0.0), name="B"
    )
    C = te.compute((n + low + high,), lambda i: B[i] * 2.0, name="C")
    return te.create_prim_func([A, C])


def test_a_fill_and_a_shorter_copy():
    before = padded()
    sch = tir.Schedule(before)
    fill = sch.decompose_padding("B", sch.get_loops("B")[0])
    assert sch.get(fill).name_hint == "B_pad_const"

    @T.prim_func
    def expected(A: T.Buffer(8), C: T.Buffer(10)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer((10,))
        for i_pad in range(10):
            with T.block("B_pad_const"):
                vi = T.axis.spatial(10, i_pad)
                T.reads()
                T.writes(B[vi])
                B[vi] = T.float32(0)
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(B[vi + 1])
                B[vi + 1] = A[vi]
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi] * T.float32(2)

    check_numbers(sch, before, expected)


def check_numbers(sch, before, expected=None):
    """Terms know the choice that the block made; the numbers are the same."""
    check(sch, before, expected)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.parametrize(("n", "low", "high"), [(1, 1, 0), (1, 0, 3), (3, 2, 1), (7, 0, 1)])
def test_every_side(n, low, high):
    before = padded(n, low, high)
    sch = tir.Schedule(before)
    sch.decompose_padding("B", sch.get_loops("B")[0])
    check_numbers(sch, before)


@pytest.mark.parametrize("depth", [0, 1])
def test_at_an_inner_loop(depth):
    n = 4
    A = te.placeholder((n, n), name="A")
    B = te.compute(
        (n + 2, n + 2),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < n + 1, j >= 1, j < n + 1), A[i - 1, j - 1], 0.0),
        name="B",
    )
    C = te.compute((n, n), lambda i, j: B[i, j] + B[i + 2, j + 2], name="C")
    before = te.create_prim_func([A, C])
    sch = tir.Schedule(before)
    loop = sch.get_loops("B")[depth]
    assert sch.can_decompose_padding("B", loop)
    sch.decompose_padding("B", loop)
    check_numbers(sch, before)


def test_after_a_split_the_condition_stays():
    before = padded()
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("B")[0], [None, 4])
    sch.decompose_padding("B", sch.get_loops("B")[1])
    check_numbers(sch, before)


@T.prim_func
def of_itself(A: T.Buffer(9)):
    for i in range(9):
        with T.block("A"):
            vi = T.axis.spatial(9, i)
            A[vi] = T.if_then_else(vi < 8, A[vi + 1] * T.float32(2), T.float32(7))


def test_what_the_copy_reads_must_not_be_filled_first():
    sch = tir.Schedule(of_itself)
    loop = sch.get_loops("A")[0]
    error = refused(sch, WouldChangeValues, "decompose_padding would change a value", "decompose_padding", "A", loop)
    assert "of A reads A[1]" in error.why
    assert not sch.can_decompose_padding("A", loop)


@T.prim_func
def between(A: T.Buffer(8), C: T.Buffer(9), D: T.Buffer(9)):
    for i in range(9):
        with T.block("C"):
            vi = T.axis.spatial(9, i)
            C[vi] = T.if_then_else(vi < 8, A[vi], T.float32(3))
        with T.block("D"):
            vi = T.axis.spatial(9, i)
            D[vi] = C[vi]


def test_a_reader_in_the_same_loop():
    sch = tir.Schedule(between)
    sch.decompose_padding("C", sch.get_loops("C")[0])
    check_numbers(sch, between)


def test_what_is_refused():
    sch = tir.Schedule(padded())
    other = sch.get_loops("C")[0]
    refused(sch, LoopNotAround, "loop i is not around block 'B'", "decompose_padding", "B", other)
    refused(sch, NoPadding, "which is no choice between a value and padding", "decompose_padding", "C", other)
    sums = tir.Schedule(matmul())
    refused(sums, NoPadding, "is not a single store", "decompose_padding", "C", sums.get_loops("C")[0])
    A = te.placeholder((8,), name="A")
    for chosen, match in [
        (lambda i: te.if_then_else(i < 4, A[i], A[0]), r"padded with A\[0\], which is no constant"),
        (lambda i: te.if_then_else(A[i] > 0.0, A[i], 0.0), "which depends on data"),
        (lambda i: te.if_then_else(i < 8, A[i], 0.0), "is never padded, or always"),
    ]:
        B = te.compute((8,), chosen, name="B")
        wrong = tir.Schedule(te.create_prim_func([A, B]))
        refused(wrong, NoPadding, match, "decompose_padding", "B", wrong.get_loops("B")[0])
