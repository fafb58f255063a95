"""compact_buffers: an allocation shrinks to the part of it that is used where it lives."""

from __future__ import annotations

import pytest

from loopwright.ir import Allocate, PrimFunc, collect_statements, pre_order_visit
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from loopwright.transform import BlockNotLowered, compact_buffers, lower_blocks, write_allocations
from tests.transform.before_after import (
    check_all,
    lowered,
    same_at_every_stage,
    same_native,
    same_program,
    same_results,
    unchanged,
)


def allocated(func: PrimFunc) -> list[list[int]]:
    found = []

    def look(node):
        if isinstance(node, Allocate):
            found.append([getattr(extent, "value", None) for extent in node.extents])

    pre_order_visit(func.body, look)
    return found


def test_the_part_of_one_iteration():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((64,))
            for j in range(8):
                B[i * 8 + j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[i * 8 + 7 - j]

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((8,))
            for j in range(8):
                B[j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[7 - j]

    check_all(compact_buffers, before, after)


def test_a_halo_and_guards():
    """The guards keep accesses inside the buffer; the hull of what is written and read counts."""

    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((66,))
            for j in range(10):
                if i * 8 + j < 64:
                    B[i * 8 + j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[i * 8 + j] + T.if_then_else(i * 8 + j + 2 < 64, B[i * 8 + j + 2], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((10,))
            for j in range(10):
                if i * 8 + j < 64:
                    B[j] = A[i * 8 + j]
            for j in range(8):
                C[i * 8 + j] = B[j] + T.if_then_else(i * 8 + j + 2 < 64, B[j + 2], T.float32(0))

    check_all(compact_buffers, before, after)


def test_a_guard_bounds_an_index_that_only_adds_what_is_known_around():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(4):
            B = T.decl_buffer((64,))
            for j, k in T.grid(8, 8):
                if j * 8 + k < 16:
                    B[i * 16 + j * 8 + k] = A[i * 16 + j * 8 + k]
            for j in range(64):
                if T.likely(j <= 15 and i < 4):
                    C[i * 16 + j] = B[i * 16 + j]

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(4):
            B = T.decl_buffer((16,))
            for j, k in T.grid(8, 8):
                if j * 8 + k < 16:
                    B[j * 8 + k] = A[i * 16 + j * 8 + k]
            for j in range(64):
                if T.likely(j <= 15 and i < 4):
                    C[i * 16 + j] = B[j]

    check_all(compact_buffers, before, after)


def test_a_guard_of_another_value_bounds_nothing():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(4):
            B = T.decl_buffer((64,))
            for j, k in T.grid(8, 8):
                if j * 4 + k < 16:
                    B[j * 8 + k] = A[i * 16 + j * 4 + k]
                else:
                    B[j] = A[j]
            C[i] = B[i]

    unchanged(compact_buffers, before)


def test_the_hull_of_several_accesses():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((80,))
            for j in range(4):
                B[i * 8 + j] = A[i * 8 + j]
            for j in range(4):
                B[i * 8 + 10 + j] = A[i * 8 + 4 + j]
            for j in range(8):
                C[i * 8 + j] = T.if_then_else(j < 4, B[i * 8 + j], B[i * 8 + j + 6])

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((14,))
            for j in range(4):
                B[j] = A[i * 8 + j]
            for j in range(4):
                B[j + 10] = A[i * 8 + 4 + j]
            for j in range(8):
                C[i * 8 + j] = T.if_then_else(j < 4, B[j], B[j + 6])

    check_all(compact_buffers, before, after)


def test_each_dimension_for_itself():
    @T.prim_func
    def before(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
        for i in range(16):
            B = T.decl_buffer((16, 16))
            for j in range(16):
                B[i, j] = A[i, j]
            for j in range(16):
                C[i, j] = B[i, 15 - j]

    @T.prim_func
    def after(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
        for i in range(16):
            B = T.decl_buffer((1, 16))
            for j in range(16):
                B[0, j] = A[i, j]
            for j in range(16):
                C[i, j] = B[0, 15 - j]

    check_all(compact_buffers, before, after)


def test_what_data_decides_stays_whole():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            B = T.decl_buffer((8,), "int32")
            for j in range(8):
                B[j] = A[j]
            C[i] = B[A[i]]

    unchanged(compact_buffers, func)


def test_a_let_inside_the_scope_keeps_the_dimension():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            B = T.decl_buffer((8,), "int32")
            with T.LetStmt(A[i]) as x:
                B[x] = 1
                C[i] = B[x]

    unchanged(compact_buffers, func)


def test_a_pointer_that_is_handed_on_keeps_the_buffer():
    @T.prim_func
    def func(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((64,))
            B[i] = A[i]
            T.evaluate(T.call_extern("int32", "touch", T.address_of(B[i])))

    unchanged(compact_buffers, func)


def test_a_prefetch_past_the_end_moves_along():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((64,))
            for j in range(8):
                B[i * 8 + j] = A[i * 8 + j]
            for j in range(8):
                T.evaluate(T.call_intrin("void", "tir.prefetch", T.address_of(B[i * 8 + j + 16]), 0, 3, 1))
                C[i * 8 + j] = B[i * 8 + j]

    got = compact_buffers(before)
    assert allocated(got) == [[8]] and "T.address_of(B[j + 16])" in got.script()
    same_native(before, got)


def test_ramps():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((64,))
            B[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8, 1, 8)]
            C[T.Ramp(i * 8, 1, 8)] = B[T.Ramp(i * 8, 1, 8)]

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,))):
        for i in range(8):
            B = T.decl_buffer((8,))
            B[T.Ramp(0, 1, 8)] = A[T.Ramp(i * 8, 1, 8)]
            C[T.Ramp(i * 8, 1, 8)] = B[T.Ramp(0, 1, 8)]

    check_all(compact_buffers, before, after)


def test_alignment_that_a_block_asks_for():
    @T.prim_func
    def func(A: T.Buffer((64, 64)), C: T.Buffer((64, 64))):
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                B = T.alloc_buffer((64, 64))
                for j, k in T.grid(8, 64):
                    with T.block("B"):
                        v = T.axis.spatial(64, vi * 8 + j)
                        w = T.axis.spatial(64, k)
                        T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
                        B[v, w] = A[v, w]
                for j, k in T.grid(8, 64):
                    with T.block("C"):
                        v = T.axis.spatial(64, vi * 8 + j)
                        w = T.axis.spatial(64, k)
                        C[v, w] = B[v, 63 - w]

    @T.prim_func
    def after(A: T.Buffer((64, 64)), C: T.Buffer((64, 64))):
        for i in range(8):
            B_data = T.allocate([519], "float32", "global")
            B = T.decl_buffer((8, 64), data=B_data, strides=(65, 1))
            for j, k in T.grid(8, 64):
                B[j, k] = A[i * 8 + j, k]
            for j, k in T.grid(8, 64):
                C[i * 8 + j, k] = B[j, 63 - k]

    same_program(lowered(func, compact_buffers), after)
    same_at_every_stage(func)
    same_native(func, after)


def test_strides_of_its_own_are_kept():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        for i in range(8):
            B_data = T.allocate([80], "float32", "global")
            B = T.decl_buffer((8, 8), data=B_data, strides=(10, 1))
            for j in range(8):
                B[i, j] = A[i, j]
            for j in range(8):
                C[i, j] = B[i, 7 - j]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        for i in range(8):
            B_data = T.allocate([8], "float32", "global")
            B = T.decl_buffer((1, 8), data=B_data, strides=(10, 1))
            for j in range(8):
                B[0, j] = A[i, j]
            for j in range(8):
                C[i, j] = B[0, 7 - j]

    check_all(compact_buffers, before, after)


def test_the_size_of_a_last_tile_is_bounded_by_a_whole_one():
    @T.prim_func
    def before(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range((n + 3) // 4):
            B = T.decl_buffer((n,))
            for j in range(T.min(4, n - i * 4)):
                B[i * 4 + j] = A[i * 4 + j]
            for j in range(T.min(4, n - i * 4)):
                C[i * 4 + j] = B[i * 4 + j] + T.float32(1)

    got = compact_buffers(before)
    assert allocated(got) == [[4]]
    same_results(before, got)


@pytest.mark.parametrize("is_size", [False, True])
def test_the_limit_of_a_type_is_no_size(is_size):
    @T.prim_func
    def before(a: T.handle, c: T.handle):
        m = T.int32(is_size_var=True)
        A = T.match_buffer(a, (m,))
        C = T.match_buffer(c, (m,))
        B = T.decl_buffer((m // 2,))
        for i, j in T.grid((m + 62) // 64, 32):
            if i * 32 + j < m // 2:
                B[i * 32 + j] = A[i * 32 + j]
        for i, j in T.grid((m + 62) // 64, 32):
            if i * 32 + j < m // 2:
                C[i * 32 + j] = B[i * 32 + j] + T.float32(1)

    @T.prim_func
    def triangle(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            B = T.decl_buffer((n,))
            for j in range(i // 2 + 1):
                B[j] = A[j]
            for j in range(i // 2 + 1):
                C[j] = B[j] + T.float32(1)

    unchanged(compact_buffers, before if is_size else triangle)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 13, 16])
def test_after_compute_at(n):
    @T.prim_func
    def func(A: T.Buffer((n,)), C: T.Buffer((n,))):
        B = T.alloc_buffer((n,))
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] * T.float32(2)
        for i in range(n):
            with T.block("C"):
                v = T.axis.spatial(n, i)
                C[v] = B[v] + T.float32(1)

    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
    sch.compute_at(sch.get_block("B"), outer)
    sch.sink_alloc(sch.get_block("B"), "B")
    scheduled = sch.mod["main"] if "main" in sch.mod else next(iter(sch.mod.functions.values()))
    assert all(size[0] <= 4 for size in allocated(lowered(scheduled, compact_buffers)))
    same_at_every_stage(scheduled)
    same_native(func, scheduled)


def test_blocks_come_first():
    @T.prim_func
    def func(A: T.Buffer((4,))):
        with T.block("A"):
            A[0] = T.float32(1)

    with pytest.raises(BlockNotLowered, match="compact_buffers: block A is still there"):
        compact_buffers(func)


def test_loops_whose_bounds_are_loaded():
    @T.prim_func
    def func(t: T.Buffer((1,), "int32"), D: T.Buffer((12,), "int32")):
        for k in range(2):
            B = T.decl_buffer((64,), "int32")
            t[0] = 5
            for j in range(t[0], t[0] + 4):
                B[j] = j
            t[0] = 7
            for j in range(t[0], t[0] + 2):
                D[j + k] = B[j] * 3

    unchanged(compact_buffers, func)
    same_at_every_stage(func)
    same_native(func, func)


def test_memory_seen_as_another_type_keeps_its_size():
    """The extents of the allocation count bytes, those of the buffer integers."""

    @T.prim_func
    def before(B: T.Buffer((10,), "int32")):
        data = T.allocate([1024], "int8", "global")
        A = T.decl_buffer((256,), "int32", data=data)
        for i in range(10):
            A[i] = i
        for i in range(10):
            B[i] = A[i]

    unchanged(compact_buffers, before)


def test_memory_that_threads_share_keeps_the_cells_of_all_of_them():
    @T.prim_func
    def bound(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                S = T.decl_buffer((4, 8), scope="shared")
                L = T.decl_buffer((4, 8), scope="local")
                S[ty, tx] = A[ty, tx]
                L[ty, tx] = S[ty, tx]
                B[ty, tx] = L[ty, tx]

    @T.prim_func
    def launched(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        ty = T.launch_thread("threadIdx.y", 4)
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((4, 8), scope="shared")
        L = T.decl_buffer((4, 8), scope="local")
        S[ty, tx] = A[ty, tx]
        L[ty, tx] = S[ty, tx]
        B[ty, tx] = L[ty, tx]

    for func in (bound, launched):
        sizes = {}
        body = compact_buffers(lower_blocks(write_allocations(func))).body
        for node in collect_statements(body, Allocate):
            sizes[node.buffer_var.name] = [int(extent) for extent in node.extents]
        assert sizes == {"S": [4, 8], "L": [1, 1]}


def test_threads_that_a_condition_leaves_bound_what_is_used():
    """A role's threads are counted from where they begin; the others need none of its memory."""

    @T.prim_func
    def before(A: T.Buffer((4, 32)), C: T.Buffer((4, 32))):
        for tx in T.thread_binding(96, thread="threadIdx.x"):
            for i in range(4):
                B = T.decl_buffer((96,), scope="shared")
                if tx >= 32 and tx < 64:
                    B[tx] = A[i, tx - 32]
                if tx >= 32 and tx < 64:
                    C[i, tx - 32] = B[tx]

    @T.prim_func
    def after(A: T.Buffer((4, 32)), C: T.Buffer((4, 32))):
        for tx in T.thread_binding(96, thread="threadIdx.x"):
            for i in range(4):
                B = T.decl_buffer((32,), scope="shared")
                if tx >= 32 and tx < 64:
                    B[tx - 32] = A[i, tx - 32]
                if tx >= 32 and tx < 64:
                    C[i, tx - 32] = B[tx - 32]

    same_program(compact_buffers(before), after)
    same_results(before, after)


def test_threads_of_the_other_case_are_all_of_them():
    @T.prim_func
    def before(A: T.Buffer((4, 64)), C: T.Buffer((4, 64))):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            for i in range(4):
                B = T.decl_buffer((64,), scope="shared")
                if tx < 32:
                    B[tx] = A[i, tx]
                else:
                    B[tx] = T.float32(1)
                C[i, tx] = B[tx]

    assert compact_buffers(before) is before


def test_a_condition_that_no_thread_meets_shrinks_nothing_away():
    @T.prim_func
    def before(A: T.Buffer((4, 64)), C: T.Buffer((4, 64))):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            for i in range(4):
                B = T.decl_buffer((64,), scope="shared")
                if tx >= 80:
                    B[tx - 80] = A[i, tx]
                B[tx] = A[i, tx]
                C[i, tx] = B[tx]

    assert compact_buffers(before) is before
