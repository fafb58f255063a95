"""parallel, vectorize, unroll, bind: who runs the iterations."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir import ForKind
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


@T.prim_func
def shift(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi + 1]


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@pytest.mark.parametrize(
    ("step", "kind"),
    [("parallel", ForKind.PARALLEL), ("vectorize", ForKind.VECTORIZED), ("unroll", ForKind.UNROLLED)],
)
def test_kinds(step, kind):
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    getattr(sch, step)(loop)
    assert sch.get(loop).kind is kind
    check(sch, copy)


def test_parallel_text():
    sch = tir.Schedule(copy)
    sch.parallel(sch.get_loops("B")[0])

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


def test_lockstep_is_enough_for_vectorize_and_not_for_parallel():
    sch = tir.Schedule(shift)
    (loop,) = sch.get_loops("A")
    error = refused(sch, WouldRace, "parallel: loop i: iterations that run at the same time", "parallel", loop)
    assert "A[1]" in str(error)
    sch.vectorize(loop)
    check(sch, shift)


def test_a_recurrence_is_neither():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    sch = tir.Schedule(func)
    (loop,) = sch.get_loops("A")
    refused(sch, WouldRace, "parallel: loop i", "parallel", loop)
    refused(sch, WouldRace, "vectorize: loop i", "vectorize", loop)


def test_a_reduction_is_not_parallel():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    error = refused(sch, WouldRace, "parallel: loop k", "parallel", k)
    assert "C[0, 0]" in str(error)
    sch.parallel(i)
    sch.vectorize(j)
    check(sch, matmul())


def test_each_iteration_of_a_merged_loop_has_rows_of_its_own():
    func = chain()
    sch = tir.Schedule(func)
    loop = sch.merge(*[sch.get_loops(name)[0] for name in "DEF"])
    sch.parallel(loop)
    check(sch, func)


def test_hand_written_parallel_loops_are_proved_when_a_schedule_is_made():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in T.parallel(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    with pytest.raises(WouldRace, match="Schedule: loop i"):
        tir.Schedule(func)
    assert not tir.Schedule(func, enable_check=False).is_proved


def test_vectorize_needs_a_constant_extent():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    sch = tir.Schedule(func)
    refused(sch, NotSupported, "a vector has a constant number of lanes", "vectorize", sch.get_loops("B")[0])


def test_bind():
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    refused(sch, BadStepArgument, "there is no thread axis 'threadIdx.w'", "bind", loop, "threadIdx.w")
    sch.bind(loop, "threadIdx.x")
    assert sch.get(loop).thread_binding.thread_tag == "threadIdx.x"
    sch.unroll(loop)
    assert sch.get(loop).thread_binding is None
