"""bind: iterations on the threads of an axis."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir import ForKind
from loopwright.schedule.errors import BadStepArgument, WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def test_text():
    sch = tir.Schedule(copy)
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


AXES = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"]


@pytest.mark.parametrize("axis", [*AXES, "vthread"])
def test_every_axis(axis):
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    sch.bind(loop, axis)
    assert sch.get(loop).kind is ForKind.THREAD_BINDING
    assert sch.get(loop).thread_binding.thread_tag == axis
    check(sch, copy)


@pytest.mark.parametrize("axis", ["threadIdx.w", "threadIdx", "vthread.w", "", "nowhere"])
def test_unknown_axes(axis):
    sch = tir.Schedule(copy)
    error = refused(sch, BadStepArgument, f"there is no thread axis '{axis}'", "bind", sch.get_loops("B")[0], axis)
    assert "use one of blockIdx.x, " in str(error)


def test_a_reduction():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, WouldRace, "bind: loop k", "bind", k, "threadIdx.x")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    check(sch, matmul())
