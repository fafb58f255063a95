"""add_thread_loop: threads that run a loop together."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, ScheduleError, WouldRace
from loopwright.schedule.proof.loop_kinds import ThreadExtentsDiffer
from loopwright.script import tir as T
from loopwright.transform import insert_barriers, launch_threads, lower_blocks, write_allocations, write_inits
from tests.schedule.steps import check, refused


@T.prim_func
def mirrored(A: T.Buffer((5, 4))):
    """Each step reads what the last one wrote, in reverse."""
    for t in range(4):
        for i in range(4):
            with T.block("A"):
                vt = T.axis.scan(4, t)
                vi = T.axis.spatial(4, i)
                A[vt + 1, vi] = A[vt, 3 - vi] + T.float32(1)


def bound():
    sch = tir.Schedule(mirrored)
    t, i = sch.get_loops("A")
    sch.bind(i, "threadIdx.x")
    return sch, t


def test_steps_of_one_launch():
    sch, t = bound()
    sch.add_thread_loop(t, "threadIdx.x", 4)

    @T.prim_func
    def expected(A: T.Buffer((5, 4))):
        for _tx in T.thread_binding(4, thread="threadIdx.x"):
            for t in range(4):
                for i in T.thread_binding(4, thread="threadIdx.x"):
                    with T.block("A"):
                        vt = T.axis.scan(4, t)
                        vi = T.axis.spatial(4, i)
                        T.reads(A[vt, 3 - vi])
                        T.writes(A[vt + 1, vi])
                        A[vt + 1, vi] = A[vt, 3 - vi] + T.float32(1)

    check(sch, mirrored, expected)
    program = sch.mod["main"]
    for step in (write_inits, write_allocations, lower_blocks, launch_threads, insert_barriers):
        program = step(program)
    assert str(program).count("tvm_storage_sync") == 1
    a = np.arange(20, dtype="float32").reshape(5, 4)
    evaluated, launched = a.copy(), a.copy()
    evaluate(mirrored, evaluated)
    evaluate(program, launched)
    np.testing.assert_array_equal(evaluated, launched)


def test_what_no_thread_is_bound_to_is_not_done_by_all():
    sch = tir.Schedule(mirrored)
    refused(sch, WouldRace, "add_thread_loop: loop tx", "add_thread_loop", sch.get_loops("A")[0], "threadIdx.x", 4)


def test_another_number_of_threads():
    sch, t = bound()
    message = "add_thread_loop: threadIdx.x would have 3 threads for loop tx and 4 for loop i"
    refused(sch, ThreadExtentsDiffer, message, "add_thread_loop", t, "threadIdx.x", 3)


@pytest.mark.parametrize("axis", ["blockIdx.x", "vthread", "x"])
def test_axes_that_cannot_wait(axis):
    sch, t = bound()
    refused(sch, BadStepArgument, "is no axis of threads that can wait", "add_thread_loop", t, axis, 4)


@pytest.mark.parametrize("extent", [0, -1, True, 2.0])
def test_numbers_of_threads(extent):
    sch, t = bound()
    with pytest.raises(ScheduleError, match="the extent is"):
        sch.add_thread_loop(t, "threadIdx.x", extent)


@T.prim_func
def product(A: T.Buffer((1, 4), "int32"), B: T.Buffer((4, 1), "int32"), C: T.Buffer((1, 1), "int32")):
    for i, j, l in T.grid(1, 1, 4):
        with T.block("C"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]


@pytest.mark.parametrize("position", [0, 2])
def test_a_sum_over_threads_is_in_one_loop_over_them(position):
    sch = tir.Schedule(product)
    loops = sch.get_loops("C")
    sch.bind(loops[2], "threadIdx.x")
    message = "C sums over loop l, bound to threadIdx.x as loop tx is"
    error = refused(sch, NotSupported, message, "add_thread_loop", loops[position], "threadIdx.x", 4)
    assert error.hint == "bind one of them to another axis, or leave loop l unbound"


@T.prim_func
def two_sums(A: T.Buffer((3, 2), "int32"), R: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((3, 2), "int32")
    for i, j in T.grid(3, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(3, 2):
        with T.block("R"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                R[vi] = 0
            R[vi] = R[vi] + B[vi, vj]


def test_memory_of_threads_that_is_touched_outside_of_them():
    sch = tir.Schedule(two_sums)
    copied = sch.stage("B", sch.get_loops("B")[0], "A", "global")
    sch.set_scope("B", 0, "shared")
    message = "A_stage belongs to threads, and is touched outside of them"
    refused(sch, NotProved, message, "add_thread_loop", sch.get_loops(copied)[0], "threadIdx.x", 3)


def test_no_barriers_in_block_loops_inside_threads():
    sch = tir.Schedule(product)
    i, j, l = sch.get_loops("C")
    sch.bind(i, "threadIdx.x")
    sch.add_thread_loop(l, "threadIdx.x", 1)
    message = "loop tx over threadIdx.x is in loop j over blockIdx.x, and that in loop i over threadIdx.x"
    error = refused(sch, NotSupported, message, "bind", j, "blockIdx.x")
    assert error.hint == "blocks hold threads: reorder, so that loop j is outermost"
