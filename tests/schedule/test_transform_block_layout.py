"""transform_block_layout: a block runs over other axes, which an index map makes of the old ones."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.schedule.primitives.layout.transform_block_layout import NotOneToOne
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused


@T.prim_func
def copy(A: T.Buffer((4, 6)), B: T.Buffer((4, 6))):
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def test_two_axes_become_one():
    sch = tir.Schedule(copy)
    sch.transform_block_layout("B", lambda i, j: (i * 6 + j,))

    @T.prim_func
    def expected(A: T.Buffer((4, 6)), B: T.Buffer((4, 6))):
        for ax0 in range(24):
            with T.block("B"):
                v0 = T.axis.spatial(24, ax0)
                T.reads(A[v0 // 6, v0 % 6])
                T.writes(B[v0 // 6, v0 % 6])
                B[v0 // 6, v0 % 6] = A[v0 // 6, v0 % 6] * T.float32(2)

    check(sch, copy, expected)


@pytest.mark.parametrize(
    "index_map",
    ["lambda i, j, k: (j, i, k)", "lambda i, j, k: (j * 6 + i, k)", "lambda i, j, k: (i // 2, j, i % 2, k)",
     "lambda i, j, k: (k, i, j)", "lambda i, j, k: (5 - i, j, k)"],
)  # fmt: skip
def test_reductions(index_map):
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    block = sch.get_block("C")
    sch.transform_block_layout(block, index_map)
    assert sch.get(block).name_hint == "C"  # the handle goes on
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_a_block_that_was_split_and_guarded():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("C")[0], [None, 4])
    sch.transform_block_layout("C", lambda i, j, k: (i * 5 + j, k))
    assert len(sch.get_loops("C")) == 2
    check(sch, before)


@T.prim_func
def recurrence(A: T.Buffer((4, 4))):
    for i, j in T.grid(3, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, 3 - vj] + T.float32(1)


def test_another_order_is_proved_or_refused():
    sch = tir.Schedule(recurrence)
    error = refused(
        sch, WouldChangeValues, "transform_block_layout would change", "transform_block_layout", "A",
        lambda i, j: (j, i),
    )  # fmt: skip
    assert "of A reads A[1, 3]" in error.why
    sch.transform_block_layout("A", lambda i, j: (i, 3 - j))
    check(sch, recurrence)


def test_what_is_refused():
    sch = tir.Schedule(copy)
    error = refused(sch, NotOneToOne, "is not one to one", "transform_block_layout", "B", lambda i, j: (i + j,))
    assert error.why == "(0, 1) and (1, 0) both go to (1,)"
    # Points that no old one goes to would run the block outside of its axes.
    refused(sch, NotOneToOne, "makes 42 points of 24", "transform_block_layout", "B", lambda i, j: (i + 3, j))
    refused(sch, NotOneToOne, "makes 48 points of 24", "transform_block_layout", "B", lambda i, j: (1, i, j))
    refused(sch, NotOneToOne, "is not one to one", "transform_block_layout", "B", lambda i, j: (i // 2, j))
    refused(sch, BadStepArgument, "the map takes 1 index", "transform_block_layout", "B", lambda i: (i,))
    sums = tir.Schedule(matmul(6, 5, 4))
    refused(sums, NotOneToOne, "mixes axes of data and of a reduction", "transform_block_layout", "C",
            lambda i, j, k: (i, j * 4 + k))  # fmt: skip
    merged = tir.Schedule(chain())
    merged.merge(merged.get_loops("D")[0], merged.get_loops("E")[0])
    refused(merged, NotSupported, "holds something else as well", "transform_block_layout", "E", lambda i, j: (j, i))
    parallel = tir.Schedule(copy)
    parallel.parallel(parallel.get_loops("B")[0])
    refused(parallel, NotSupported, "is parallel", "transform_block_layout", "B", lambda i, j: (j, i))


@T.prim_func
def folded(A: T.Buffer((4, 6)), B: T.Buffer(24)):
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 6 + vj] = A[vi, vj] * T.float32(2)


def test_indices_are_written_as_simply_as_they_are():
    sch = tir.Schedule(folded)
    sch.transform_block_layout("B", lambda i, j: (i * 6 + j,))

    @T.prim_func
    def expected(A: T.Buffer((4, 6)), B: T.Buffer(24)):
        for ax0 in range(24):
            with T.block("B"):
                v0 = T.axis.spatial(24, ax0)
                T.reads(A[v0 // 6, v0 % 6])
                T.writes(B[v0])
                B[v0] = A[v0 // 6, v0 % 6] * T.float32(2)

    check(sch, folded, expected)


@T.prim_func
def wide(A: T.Buffer((T.int64(4), T.int64(6))), B: T.Buffer((T.int64(4), T.int64(6)))):
    for i, j in T.grid(T.int64(4), T.int64(6)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


@pytest.mark.parametrize(
    "index_map", [lambda i, j: (i * 6 + j,), lambda i, j: (j // 3, i, j % 3), lambda i, j: (3 - i, j)]
)
def test_int64_axes_stay_int64(index_map):
    sch = tir.Schedule(wide)
    sch.transform_block_layout("B", index_map)
    check(sch, wide)
    assert sch.is_proved and "Cast" not in sch.mod["main"].script()
    assert {sch.get(loop).loop_var.dtype for loop in sch.get_loops("B")} == {"int64"}


def test_a_copy_within_a_block_keeps_the_cells_that_it_copies():
    @T.prim_func
    def before(A: T.Buffer((2, 5), "int32"), C: T.Buffer((2, 5), "int32")):
        for i, j in T.grid(2, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * 2

    sch = tir.Schedule(before)
    sch.split(sch.get_loops("C")[0], [None, 4])
    sch.blockize(sch.get_loops("C")[2], preserve_unit_iters=False)  # its axis runs to 4, of which the guard leaves 2
    sch.cache_write("C", 0, "local")
    sch.transform_block_layout("C_local", lambda i, j: (i * 5 + j,))
    check(sch, before)
    given, out = np.arange(10, dtype=np.int32).reshape(2, 5), np.zeros((2, 5), np.int32)
    loopwright.build(sch.mod)(given, out)
    np.testing.assert_array_equal(out, given * 2)
