"""Programs with loops that are bound to threads: what a step on one of them does to the others."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotSupported, WouldRace
from loopwright.schedule.proof.loop_kinds import ThreadExtentsDiffer
from loopwright.script import from_source
from tests.schedule.harness.legality import truth_about
from tests.schedule.harness.ragged import threaded_program


def numbers(func, *shapes):
    """What a program computes from small numbers, in place."""
    arrays = [np.arange(1, int(np.prod(shape)) + 1, dtype="int32").reshape(shape) for shape in shapes]
    evaluate(func, *arrays)
    return [array.tolist() for array in arrays]


# Thread i runs iteration j = i of the inner loop; once i is no thread, all threads of j write one cell.
SAME_AXIS = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((3,), "int32")):
    for i in T.thread_binding(3, "threadIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            if i >= 2:
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi] = A[vj] * 3
"""


@pytest.mark.parametrize(
    ("step", "axis"),
    [
        ("unroll", ()),
        ("parallel", ()),
        ("bind", ("blockIdx.x",)),
        ("bind", ("vthread",)),
        ("bind", ("threadIdx.y",)),
    ],
)
def test_the_inner_of_two_loops_of_one_axis_stays_alone(step, axis):
    sch = Schedule(from_source(SAME_AXIS))
    with pytest.raises(WouldRace, match=rf"{step}: loop j: iterations that run at the same time would touch"):
        getattr(sch, step)(sch.get_loops("C")[0], *axis)


# B is one for each thread, since all that use it are threads; with the first loop free, it is one for all.
SIBLINGS = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32", scope="local")
    for t in range(1):
        for i in T.thread_binding(4, "threadIdx.x"):
            with T.block("first"):
                w = T.axis.spatial(4, i)
                B[w] = A[w] + 1
        for i in T.thread_binding(4, "threadIdx.x"):
            with T.block("start"):
                v = T.axis.spatial(4, i)
                B[0] = A[v]
            with T.block("end"):
                v = T.axis.spatial(4, i)
                C[v] = B[0]
"""


@pytest.mark.parametrize("step", ["unroll", "parallel", "vectorize"])
def test_memory_of_threads_in_another_loop_stays_theirs(step):
    sch = Schedule(from_source(SIBLINGS))
    with pytest.raises(WouldRace, match=rf"{step}: loop i: iterations that run at the same time would touch"):
        getattr(sch, step)(sch.get_loops("first")[1])


def test_blocks_are_not_inside_of_blocks_of_the_same_axis():
    text = """
    @T.prim_func
    def main(C: T.Buffer((3, 3), "int32")):
        for i in T.thread_binding(3, "blockIdx.x"):
            for j in range(3):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = vi + vj
    """
    sch = Schedule(from_source(text))
    nested = r"loop j over blockIdx\.x is in loop i over blockIdx\.x"
    with pytest.raises(NotSupported, match=f"bind: {nested}"):
        sch.bind(sch.get_loops("C")[1], "blockIdx.x")
    with pytest.raises(NotSupported, match=f"Schedule: {nested}"):
        Schedule(from_source(text.replace("range(3)", 'T.thread_binding(3, "blockIdx.x")')))


def test_shared_memory_under_a_condition_that_names_a_thread_is_one_for_all():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
            for i in T.thread_binding(3, "threadIdx.x"):
                if i >= 0:
                    for u in range(1):
                        with T.block("C"):
                            v = T.axis.spatial(4, i)
                            C[v] = A[0] * 2
        """)
    sch = Schedule(func)
    with pytest.raises(WouldRace, match="stage: loop i: iterations that run at the same time would touch"):
        sch.stage("C", sch.get_loops("C")[1], "A", "shared")
    sch.stage("C", sch.get_loops("C")[1], "A", "local")
    assert numbers(sch.mod["main"], (4,), (4,)) == numbers(func, (4,), (4,))


def test_virtual_threads_come_between_what_their_thread_does():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
            B = T.alloc_buffer((4,), "int32")
            for i in T.thread_binding(1, "threadIdx.x"):
                for j in range(4):
                    with T.block("B"):
                        v = T.axis.spatial(4, j)
                        B[v] = A[v] + 1
                with T.block("C"):
                    v = T.axis.spatial(4, i)
                    C[v] = B[v + 1]
        """)
    sch = Schedule(func)
    sch.bind(sch.get_loops("B")[1], "vthread")
    assert numbers(sch.mod["main"], (4,), (4,)) == numbers(func, (4,), (4,)) == [[1, 2, 3, 4], [3, 2, 3, 4]]


def test_memory_that_threads_allocate_is_that_of_each_they_become():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((3,), "int32")):
            for ty in T.thread_binding(2, thread="threadIdx.y"):
                B = T.decl_buffer((1,), "int32", scope="local")
                for i in T.thread_binding(3, thread="threadIdx.x"):
                    with T.block("B"):
                        v = T.axis.spatial(4, i)
                        B[0] = A[v] + 1
                for i in T.thread_binding(3, thread="threadIdx.x"):
                    if ty == 1:
                        with T.block("C"):
                            v = T.axis.spatial(3, i)
                            C[v] = B[0]
        """)
    assert Schedule(func).is_proved
    assert numbers(func, (4,), (3,)) == [[1, 2, 3, 4], [2, 3, 4]]


# Threads take turns at the sum, each with all of its loop over l; a let in between changes nothing of that.
LET_IN_A_TURN = """
@T.prim_func
def main(A: T.Buffer((3, 3), "int32"), S: T.Buffer((1,), "int32")):
    for j in T.thread_binding(3, thread="threadIdx.x"):
        for l in range(3):
            x: T.int32 = {let}
            with T.block("S"):
                vj = T.axis.reduce(3, {j})
                vl = T.axis.reduce(3, {l})
                with T.init():
                    S[0] = 0
                S[0] = S[0] * 2 + A[vj, vl]
"""


@pytest.mark.parametrize(("let", "j", "l"), [("5 - l", "j", "5 - x"), ("5 - j", "5 - x", "l"), ("0", "j", "l")])
def test_a_let_is_inside_of_a_turn(let, j, l):
    func = from_source(LET_IN_A_TURN.format(let=let, j=j, l=l))
    total = 0
    for member in range(1, 10):
        total = total * 2 + member
    assert numbers(func, (3, 3), (1,))[1] == [total]
    sch = Schedule(func)
    assert truth_about(func, sch.mod["main"]).legal
    sch.add_unit_loop(sch.get_loops("S")[1])
    assert numbers(sch.mod["main"], (3, 3), (1,))[1] == [total]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_are_bound_and_run(seed):
    program = threaded_program(seed)
    assert "thread_binding" in program.source.text(program.sizes)
    assert "with threads" in program.name
    for smaller in program.smaller():
        Schedule(smaller.function)


@pytest.mark.parametrize("scope", ["local", "warp", "shared"])
def test_memory_that_threads_allocate_is_that_of_each_block_inside(scope):
    func = from_source(f"""
        @T.prim_func
        def main(A: T.Buffer((2,), "int32"), C: T.Buffer((2, 3), "int32")):
            for i in T.thread_binding(2, thread="threadIdx.y"):
                B = T.decl_buffer((2,), "int32", scope="{scope}")
                for j in T.thread_binding(3, thread="blockIdx.x"):
                    with T.block("B"):
                        v = T.axis.spatial(2, i)
                        B[v] = A[v]
                    with T.block("C"):
                        v, u = T.axis.remap("SS", [i, j])
                        C[v, u] = B[v]
        """)
    assert Schedule(func).is_proved
    assert numbers(func, (2,), (2, 3))[1] == [[1, 1, 1], [2, 2, 2]]


def test_memory_of_a_warp_is_one_along_its_threads_wherever_it_is_allocated():
    func = from_source("""
        @T.prim_func
        def main(C: T.Buffer((3, 3), "int32")):
            for t in T.thread_binding(3, thread="threadIdx.x"):
                B = T.decl_buffer((3,), "int32", scope="warp")
                for i in T.thread_binding(3, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(3, i)
                        B[vi] = vi * 5
                for i in range(3):
                    with T.block("C"):
                        vi, vt = T.axis.remap("SS", [i, t])
                        C[vt, vi] = B[vi]
        """)
    assert Schedule(func).is_proved
    assert numbers(func, (3, 3)) == [[[0, 5, 10]] * 3]


def test_a_let_that_loads_is_outside_of_a_turn():
    text = """
        @T.prim_func
        def main(A: T.Buffer((3,), "int32"), B: T.Buffer((1,), "int32")):
            for i in T.thread_binding(3, thread="threadIdx.x"):
                x: T.int32 = B[0]
                with T.block("B"):
                    v = T.axis.reduce(3, i)
                    B[0] = x + A[v]
        """
    func = from_source(text)
    after = from_source(text.replace("with T.block", "T.evaluate(0)\n                with T.block"))
    assert numbers(func, (3,), (1,)) == numbers(after, (3,), (1,))


def test_lengths_of_one_axis_that_may_differ_are_refused():
    func = from_source("""
        @T.prim_func
        def main(C: T.Buffer((3,), "int32")):
            for i in T.thread_binding(3, thread="threadIdx.x"):
                for j in range(4 - i):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi] = vi
        """)
    sch = Schedule(func)
    with pytest.raises(ThreadExtentsDiffer, match=r"threadIdx\.x would have 3 threads for loop i and 4 - i for loop j"):
        sch.bind(sch.get_loops("C")[1], "threadIdx.x")


def test_virtual_threads_share_the_shared_memory_that_they_allocate():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
            B = T.alloc_buffer((4,), "int32", scope="shared")
            for t in T.thread_binding(2, thread="vthread"):
                for i in T.thread_binding(4, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] + 1
                with T.block("C"):
                    v = T.axis.spatial(4, t)
                    C[v] = B[v]
        """)
    sch = Schedule(func)
    sch.sink_alloc("C", "B")
    assert numbers(sch.mod["main"], (4,), (4,)) == numbers(func, (4,), (4,)) == [[1, 2, 3, 4], [2, 3, 3, 4]]


def test_what_threads_share_is_not_given_to_iterations_of_a_parallel_loop():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((3, 3), "int32")):
            B = T.alloc_buffer((3,), "int32", scope="shared")
            for i in T.thread_binding(3, thread="threadIdx.x"):
                for j in range(3):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi] = A[vi, vj]
        """)
    sch = Schedule(func)
    with pytest.raises(WouldRace, match="parallel: loop j: iterations that run at the same time would touch"):
        sch.parallel(sch.get_loops("B")[1])


def test_a_hint_does_not_move_memory_of_blocks():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((2, 3), "int32")):
            B = T.alloc_buffer((4,), "int32", scope="local")
            for i in T.thread_binding(2, thread="threadIdx.x"):
                for j in T.thread_binding(3, thread="blockIdx.x"):
                    with T.block("B"):
                        v = T.axis.spatial(4, i)
                        B[v] = A[v]
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = B[vi]
        """)
    sch = Schedule(func)
    sch.prefetch("C", sch.get_loops("C")[0], "B", 1)
    assert numbers(sch.mod["main"], (4,), (2, 3)) == numbers(func, (4,), (2, 3))


@pytest.mark.parametrize("scope", ["local", "warp", "global"])
def test_virtual_threads_have_for_themselves_what_they_allocate(scope):
    func = from_source(f"""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((2, 3), "int32")):
            for t in T.thread_binding(2, thread="threadIdx.x"):
                for i in T.thread_binding(3, thread="vthread"):
                    B = T.decl_buffer((4,), "int32", scope="{scope}")
                    with T.block("B"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        B[vt] = A[vi]
                    with T.block("C"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        C[vt, vi] = B[vt]
        """)
    assert Schedule(func).is_proved
    assert numbers(func, (4,), (2, 3))[1] == [[1, 2, 3], [1, 2, 3]]
