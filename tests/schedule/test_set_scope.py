"""set_scope: a buffer lives in another kind of memory."""

from __future__ import annotations

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.schedule.rewrite.allocations import NotOurMemory
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def two_steps(A: T.Buffer(8), C: T.Buffer(8)):
    B = T.alloc_buffer(8)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def test_every_use_follows():
    sch = tir.Schedule(two_steps)
    sch.set_scope("B", 0, "local")

    @T.prim_func
    def expected(A: T.Buffer(8), C: T.Buffer(8)):
        B = T.alloc_buffer(8, scope="local")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    check(sch, two_steps, expected)


def test_the_same_scope_changes_nothing():
    sch = tir.Schedule(two_steps)
    sch.set_scope("B", "B", "global")
    assert sch.mod["main"] is two_steps or sch.mod["main"].body is two_steps.body


def test_a_buffer_allocated_in_a_loop():
    before = matmul()
    sch = tir.Schedule(before)
    copy = sch.stage("C", sch.get_loops("C")[0], "B")
    sch.set_scope(copy, "B_stage", "local")
    assert sch.get(copy).writes[0].buffer.scope() == "local"
    check(sch, before)


def test_arguments_and_unknown_scopes_are_refused():
    sch = tir.Schedule(two_steps)
    refused(sch, NotOurMemory, r"C is an argument of the function", "set_scope", "C", 0, "local")
    refused(sch, BadStepArgument, r"there is no memory scope 'fast'", "set_scope", "B", 0, "fast")


def test_a_name_for_part_of_a_buffer_is_refused():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        B = T.alloc_buffer((4, 8))
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                row = T.match_buffer(B[vi, 0:8], (8,), offset_factor=1)
                for j in range(8):
                    with T.block("B"):
                        vj = T.axis.spatial(8, j)
                        row[vj] = A[vi, vj]
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    sch = tir.Schedule(func)
    problem = "set_scope: row is not allocated in the program: it names part of another buffer"
    error = refused(sch, NotSupported, problem, "set_scope", "B", "row", "local")
    assert error.hint == "name the buffer it is part of"


def test_matched_parts_follow():
    @T.prim_func
    def before(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        B = T.alloc_buffer((4, 4))
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                part = T.match_buffer(B[vi, vj], (), offset_factor=1)
                part[()] = A[vi, vj] * T.float32(2)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                row = T.match_buffer(B[vi, 0:4], (1, 4), offset_factor=1)
                for j in range(4):
                    with T.block("inner"):
                        vj = T.axis.spatial(4, j)
                        one = T.match_buffer(row[0, vj], (), offset_factor=1)
                        C[vi, vj] = one[()]

    sch = tir.Schedule(before)
    sch.set_scope("B", 0, "local")

    @T.prim_func
    def expected(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        B = T.alloc_buffer((4, 4), scope="local")
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                part = T.match_buffer(B[vi, vj], (), scope="local", offset_factor=1)
                part[()] = A[vi, vj] * T.float32(2)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                row = T.match_buffer(B[vi, 0:4], (1, 4), scope="local", offset_factor=1)
                for j in range(4):
                    with T.block("inner"):
                        vj = T.axis.spatial(4, j)
                        one = T.match_buffer(row[0, vj], (), scope="local", offset_factor=1)
                        C[vi, vj] = one[()]

    check(sch, before, expected)
    assert sch.is_proved


def test_memory_that_threads_share_is_not_made_their_own():
    @T.prim_func
    def launched(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer((4,))
        t = T.env_thread("threadIdx.x")
        T.launch_thread(t, 4)
        with T.block("B"):
            vi = T.axis.spatial(4, t)
            B[vi] = A[vi]
        T.evaluate(T.tvm_storage_sync("shared"))
        with T.block("C"):
            vi = T.axis.spatial(4, t)
            C[vi] = B[3 - vi]

    sch = tir.Schedule(launched)
    refused(sch, WouldChangeValues, "would change a value", "set_scope", "B", 0, "local")
    sch.set_scope("B", 0, "shared")
    check(sch, launched)
