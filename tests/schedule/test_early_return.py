"""Early returns: a step in a function that may return before its end keeps the order of everything."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.schedule.errors import NotProved
from loopwright.script import tir as T
from loopwright.transform.errors import NotAPipeline
from tests.schedule.steps import refused


@T.prim_func
def until_large(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * 2
        with T.block("R"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes()
            if A[vi] > 3:
                T.ret(0)


GIVEN = np.array([1, 2, 1, 3, 2, 4, 1, 2], "int32")
EXPECTED = [2, 4, 2, 6, 4, 8, 0, 0]
WHY = "the function may return before its end"


def result_of(function: object) -> list[int]:
    result = np.zeros(8, "int32")
    loopwright.build(function)(GIVEN, result)
    return result.tolist()


def test_steps_that_change_an_order_are_refused():
    sch = tir.Schedule(until_large)
    (loop,) = sch.get_loops("C")
    refused(sch, NotProved, WHY, "fission", loop, 1)
    for kind in ("vectorize", "parallel"):
        refused(sch, NotProved, WHY, kind, loop)
    refused(sch, NotProved, WHY, "bind", loop, "threadIdx.x")
    refused(sch, NotProved, WHY, "add_guard", "R", lambda v: v < 4)
    refused(sch, NotProved, WHY, "cache_write", "C", 0, "global")
    assert result_of(sch.mod) == EXPECTED


def test_steps_that_keep_it_go():
    sch = tir.Schedule(until_large)
    outer, inner = sch.split(sch.get_loops("C")[0], [2, 4])
    sch.unroll(inner)
    sch.annotate(outer, "note", 1)
    assert sch.is_proved and result_of(sch.mod) == EXPECTED
    again = tir.Schedule(until_large)
    sch.trace.apply_to_schedule(again)
    assert result_of(again.mod) == EXPECTED


def test_a_return_at_the_very_end_is_in_nobodys_way():
    @T.prim_func
    def doubled(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] * 2
        T.ret(0)

    @T.prim_func
    def doubled_beside_memory(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        last = T.decl_buffer((1,), "int32")
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] * 2
        last[0] = C[7]
        T.ret(last[0])

    for function in (doubled, doubled_beside_memory):
        sch = tir.Schedule(function)
        sch.vectorize(sch.get_loops("C")[0])
        assert result_of(sch.mod) == (GIVEN * 2).tolist()


def test_an_iteration_that_may_return_is_no_part_of_a_pipeline():
    @T.prim_func
    def pipeline(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            C[i] = A[i] * 2
            if A[i] > 3:
                T.ret(0)

    with pytest.raises(NotAPipeline, match="cannot run as a software pipeline") as error:
        loopwright.build(pipeline)
    assert "an iteration may return" in error.value.why


def test_programs_without_a_return_are_as_before():
    A = te.placeholder((8,), name="A")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")]))
    sch.vectorize(sch.get_loops("B")[0])
    assert sch.is_proved
