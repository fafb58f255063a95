"""sink_alloc: a buffer's memory is allocated as far in as its values allow."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.primitives.memory.sink_alloc import NothingToSink
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


def test_a_producer_computed_in_the_loop_gets_memory_there():
    before = chain()
    sch = tir.Schedule(before)
    m, l = sch.get_loops("E")
    sch.compute_at("D", m)
    sch.sink_alloc("D", "D")
    loop = sch.get(m)
    assert type(loop.body).__name__ == "Allocate" and loop.body.buffer_var.name == "D"
    sch.parallel(m)
    check(sch, before)


@pytest.mark.parametrize("levels", [1, 5])  # out into a loop, and out of all of them
def test_it_undoes_lift_alloc(levels):
    before = matmul(4, 3, 2)
    sch = tir.Schedule(before)
    copy = sch.stage("C", sch.get_loops("C")[1], "B")
    once = sch.mod["main"]
    sch.lift_alloc(copy, "B_stage", levels)
    sch.sink_alloc(copy, "B_stage")
    check(sch, before, once)


@T.prim_func
def running_sum(A: T.Buffer(8), C: T.Buffer(8)):
    B = T.alloc_buffer(1)
    with T.block("start"):
        B[0] = T.float32(0)
    for i in range(8):
        with T.block("add"):
            vi = T.axis.opaque(8, i)
            B[0] = B[0] + A[vi]
        with T.block("out"):
            vi = T.axis.opaque(8, i)
            C[vi] = B[0]


@T.prim_func
def carried(A: T.Buffer(8), C: T.Buffer(8)):
    B = T.alloc_buffer(1)
    for i in range(8):
        with T.block("out"):
            vi = T.axis.opaque(8, i)
            T.where(i > 0)
            C[vi] = B[0]
        with T.block("keep"):
            vi = T.axis.opaque(8, i)
            B[0] = A[vi]


def test_no_place_holds_all_uses():
    refused(tir.Schedule(running_sum), NothingToSink, r"B has no place further in", "sink_alloc", "add", "B")


def test_values_that_cross_iterations_keep_the_buffer_out():
    sch = tir.Schedule(carried)
    refused(sch, NothingToSink, r"values of B flow from one iteration of loop i", "sink_alloc", "keep", "B")
