"""cache_read: a copy of what blocks read, made once before them."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.ir import BufferLoad, PrimFunc, collect
from loopwright.schedule.errors import BadStepArgument, NotProved, WouldChangeValues
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused


@T.prim_func
def shift(A: T.Buffer(12), C: T.Buffer(8), D: T.Buffer(8)):
    B = T.alloc_buffer(12)
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi + 3]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi]


def test_an_argument_is_copied_at_the_start_and_only_the_needed_region():
    @T.prim_func
    def before(A: T.Buffer(12), B: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi + 3]

    @T.prim_func
    def expected(A: T.Buffer(12), B: T.Buffer(8)):
        A_local = T.alloc_buffer(12, scope="local")
        for ax0 in range(8):
            with T.block("A_local"):
                v0 = T.axis.spatial(12, ax0 + 3)
                A_local[v0] = A[v0]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A_local[vi + 3]

    sch = tir.Schedule(before)
    copy = sch.cache_read("B", 0, "local")
    assert sch.get(copy).name_hint == "A_local"
    check(sch, before, expected)


def test_the_copy_stands_after_the_writer_and_all_readers_switch():
    sch = tir.Schedule(shift)
    sch.cache_read("C", "B", "global")

    @T.prim_func
    def expected(A: T.Buffer(12), C: T.Buffer(8), D: T.Buffer(8)):
        B = T.alloc_buffer(12)
        B_global = T.alloc_buffer(12)
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi] * T.float32(2)
        for ax0 in range(11):
            with T.block("B_global"):
                v0 = T.axis.spatial(12, ax0)
                B_global[v0] = B[v0]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B_global[vi + 3]
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = B_global[vi]

    check(sch, shift, expected)


def test_only_listed_consumers_switch():
    sch = tir.Schedule(shift)
    sch.cache_read("C", "B", "global", consumer_blocks=["C"])
    assert sch.get(sch.get_block("D")).reads[0].buffer.name == "B"
    assert sch.get(sch.get_block("C")).reads[0].buffer.name == "B_global"
    check(sch, shift)


def test_a_producer_in_the_same_loop_is_copied_there():
    before = chain()
    sch = tir.Schedule(before)
    m = sch.get_loops("E")[0]
    sch.compute_at("D", m)
    copy = sch.cache_read("E", "D", "local")
    assert sch.get_loops(copy)[0].name == m.name
    check(sch, before)


def test_a_block_that_updates_in_place_reads_the_copy_of_what_was():
    @T.prim_func
    def before(A: T.Buffer(8)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + T.float32(1)

    sch = tir.Schedule(before)
    sch.cache_read("A", 0, "local")
    check(sch, before)


@pytest.mark.parametrize("extent", [1, 2, 7])
def test_boundary_shapes_and_reductions(extent):
    before = matmul(extent, 3, extent)
    sch = tir.Schedule(before)
    sch.cache_read("C", 0, "global")
    sch.cache_read("C", "B", "local")
    check(sch, before)


def test_tuple_reductions():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    I = te.placeholder((5,), name="I", dtype="int32")
    index, value = te.compute((4,), lambda i: argmax((I[k], A[i, k]), axis=k), name="best")
    before = te.create_prim_func([I, A, index, value])
    sch = tir.Schedule(before)
    sch.cache_read("best", "A", "local")
    check(sch, before)


def test_what_is_not_there_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, NoSuchBuffer, r"block 'C' reads 2 buffers, so there is none at 2", "cache_read", "C", 2, "local")
    refused(sch, NoSuchBuffer, r"block 'C' reads no buffer 'C'", "cache_read", "C", "C", "local")
    refused(sch, BadStepArgument, r"there is no memory scope 'moon'", "cache_read", "C", 0, "moon")


def test_elements_that_nothing_wrote_are_not_copied():
    before = matmul(3, 2, 5)
    sch = tir.Schedule(before)
    i = sch.get_loops("C")[0]
    sch.stage("C", i, "A", layout=lambda i, k: (i, k // 2, k % 2))  # 3 pairs, the last one half empty
    refused(sch, NotProved, "would copy cells of A_stage that hold no value", "cache_read", "C", 0, "local")
    sch.cache_read("A_stage", 0, "local")
    check(sch, before)


def test_a_staged_window_that_is_full_is_copied():
    before = matmul(3, 2, 4)
    sch = tir.Schedule(before)
    sch.stage("C", sch.get_loops("C")[0], "A", layout=lambda i, k: (i, k // 2, k % 2))
    sch.cache_read("C", 0, "local")
    check(sch, before)


@T.prim_func
def twice_guarded(A: T.Buffer((3,), "int32"), B: T.Buffer((2,), "int32")):
    for i, j in T.grid(10, 2):
        with T.block("B"):
            vi = T.axis.spatial(2, i + j)
            T.where(i < 2 and j < 1)
            B[vi] = A[vi] * 2
        with T.block("A"):
            vi = T.axis.spatial(2, i + j)
            T.where(i < 2 and j < 1)
            A[vi + 1] = B[vi] + 1


def test_a_copy_stays_inside_the_buffer_where_only_a_part_of_the_guard_is_known():
    """The end of the window follows from `j < 1`, and moves with `i`; where `i < 2` fails, it is outside A."""
    sch = tir.Schedule(twice_guarded)
    loop = sch.get_loops("B")[1]
    sch.fission(loop, 1)
    sch.cache_read("B", 0, "local", consumer_blocks=["B"])
    check(sch, twice_guarded)


@T.prim_func
def shared_loop(A: T.Buffer(12), C: T.Buffer(12), D: T.Buffer(12)):
    B = T.alloc_buffer(12)
    for i in range(3):
        for j in range(4):
            with T.block("B"):
                vi = T.axis.spatial(12, i * 4 + j)
                B[vi] = A[vi] * T.float32(2)
        for j in range(4):
            with T.block("C"):
                vi = T.axis.spatial(12, i * 4 + j)
                C[vi] = B[vi] + T.float32(1)
    for i in range(12):
        with T.block("D"):
            vi = T.axis.spatial(12, i)
            D[vi] = B[vi]


def test_a_producer_that_shares_a_loop_with_one_of_two_consumers():
    sch = tir.Schedule(shared_loop)
    sch.cache_read("C", 0, "global")

    @T.prim_func
    def expected(A: T.Buffer(12), C: T.Buffer(12), D: T.Buffer(12)):
        B, B_global = T.alloc_buffer(12), T.alloc_buffer(12)
        for i in range(3):
            for j in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(12, i * 4 + j)
                    B[vi] = A[vi] * T.float32(2)
            for ax0 in range(4):
                with T.block("B_global"):
                    v0 = T.axis.spatial(12, i * 4 + ax0)
                    B_global[v0] = B[v0]
            for j in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(12, i * 4 + j)
                    C[vi] = B_global[vi] + T.float32(1)
        for i in range(12):
            with T.block("D"):
                vi = T.axis.spatial(12, i)
                D[vi] = B_global[vi]

    check(sch, shared_loop, expected)
    assert sch.is_proved


def test_only_the_listed_consumer_behind_the_loop_switches():
    sch = tir.Schedule(shared_loop)
    copy = sch.cache_read("C", "B", "global", consumer_blocks=["D"])
    assert [loop.extent.value for loop in map(sch.get, sch.get_loops(copy))] == [12]
    assert [sch.get(sch.get_block(name)).reads[0].buffer.name for name in "CD"] == ["B", "B_global"]
    check(sch, shared_loop)


def test_consumers_that_read_what_iterations_before_have_written():
    @T.prim_func
    def before(A: T.Buffer(12), C: T.Buffer(12), D: T.Buffer(11)):
        B = T.alloc_buffer(13)
        with T.block("first"):
            B[0] = T.float32(5)
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi + 1] = A[vi] * T.float32(2)
            with T.block("C"):
                vi = T.axis.spatial(12, i)
                C[vi] = B[vi] + B[vi + 1]
        for i in range(11):
            with T.block("D"):
                vi = T.axis.spatial(11, i)
                D[vi] = B[vi + 2]

    for consumers in (["C"], ["D"], ["C", "D"], None):
        sch = tir.Schedule(before)
        sch.cache_read("C", "B", "local", consumer_blocks=consumers)
        check(sch, before)
        assert sch.is_proved


def test_a_consumer_before_the_writer_in_a_shared_loop():
    @T.prim_func
    def before(A: T.Buffer(8), B: T.Buffer((3, 8))):
        for t in range(3):
            for i in range(8):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vt, vi] = A[vi]
            for i in range(8):
                with T.block("A"):
                    vt = T.axis.opaque(3, t)
                    vi = T.axis.spatial(8, i)
                    A[vi] = B[vt, vi] * T.float32(2)

    sch = tir.Schedule(before)
    copy = sch.cache_read("B", 0, "local")
    assert sch.get_loops(copy)[0].name == "t"
    check(sch, before)


def test_a_copy_that_misses_an_update_is_still_refused():
    @T.prim_func
    def before(A: T.Buffer(8), C: T.Buffer(8), D: T.Buffer(8)):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = C[vi] * T.float32(2)
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = A[vi]

    sch = tir.Schedule(before)
    refused(sch, WouldChangeValues, "cache_read would change a value", "cache_read", "C", 0, "local")


def with_itself(n: int, depth: int) -> PrimFunc:
    """C = A · Aᵀ"""
    A = te.placeholder((n, depth), name="A")
    k = te.reduce_axis((0, depth), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * A[j, k], axis=k), name="C")
    return te.create_prim_func([A, C])


@pytest.mark.parametrize("load", [0, 1])
@pytest.mark.parametrize("n", [1, 3])
def test_of_two_loads_only_one_reads_the_copy(n, load):
    before = with_itself(n, 2)
    sch = tir.Schedule(before)
    copy = sch.cache_read("C", "A", "global", load=load)
    block = sch.get(sch.get_block("C"))
    names = [item.buffer.name for item in collect(block.body, BufferLoad) if item.buffer.name != "C"]
    assert names == (["A_global", "A"] if load == 0 else ["A", "A_global"])
    assert {region.buffer.name for region in block.reads} == {"A", "A_global"}
    assert sch.is_proved and sch.get(copy).name_hint == "A_global"
    check(sch, before)


def test_a_load_in_the_index_of_another_counts_after_it():
    @T.prim_func
    def before(A: T.Buffer(4, "int32"), B: T.Buffer(4, "int32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[T.min(T.max(A[vi], 0), 3)]

    sch = tir.Schedule(before)
    sch.cache_read("B", 0, "local", load=1)
    text = sch.mod["main"].script()
    assert "A[T.min(T.max(A_local[vi]" in text.replace("v_i", "vi") or "A[T.max(T.min(A_local[vi]" in text
    assert_same_numbers(sch.mod["main"], before)


def test_a_load_that_is_not_there_is_refused():
    sch = tir.Schedule(with_itself(3, 2))
    refused(sch, BadStepArgument, "2 places", "cache_read", "C", "A", "global", load=2)
    sch = tir.Schedule(shift)
    refused(sch, BadStepArgument, "consumers", "cache_read", "C", "B", "global", ["D"], load=0)
