"""read_at, write_at: what one iteration of a loop reads or writes is copied there by one block."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.schedule.primitives.compute.decompose_reduction import LoopNotAround
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused


def test_one_block_copies_a_tile():
    before = matmul(8, 5, 4)
    sch = tir.Schedule(before)
    i_0, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    copy = sch.read_at(i_0, "C", 0, "shared")
    assert sch.get(copy).annotations == {"auto_copy": 1}

    @T.prim_func
    def expected(A: T.Buffer((8, 4)), B: T.Buffer((4, 5)), C: T.Buffer((8, 5))):
        T.func_attr({"tir.noalias": True})
        A_shared = T.alloc_buffer((8, 4), scope="shared")
        for i_0 in range(2):
            with T.block("A_shared"):
                v0 = T.axis.spatial(2, i_0)
                T.reads(A[v0 * 4 : v0 * 4 + 4, 0:4])
                T.writes(A_shared[v0 * 4 : v0 * 4 + 4, 0:4])
                T.block_attr({"auto_copy": 1})
                for ax0, ax1 in T.grid(4, 4):
                    A_shared[v0 * 4 + ax0, ax1] = A[v0 * 4 + ax0, ax1]
            for i_1, j, k in T.grid(4, 5, 4):
                with T.block("C"):
                    vi = T.axis.spatial(8, i_0 * 4 + i_1)
                    vj, vk = T.axis.remap("SR", [j, k])
                    T.reads(A_shared[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]

    check(sch, before, expected)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("m", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_both_at_every_loop(m, depth):
    before = matmul(m, 3, 2)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("C")[0], [None, 4])
    sch.read_at(sch.get_loops("C")[depth], "C", 0, "global")
    sch.write_at(sch.get_loops("C")[depth], "C", 0, "local")
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_a_sum_may_be_copied_out_again_and_again():
    before = matmul()
    sch = tir.Schedule(before)
    sch.write_at(sch.get_loops("C")[2], "C", 0, "local")
    check(sch, before)


@T.prim_func
def recurrence(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi + 1] = A[vi] + T.float32(1)


def test_reads_of_what_is_made_on_the_way_are_copied_in_time_or_not_at_all():
    sch = tir.Schedule(recurrence)
    sch.read_at(sch.get_loops("A")[0], "A", 0, "global")
    check(sch, recurrence)
    outer = tir.Schedule(recurrence)
    i_0, _ = outer.split(outer.get_loops("A")[0], [None, 4])
    error = refused(outer, WouldChangeValues, "read_at would change a value", "read_at", i_0, "A", 0, "global")
    assert "reads A_global[1]" in error.why


def test_all_readers_under_the_loop_share_the_copy():
    before = chain()
    sch = tir.Schedule(before)
    loop = sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    sch.read_at(loop, "E", 0, "global")
    check(sch, before)


def test_what_is_refused():
    sch = tir.Schedule(chain())
    loop = sch.get_loops("F")[0]
    refused(sch, LoopNotAround, "read_at: loop m is not around block 'D'", "read_at", loop, "D", 0, "global")
    refused(sch, BadStepArgument, "no memory scope", "read_at", sch.get_loops("D")[0], "D", 0, "nowhere")


@T.prim_func
def triangle(A: T.Buffer((3,), "int32"), C: T.Buffer((3,), "int32")):
    for i in range(3):
        for j in range(3 - i):
            with T.block("C"):
                vi = T.axis.spatial(3, i + j)
                C[vi] = A[vi] * 2


def test_an_axis_of_a_copy_ranges_over_all_values_of_its_loop():
    sch = tir.Schedule(triangle)
    sch.write_at(sch.get_loops("C")[1], "C", 0, "global")
    assert "v1 = T.axis.spatial(3, j)" in sch.mod["main"].script()
    sch.split(sch.get_loops("C")[0], [None, 2])
    check(sch, triangle)


def test_a_copy_needs_a_bound_for_each_loop_it_is_told_apart_by():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i in range(n):
            for j in range(n - i):
                with T.block("C"):
                    vi = T.axis.spatial(n, i + j)
                    C[vi] = A[vi] * 2

    sch = tir.Schedule(func)
    problem = "write_at: how far loop j runs depends on loops around it, without a constant bound"
    refused(sch, NotSupported, problem, "write_at", sch.get_loops("C")[1], "C", 0, "global")


@T.prim_func
def halo(A: T.Buffer((6,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i0 in range(2):
        for ax in range(4):
            with T.block("B"):
                vi = T.axis.spatial(6, i0 * 2 + ax)
                B[vi] = A[vi] + 1
        for i1 in range(2):
            with T.block("C"):
                vi = T.axis.spatial(4, i0 * 2 + i1)
                C[vi] = B[vi] + B[vi + 2]


def test_the_guard_of_a_block_within_another_is_told_in_loops():
    sch = tir.Schedule(halo)
    outer = sch.blockize(sch.get_loops("C")[1])
    sch.reindex_cache_write("C", 0, "global", lambda v0: (v0 % 2,))
    sch.write_at(sch.get_loops("B")[0], outer, 0, "global")
    check(sch, halo)


@pytest.mark.parametrize("depth", range(5))
def test_the_loops_that_a_guard_of_the_copy_asks_about_are_axes_of_it(depth):
    @T.prim_func
    def before(X: T.Buffer((2, 4), "float64"), W: T.Buffer((2, 3), "float64"), C: T.Buffer((1, 2), "float64")):
        for i, j, p, q in T.grid(1, 2, 2, 3):
            with T.block("C"):
                vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
                with T.init():
                    C[vi, vj] = T.float64(0)
                C[vi, vj] = C[vi, vj] + X[vi + vp, vj + vq] * W[vp, vq]

    sch = tir.Schedule(before)
    sch.unroll_and_jam(sch.get_loops("C")[3], 2)
    sch.read_at(sch.get_loops("C")[depth], "C", 0, "global")
    check(sch, before)
