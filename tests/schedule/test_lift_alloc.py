"""lift_alloc: a buffer's memory is allocated further out."""

from __future__ import annotations

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldRace
from loopwright.schedule.rewrite.allocations import NotOurMemory
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


def staged():
    before = matmul(4, 3, 2)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    copy = sch.stage("C", j, "B")
    return before, sch, copy, (i, j, k)


def test_one_loop_further_out():
    before, sch, copy, _ = staged()
    sch.lift_alloc(copy, "B_stage")

    @T.prim_func
    def expected(A: T.Buffer((4, 2)), B: T.Buffer((2, 3)), C: T.Buffer((4, 3))):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            B_stage = T.decl_buffer((2, 1))
            for j in range(3):
                for ax0, ax1 in T.grid(2, 1):
                    with T.block("B_stage"):
                        o0, v0, v1 = T.axis.remap("SSS", [j, ax0, ax1])
                        T.reads(B[v0, o0])
                        T.writes(B_stage[v0, 0])
                        B_stage[v0, 0] = B[v0, o0]
                for k in range(2):
                    with T.block("C"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        T.reads(A[vi, vk], B_stage[vk, 0])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B_stage[vk, 0]

    check(sch, before, expected)


def test_past_the_last_loop_it_is_the_blocks():
    before, sch, copy, _ = staged()
    sch.lift_alloc(copy, "B_stage", levels=9)
    root = sch.get(sch.get_block("root"))
    assert [buffer.name for buffer in root.alloc_buffers] == ["B_stage"]
    check(sch, before)
    refused(sch, NotSupported, r"B_stage is allocated in block 'root' already", "lift_alloc", copy, "B_stage")


def test_memory_shared_by_parallel_iterations_is_refused():
    _, sch, copy, (i, j, _) = staged()
    sch.parallel(i)
    sch.lift_alloc(copy, "B_stage")
    error = refused(sch, WouldRace, r"lift_alloc: loop i", "lift_alloc", copy, "B_stage")
    assert "i = 0 and i = 1" in error.why and "B_stage[0, 0]" in error.why


def test_wrong_arguments_are_refused():
    _, sch, copy, _ = staged()
    refused(sch, BadStepArgument, r"levels is 0", "lift_alloc", copy, "B_stage", levels=0)
    refused(sch, NotOurMemory, r"B is an argument", "lift_alloc", copy, "B")
