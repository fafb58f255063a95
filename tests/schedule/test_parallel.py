"""parallel: iterations on threads, none of which touches what another writes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import ForKind
from loopwright.schedule.errors import NotProved, NotSupported, WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def shift(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi + 1]


def test_text():
    sch = tir.Schedule(copy)
    sch.parallel(sch.get_loops("B")[0])

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64])
def test_every_extent(n):
    A = te.placeholder((n,), name="A", dtype="int32")
    B = te.compute((n,), lambda i: A[i] * 3, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    sch.parallel(sch.get_loops("B")[0])
    a, b = np.arange(n, dtype="int32"), np.zeros(n, "int32")
    lw.build(sch.mod)(a, b)
    np.testing.assert_array_equal(b, a * 3)


def test_a_symbolic_extent():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    (loop,) = sch.get_loops("B")
    sch.parallel(loop)
    assert sch.get(loop).kind is ForKind.PARALLEL


def test_lockstep_is_not_enough():
    sch = tir.Schedule(shift)
    (loop,) = sch.get_loops("A")
    error = refused(sch, WouldRace, "parallel: loop i: iterations that run at the same time", "parallel", loop)
    assert "A[1]" in str(error)


def test_a_recurrence():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    sch = tir.Schedule(func)
    refused(sch, WouldRace, "parallel: loop i", "parallel", sch.get_loops("A")[0])


def test_a_reduction():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    error = refused(sch, WouldRace, "parallel: loop k", "parallel", k)
    assert "C[0, 0]" in str(error)
    sch.parallel(i)
    sch.parallel(j)
    check(sch, matmul())


def test_a_scatter_is_not_proved():
    @T.prim_func
    def func(A: T.Buffer(8), I: T.Buffer(8, "int32"), B: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[I[vi]] = A[vi]

    sch = tir.Schedule(func)
    refused(sch, NotProved, "parallel: loop i could not be proved", "parallel", sch.get_loops("B")[0])


def test_each_iteration_of_a_merged_loop_has_rows_of_its_own():
    func = chain()
    sch = tir.Schedule(func)
    loop = sch.merge(*[sch.get_loops(name)[0] for name in "DEF"])
    sch.parallel(loop)
    check(sch, func)


def test_what_a_later_step_puts_under_the_loop_is_proved_again():
    @T.prim_func
    def func(A: T.Buffer((8, 4)), B: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(8, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi // 2, vj]

    sch = tir.Schedule(func)
    i, _ = sch.get_loops("B")
    other, _ = sch.get_loops("C")
    sch.parallel(i)
    sch.parallel(other)
    refused(sch, WouldRace, r"merge: loop i_m", "merge", i, other)
    check(sch, func)


def test_a_hand_written_loop_is_proved_when_a_schedule_is_made():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in T.parallel(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    with pytest.raises(WouldRace, match="Schedule: loop i"):
        tir.Schedule(func)
    assert not tir.Schedule(func, enable_check=False).is_proved


def test_not_inside_lanes():
    sch = tir.Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    sch.vectorize(i)
    refused(sch, NotSupported, "loop j runs on threads inside the vectorized loop i", "parallel", j)


@pytest.mark.parametrize(("step", "part"), [("parallel", "outer"), ("vectorize", "inner")])
def test_a_loop_over_a_reduction_is_shared_by_rfactor(step, part):
    source = te.placeholder((8, 8), name="U")
    a, b = te.reduce_axis((0, 8), name="a"), te.reduce_axis((0, 8), name="b")
    total = te.compute((), lambda: te.sum(source[a, b], axis=[a, b]), name="S")
    func = te.create_prim_func([source, total])
    for position in (0, 1):
        sch = tir.Schedule(func)
        loop = sch.get_loops("S")[position]
        with pytest.raises(WouldRace, match=f"split it, rfactor the {part} part, then {step} that loop"):
            getattr(sch, step)(loop)
        outer, inner = sch.split(loop, [None, 4])
        partial = sch.rfactor(outer if part == "outer" else inner, 0)
        getattr(sch, step)(outer if part == "outer" else inner)
        assert sch.get(partial).name_hint == "S_rf"
        assert sch.is_proved


def test_a_race_over_data_says_nothing_of_reductions():
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((1,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.opaque(8, i)
                B[0] = A[vi]

    sch = tir.Schedule(func)
    with pytest.raises(WouldRace, match="would touch the same cell") as caught:
        sch.parallel(sch.get_loops("B")[0])
    assert "rfactor" not in str(caught.value)
