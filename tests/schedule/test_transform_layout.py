"""transform_layout: a buffer is stored in another layout, everywhere it is used."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.buffers import NotOurMemory
from loopwright.schedule.errors import BadStepArgument, WouldChangeValues
from loopwright.schedule.primitives.transform_layout import LayoutLeavesRoom
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


@T.prim_func
def two_steps(A: T.Buffer((6, 8)), C: T.Buffer((6, 8))):
    B = T.alloc_buffer((6, 8))
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(6, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_every_access_and_region_is_rewritten():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4))

    @T.prim_func
    def expected(A: T.Buffer((6, 8)), C: T.Buffer((6, 8))):
        B = T.alloc_buffer((2, 6, 4))
        for i, j in T.grid(6, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vj // 4, vi, vj % 4])
                B[vj // 4, vi, vj % 4] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(6, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vj // 4, vi, vj % 4])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vj // 4, vi, vj % 4]

    check(sch, two_steps, expected)


@pytest.mark.parametrize("index_map", ["lambda i, j: (j, i)", "lambda i, j: (i * 8 + j,)", "lambda i, j: (5 - i, j)"])
def test_maps_may_be_text(index_map):
    sch = tir.Schedule(two_steps)
    sch.transform_layout("C", ("read", 0), index_map)
    check(sch, two_steps)


def test_room_left_over_needs_a_value():
    sch = tir.Schedule(two_steps)
    refused(sch, LayoutLeavesRoom, r"\(2, 8, 4\) of B has more cells than its shape \(6, 8\)", "transform_layout", "B",
            "B", lambda i, j: (i // 4, j, i % 4))  # fmt: skip
    sch.transform_layout("B", "B", lambda i, j: (i // 4, j, i % 4), pad_value=0)
    fill = sch.get(sch.get_block("buffer_B_padding"))
    assert [int(extent) for extent in fill.writes[0].buffer.shape] == [2, 8, 4]
    check(sch, two_steps)


def test_a_buffer_allocated_in_a_loop():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    copy = sch.stage("C", sch.get_loops("C")[0], "B")
    sch.transform_layout(copy, "B_stage", lambda k, j: (j, k))
    check(sch, before)


def test_reductions_and_guards():
    before = chain(5, 7, 3, 2)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("D")[0], [None, 4])
    sch.transform_layout("D", "D", lambda m, l: (l, m))
    check(sch, before)


def test_two_elements_in_one_cell_are_refused_with_the_witness():
    sch = tir.Schedule(two_steps)
    error = refused(
        sch, WouldChangeValues, "transform_layout would change", "transform_layout", "B", "B", lambda i, j: (i // 2, j)
    )
    assert "reads B[0, 0]" in error.why


def test_wrong_arguments_are_refused():
    sch = tir.Schedule(two_steps)
    refused(sch, NotOurMemory, r"A is an argument", "transform_layout", "B", "A", lambda i, j: (j, i))
    refused(sch, BadStepArgument, r"the map takes 1 index, B has 2", "transform_layout", "B", "B", lambda i: i)
    refused(sch, BadStepArgument, r"is no map of indices", "transform_layout", "B", "B", "i, j")
    refused(sch, BadStepArgument, r"is not made of i, j, numbers", "transform_layout", "B", "B", "lambda i, j: open(i)")
    refused(sch, BadStepArgument, r"buffer is \['read', 'x'\]", "transform_layout", "B", ("read", "x"), "lambda i: i")
