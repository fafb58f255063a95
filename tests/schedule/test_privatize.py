"""A reduction that several iterations compute again gets memory of its own in each of them."""

from __future__ import annotations

import pytest

from loopwright.analysis.reduction_init import write_inits
from loopwright.schedule import Schedule, ScheduleError
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, refused


@T.prim_func
def rows(A: T.Buffer((3, 4)), C: T.Buffer((3, 2))):
    B = T.alloc_buffer((3,))
    for i, k in T.grid(3, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for i, j in T.grid(3, 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi] * 2.0


def test_each_iteration_starts_anew():
    sch = Schedule(rows)
    sch.compute_at("B", sch.get_loops("C")[1])

    @T.prim_func
    def expected(A: T.Buffer((3, 4)), C: T.Buffer((3, 2))):
        for i, j in T.grid(3, 2):
            B = T.decl_buffer((3,))
            for ax0 in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, ax0])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi] * 2.0

    check(sch, rows, expected)
    assert_same_numbers(sch.mod["main"], rows)
    shown = rows.with_(body=write_inits(sch.mod["main"].body)).script()
    # The start value is written inside the loop that allocates, before the loop that adds.
    assert shown.index("decl_buffer") < shown.index("B_init") < shown.index("for ax0")


def test_memory_stays_where_each_cell_is_computed_once():
    sch = Schedule(rows)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert "alloc_buffer" in sch.mod["main"].script()
    check(sch, rows)


def test_results_that_are_used_outside_are_not_repeated():
    @T.prim_func
    def used_twice(A: T.Buffer((3, 4)), C: T.Buffer((3, 2)), D: T.Buffer(3)):
        B = T.alloc_buffer((3,))
        for i, k in T.grid(3, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i, j in T.grid(3, 2):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi] * 2.0
        for i in range(3):
            with T.block("D"):
                vi = T.axis.spatial(3, i)
                D[vi] = B[vi]

    sch = Schedule(used_twice)
    j = sch.get_loops("C")[1]
    refused(sch, ScheduleError, "more than once", "compute_at", "B", j)


@pytest.mark.parametrize("inner", [0, 1])
def test_parallel_iterations_do_not_share(inner):
    sch = Schedule(rows)
    loops = sch.get_loops("C")
    sch.compute_at("B", loops[1])
    sch.parallel(loops[inner])
    check(sch, rows)
