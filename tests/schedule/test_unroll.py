"""unroll: the same iterations in the same order, whatever they do."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.ir import ForKind
from loopwright.schedule.errors import HandleGone
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def recurrence(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi + 1] = A[vi]


def test_text():
    sch = tir.Schedule(recurrence)
    sch.unroll(sch.get_loops("A")[0])

    @T.prim_func
    def expected(A: T.Buffer(9)):
        for i in T.unroll(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    check(sch, recurrence, expected)


@pytest.mark.parametrize("position", range(3))
def test_every_loop_of_a_reduction(position):
    sch = tir.Schedule(matmul())
    loop = sch.get_loops("C")[position]
    sch.unroll(loop)
    assert sch.get(loop).kind is ForKind.UNROLLED
    check(sch, matmul())


def test_a_symbolic_extent():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")]))
    (loop,) = sch.get_loops("B")
    sch.unroll(loop)
    assert sch.get(loop).kind is ForKind.UNROLLED


def test_a_bound_loop_is_bound_no_longer():
    sch = tir.Schedule(matmul())
    loop = sch.get_loops("C")[0]
    sch.bind(loop, "threadIdx.x")
    sch.unroll(loop)
    assert sch.get(loop).thread_binding is None
    check(sch, matmul())


def test_a_loop_that_is_gone():
    sch = tir.Schedule(matmul())
    loop = sch.get_loops("C")[0]
    sch.split(loop, [2, None])
    problem = r"loop i is no loop any more: it was split into i_0 and i_1 at test_unroll\.py:"
    refused(sch, HandleGone, problem, "unroll", loop)
