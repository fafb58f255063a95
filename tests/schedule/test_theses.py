"""What the schedule layer stands on, case by case: what must be refused, and in whose words; what must be accepted."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedule import Schedule, ScheduleError
from loopwright.script import tir as T


def test_fusing_data_and_reduction_then_splitting_and_reordering_sums_right():
    n = 13
    A = te.placeholder((n, n), name="A", dtype="int32")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    outer, inner = sch.split(sch.fuse(*sch.get_loops("C")), [None, 5])
    sch.reorder(inner, outer)
    a, c = np.arange(n * n, dtype="int32").reshape(n, n), np.zeros(n, "int32")
    lw.build(sch.mod)(a, c)
    np.testing.assert_array_equal(c, a.sum(1))


@T.prim_func
def recurrence(A: T.Buffer((9, 8), "float32")):
    for i, j in T.grid(8, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + T.float32(1)


def test_reordering_a_recurrence_is_refused_with_both_iterations():
    sch = Schedule(recurrence)
    i, j = sch.get_loops("A")
    witness = r"iteration \(vi=1, vj=0\) of A reads A\[1, 1\] before iteration \(vi=0, vj=1\) of A writes it"
    with pytest.raises(ScheduleError, match=witness):
        sch.reorder(j, i)


@T.prim_func
def shift(A: T.Buffer((9,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi + 1]


def test_a_shift_runs_in_lockstep_and_not_in_parallel():
    sch = Schedule(shift)
    sch.vectorize(sch.get_loops("A")[0])
    a = np.arange(9, dtype="float32")
    lw.build(sch.mod)(a)
    np.testing.assert_array_equal(a, [1, 2, 3, 4, 5, 6, 7, 8, 8])
    sch = Schedule(shift)
    with pytest.raises(ScheduleError, match=r"i = 0 and i = 1 of the parallel loop i both touch A\[1\]"):
        sch.parallel(sch.get_loops("A")[0])


def test_parallelising_a_reduction_is_refused():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    with pytest.raises(ScheduleError, match=r"iterations k = 0 and k = 1 of the parallel loop k both touch C\[0\]"):
        sch.parallel(sch.get_loops("C")[1])


@T.prim_func
def two_writers(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("again"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def test_inlining_with_two_writers_is_refused_and_nothing_changes():
    sch = Schedule(two_writers)
    before = sch.mod["main"]
    with pytest.raises(ScheduleError, match=r"again"):
        sch.compute_inline("B")
    assert sch.mod["main"] is before
    assert sch.trace.insts == []


@T.prim_func
def one_cell_again(A: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):
    S = T.alloc_buffer((1,), "int32")
    R = T.alloc_buffer((1,), "int32")
    for i in range(2):
        with T.block("S"):
            vi = T.axis.spatial(2, i)
            S[0] = A[vi] + 1
        with T.block("R"):
            v0 = T.axis.spatial(1, 0)
            R[v0] = S[v0] * 2
        with T.block("C"):
            vj = T.axis.spatial(2, i)
            C[vj] = R[0] * 3


def test_a_block_whose_axes_do_not_tell_its_iterations_apart_stays():
    sch = Schedule(one_cell_again)
    with pytest.raises(ScheduleError, match="with the same axis values see different values"):
        sch.fission(sch.get_loops("S")[0], 2)


@T.prim_func
def empty_reduction(A: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32"), D: T.Buffer((1,), "int32")):
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial(2, i)
            C[vi] = A[vi]
    for k in range(0):
        with T.block("D"):
            vd = T.axis.spatial(1, 0)
            vk = T.axis.reduce(0, k)
            with T.init():
                D[vd] = 1
            D[vd] = D[vd] + A[vk]


def test_merging_keeps_the_start_value_of_a_reduction_over_nothing():
    sch = Schedule(empty_reduction)
    with pytest.raises(ScheduleError, match=r"D\[0\]"):
        sch.merge(sch.get_loops("C")[0], sch.get_loops("D")[0])


def test_threads_inside_lanes_are_refused():
    sch = Schedule(recurrence)
    i, j = sch.get_loops("A")
    sch.parallel(j)
    with pytest.raises(ScheduleError, match="loop j runs on threads inside the vectorized loop i"):
        sch.vectorize(i)
