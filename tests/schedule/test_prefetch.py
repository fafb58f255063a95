"""prefetch: each iteration asks for what the block reads some iterations later."""

from __future__ import annotations

import re

import numpy as np

import loopwright as lw
from loopwright import tir
from loopwright.ir import assert_structural_equal
from loopwright.ir.verifier import verify
from loopwright.schedule import Trace
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.allocations import OutsideAllocation
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


def test_the_address_is_that_of_a_later_iteration():
    before = matmul(4, 3, 16)
    sch = tir.Schedule(before)
    k = sch.get_loops("C")[2]
    sch.prefetch("C", k, "B", distance=8)

    @T.prim_func
    def expected(A: T.Buffer((4, 16)), B: T.Buffer((16, 3)), C: T.Buffer((4, 3))):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(4, 3, 16):
            T.call_intrin("void", "tir.prefetch", T.address_of(B[k + 8, j]), 0, 3, 1)
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    check(sch, before, expected)


def test_iterations_of_a_loop_further_out_and_what_is_only_written():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(before)
    j = sch.get_loops("C")[1]
    sch.prefetch("C", j, "C", distance=2, levels=1)
    sch.prefetch("C", j, "A", distance=3)
    text = sch.mod["main"].script()
    assert 'T.call_intrin("void", "tir.prefetch", T.address_of(C[i + 2, j]), 1, 3, 1)' in text
    assert 'T.call_intrin("void", "tir.prefetch", T.address_of(A[i, j + 3]), 0, 3, 1)' in text
    again = tir.Schedule(before)
    data = sch.trace.as_json()
    Trace.apply_json_to_schedule(data, again)
    assert_structural_equal(again.mod, sch.mod)
    levels = [step[2] for step in data[0] if step[0] == "Prefetch"]
    assert [len(settings) for settings in levels] == [3, 2]  # the usual 0 is left out, as in traces of before
    check(sch, before)


@T.prim_func
def two_passes(A: T.Buffer((4, 32)), M: T.Buffer((4,)), C: T.Buffer((4, 32))):
    for i in range(4):
        for j in range(32):
            with T.block("M"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    M[vi] = T.float32(0)
                M[vi] = T.max(M[vi], A[vi, vj])
        for k in range(32):
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = M[vi] * T.float32(2)


def test_a_loop_beside_the_block_asks_for_its_next_row():
    """The second pass over a row asks for the next row, which the first will read; the first for what is written."""
    sch = tir.Schedule(two_passes)
    j, k = sch.get_loops("M")[1], sch.get_loops("C")[1]
    sch.prefetch("M", k, "A", distance=1, levels=1)
    sch.prefetch("C", j, "C", distance=0, levels=1)

    @T.prim_func
    def expected(A: T.Buffer((4, 32)), M: T.Buffer((4,)), C: T.Buffer((4, 32))):
        for i in range(4):
            for j in range(32):
                T.call_intrin("void", "tir.prefetch", T.address_of(C[i, j]), 1, 3, 1)
                with T.block("M"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        M[vi] = T.float32(0)
                    M[vi] = T.max(M[vi], A[vi, vj])
            for k in range(32):
                T.call_intrin("void", "tir.prefetch", T.address_of(A[i + 1, k]), 0, 3, 1)
                with T.block("C"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    C[vi, vk] = M[vi] * T.float32(2)

    check(sch, two_passes, expected)


def test_several_cache_lines_are_asked_for():
    sch = tir.Schedule(two_passes)
    outer, inner = sch.split(sch.get_loops("C")[1], [None, 32])
    sch.vectorize(inner)
    sch.prefetch("C", outer, "C", distance=2, levels=1, lines=2)
    text = sch.mod["main"].script()
    assert "T.address_of(C[i + 2, 0]), 1, 3, 1)" in text
    assert "T.address_of(C[i + 2, 16]), 1, 3, 1)" in text  # 16 numbers are a line
    again = tir.Schedule(two_passes)
    data = sch.trace.as_json()
    Trace.apply_json_to_schedule(data, again)
    assert_structural_equal(again.mod, sch.mod)
    assert [step[2] for step in data[0] if step[0] == "Prefetch"] == [["C", 2, 1, 2]]
    check(sch, two_passes)


def test_a_loop_beside_the_block_must_go_along_with_its_own():
    sch = tir.Schedule(two_passes)
    k = sch.get_loops("C")[1]
    outer = sch.split(k, [None, 4])[0]
    refused(sch, BadStepArgument, r"loop k_0 is not as long as j, which is around 'M'", "prefetch", "M", outer, "A")
    refused(sch, BadStepArgument, r"lines is 0", "prefetch", "C", outer, "C", lines=0)
    apart = tir.Schedule(doubled_twice)
    there = apart.get_loops("D")[0]
    refused(apart, BadStepArgument, r"neither around block 'C' nor beside it", "prefetch", "C", there, "C")


def test_memory_of_one_pass_cannot_be_asked_for_in_another():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8)), D: T.Buffer((4, 8))):
        B = T.alloc_buffer((4, 8))
        for i in range(4):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj]
            for k in range(8):
                with T.block("D"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    D[vi, vk] = T.float32(1)

    sch = tir.Schedule(before)
    sch.sink_alloc("B", "B")
    k = sch.get_loops("D")[1]
    refused(
        sch, OutsideAllocation, r"B is allocated in loop j, so there is none of it at loop k", "prefetch", "C", k, "B"
    )


def test_addresses_past_the_end_do_no_harm_and_later_steps_are_still_proved():
    before = matmul(4, 3, 16)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    sch.prefetch("C", j, "A", distance=10**6)
    sch.prefetch("C", i, "B", distance=1)
    sch.parallel(i)
    run = lw.build(sch.mod)
    a, b = np.arange(64, dtype=np.float32).reshape(4, 16), np.arange(48, dtype=np.float32).reshape(16, 3)
    c = np.zeros((4, 3), np.float32)
    run(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    assert "prefetch" in run.get_source("ll")


def test_wrong_arguments_are_refused():
    sch = tir.Schedule(matmul())
    k = sch.get_loops("C")[2]
    refused(sch, NoSuchBuffer, r"touches no buffer 'X'", "prefetch", "C", k, "X")
    refused(sch, BadStepArgument, r"distance is -1", "prefetch", "C", k, "A", distance=-1)
    refused(sch, BadStepArgument, r"levels is 3, and 2 loops are around k", "prefetch", "C", k, "A", levels=3)
    refused(sch, BadStepArgument, r"levels is -1", "prefetch", "C", k, "A", levels=-1)


@T.prim_func
def doubled_twice(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * 2
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi] * 2
    for j in range(6):
        with T.block("D"):
            vj = T.axis.spatial(6, j)
            D[vj] = vj


def with_guarded_memory():
    """A condition between the loop and the allocation of B in it."""
    sch = tir.Schedule(doubled_twice)
    sch.sink_alloc("B", "B")
    loop = sch.merge(sch.get_loops("C")[0], sch.get_loops("D")[0])
    assert "if i_m < 4:\n            B = T.decl_buffer" in sch.mod["main"].script()
    return sch, loop


def test_the_address_is_taken_where_the_buffer_exists():
    sch, loop = with_guarded_memory()
    sch.prefetch("C", loop, "B")
    verify(sch.mod["main"])
    text = sch.mod["main"].script()
    assert text.index("B = T.decl_buffer") < text.index("tir.prefetch") < text.index('T.block("C")')


@T.prim_func
def nested(A: T.Buffer((4, 8)), C: T.Buffer(4)):
    for i in range(4):
        with T.block("rows"):
            vi = T.axis.spatial(4, i)
            for k in range(8):
                with T.block("C"):
                    vk = T.axis.reduce(8, k)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]


def test_a_block_with_blocks_inside():
    sch = tir.Schedule(nested)
    sch.prefetch("rows", sch.get_loops("rows")[0], "A", distance=2)
    assert "T.address_of(A[i + 2, 0])" in sch.mod["main"].script()
    check(sch, nested)


def test_of_a_fused_loop_the_address_goes_on_in_memory():
    @T.prim_func
    def before(A: T.Buffer((6, 5, 7)), C: T.Buffer((6, 5, 7))):
        for i, j, k in T.grid(6, 5, 7):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, vj, vk] * T.float32(2)

    sch = tir.Schedule(before)
    around, lane = sch.split(sch.fuse(*sch.get_loops("C")), [None, 16])
    sch.vectorize(lane)
    sch.prefetch("C", around, "A", distance=3, lines=2)
    text = lw.lower(sch.mod).script()
    assert "T.address_of(A_1[i_j_k_fused_0 * 16 + 48])" in text
    assert "T.address_of(A_1[i_j_k_fused_0 * 16 + 64])" in text


def asked(sch):
    """The addresses that the function asks for."""
    return re.findall(r"T\.address_of\((.*?)\), \d, 3, 1\)", sch.mod["main"].script())


def test_an_address_reads_no_memory_where_data_decides_it():
    @T.prim_func
    def pointed_to(A: T.Buffer((1, 1, 2), "int32"), C: T.Buffer((1,), "int32")):
        for i, j, l in T.grid(1, 1, 2):
            with T.block("C"):
                vi, vj, vl = T.axis.remap("SRR", [i, j, l])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vj, (C[vi] + vl) % 2]

    @T.prim_func
    def through_a_let(A: T.Buffer((2, 2), "int32"), C: T.Buffer((2, 2), "int32")):
        for i in range(2):
            x: T.int32 = C[i, 0]
            for j in range(2):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(j < i + 1)
                    C[vi, vj] = A[x % 2, vi] + C[vj, vi]

    @T.prim_func
    def gather(A: T.Buffer((2,), "int32"), I: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):
        for i in range(2):
            with T.block("C"):
                vi = T.axis.spatial(2, i)
                C[vi] = A[I[vi] % 2] * 2

    @T.prim_func
    def rows_that_begin_anywhere(A: T.Buffer((8,), "int32"), P: T.Buffer((2,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(2):
            for k in T.serial(P[i], P[i] + 4):
                with T.block("C"):
                    vk = T.axis.opaque(8, k)
                    C[vk] = A[vk] * 2

    for before, address in (
        (pointed_to, "A[0, 0, 0]"),
        (through_a_let, "A[0, i + 1]"),
        (gather, "A[0]"),
        (rows_that_begin_anywhere, "A[0]"),
    ):
        sch = tir.Schedule(before)
        sch.prefetch("C", sch.get_loops("C")[0], "A")
        assert asked(sch) == [address]
        arrays = [np.zeros([int(size) for size in buffer.shape], np.int32) for buffer in before.buffer_map.values()]
        lw.build(sch.mod)(*arrays)


def test_an_address_that_a_later_iteration_could_not_compute_is_left_out():
    """After the last iteration the divisor is 0."""

    @T.prim_func
    def before(A: T.Buffer((6, 5), "int32"), C: T.Buffer((5,), "int32")):
        for i in range(5):
            with T.block("C"):
                vi = T.axis.spatial(5, i)
                C[vi] = A[5 // (5 - vi), vi] * 2

    sch = tir.Schedule(before)
    sch.prefetch("C", sch.get_loops("C")[0], "A")
    assert asked(sch) == ["A[0, i + 1]"]
    check(sch, before)


def test_inner_loops_begin_where_those_around_them_do():
    @T.prim_func
    def halved(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6, 6), "int32")):
        for i, j in T.grid(4, 3):
            for k in T.serial(j + 2, j + 4):
                for m in T.serial(k, k + 2):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        vk = T.axis.reduce(6, m // 2)
                        with T.init():
                            C[vi, vj] = 5
                        C[vi, vj] = C[vi, vj] + A[vk, vi]

    @T.prim_func
    def empty(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6, 6), "int32")):
        for i, j in T.grid(1, 1):
            for k in T.serial(j - 1, j - 1 + (j - 1)):
                with T.block("C"):
                    vi = T.axis.spatial(6, i)
                    vj, vk = T.axis.remap("RR", [j, k])
                    with T.init():
                        C[vi, vi] = 5
                    C[vi, vi] = C[vi, vi] + A[vi // 2, vk]

    cases = ((halved, 0, "A[1, i + 1]"), (halved, 1, "A[(j + 1) // 2 + 1, i]"), (empty, 0, "A[0, -1]"))
    for before, loop, address in cases:
        sch = tir.Schedule(before)
        sch.prefetch("C", sch.get_loops("C")[loop], "A")
        verify(sch.mod["main"])
        assert asked(sch) == [address]
        if before is halved:
            check(sch, before)


def test_of_a_fused_loop_of_any_size_the_divisor_is_not_0_where_it_runs():
    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int32, m: T.int32):
        A = T.match_buffer(a, (n, m))
        C = T.match_buffer(c, (n, m))
        for i, j in T.grid(n, m):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(before)
    around = sch.split(sch.fuse(*sch.get_loops("C")), [None, 16])[0]
    sch.prefetch("C", around, "A", distance=3)
    assert asked(sch) == ["A[(i_j_fused_0 * 16 + 48) // m, (i_j_fused_0 * 16 + 48) % m]"]
