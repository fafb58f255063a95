"""stage: a window of a buffer copied into a new one at a loop, perhaps in another layout."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, WouldChangeValues, WouldRace
from loopwright.schedule.primitives.memory.stage import InitOutsideWindow
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, check_replay, matmul, refused


def tiled(m=7, n=6, k=5):
    """The matrix product in tiles of 4 × 3, the reduction in slabs of 2."""
    before = matmul(m, n, k)
    sch = tir.Schedule(before)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 3])
    r0, r1 = sch.split(r, [None, 2])
    sch.reorder(i0, j0, r0, i1, j1, r1)
    return before, sch, block, (i0, j0, r0, i1, j1, r1)


def test_a_window_is_copied_at_the_start_of_the_loop():
    before = matmul(8, 6, 4)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [2, 4])
    copy = sch.stage("C", i0, "A")

    @T.prim_func
    def expected(A: T.Buffer((8, 4)), B: T.Buffer((4, 6)), C: T.Buffer((8, 6))):
        T.func_attr({"tir.noalias": True})
        for i_0 in range(2):
            A_stage = T.decl_buffer((4, 4))
            for ax0, ax1 in T.grid(4, 4):
                with T.block("A_stage"):
                    o0, v0, v1 = T.axis.remap("SSS", [i_0, ax0, ax1])
                    T.reads(A[o0 * 4 + v0, v1])
                    T.writes(A_stage[v0, v1])
                    A_stage[v0, v1] = A[o0 * 4 + v0, v1]
            for i_1, j, k in T.grid(4, 6, 4):
                with T.block("C"):
                    vi = T.axis.spatial(8, i_0 * 4 + i_1)
                    vj, vk = T.axis.remap("SR", [j, k])
                    T.reads(A_stage[vi % 4, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A_stage[vi % 4, vk] * B[vk, vj]

    check(sch, before, expected)
    assert [loop.name for loop in sch.get_loops(copy)] == ["i_0", "ax0", "ax1"]


def test_packed_panels_have_their_own_layout_and_guarded_tails():
    before, sch, block, (i0, _, r0, *_) = tiled()
    sch.stage(block, r0, "A", layout=lambda i, k: (i // 2, k, i % 2))
    panel = sch.get(sch.get_block("A_stage")).writes[0].buffer
    assert [int(extent) for extent in panel.shape] == [2, 2, 2]
    check(sch, before)


def test_a_layout_that_does_not_divide_is_padded():
    before = matmul(7, 6, 5)
    sch = tir.Schedule(before)
    i, *_ = sch.get_loops("C")
    sch.stage("C", sch.add_unit_loop(i), "A", layout=lambda i, k: (i // 4, k, i % 4))
    panel = sch.get(sch.get_block("A_stage")).writes[0].buffer
    assert [int(extent) for extent in panel.shape] == [2, 5, 4]
    check(sch, before)


def test_a_layout_that_loses_elements_is_refused():
    _, sch, block, (i0, *_) = tiled()
    error = refused(
        sch, WouldChangeValues, "stage would change a value", "stage", block, i0, "A", layout=lambda i, k: (i, k // 2)
    )
    assert "A" in error.why and "iteration" in error.why


def test_an_output_is_copied_out_after_the_loops_body():
    before = matmul(4, 6, 5)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    copy = sch.stage("C", j, "C", "local")

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), B: T.Buffer((5, 6)), C: T.Buffer((4, 6))):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(4, 6):
            C_stage = T.decl_buffer((1, 1), scope="local")
            for k in range(5):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C_stage[0, 0])
                    with T.init():
                        C_stage[0, 0] = T.float32(0)
                    C_stage[0, 0] = C_stage[0, 0] + A[vi, vk] * B[vk, vj]
            for ax0, ax1 in T.grid(1, 1):
                with T.block("C_stage"):
                    # Copies of what changes while the loops run are told apart by their iteration.
                    o0, o1, v0, v1 = T.axis.remap("SSSS", [i, j, ax0, ax1])
                    T.reads(C_stage[0, 0])
                    T.writes(C[o0, o1])
                    C[o0, o1] = C_stage[0, 0]

    check(sch, before, expected)
    assert sch.get(copy).name_hint == "C_stage"


def test_an_updated_window_is_copied_in_and_out():
    before, sch, block, (i0, j0, r0, *_) = tiled()
    refused(sch, InitOutsideWindow, r"reduction 'C' goes on over loop k_0", "stage", block, r0, "C")
    sch.decompose_reduction(block, r0)
    first = sch.stage(block, r0, "C", "local")
    assert [sch.get(b).name_hint for b in (first, sch.get_block("C_unstage"))] == ["C_stage", "C_unstage"]
    check_replay(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_staging_twice_goes_through_both_copies():
    before, sch, block, (i0, j0, r0, i1, *_) = tiled()
    sch.stage(block, i0, "A", layout=lambda i, k: (k, i))
    sch.stage(block, r0, "A_stage", "local")
    check(sch, before)


def test_a_window_that_stands_still_is_copied_once_further_out():
    before, sch, block, (i0, j0, r0, *_) = tiled()
    copy = sch.stage(block, i0, "B")
    assert [loop.name for loop in sch.get_loops(copy)] == ["i_0", "ax0", "ax1"]
    check(sch, before)


def test_a_stencils_window_has_its_halo():
    A = te.placeholder((10,), name="A")
    before = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")])
    sch = tir.Schedule(before)
    i0, _ = sch.split(sch.get_loops("B")[0], [None, 3])
    sch.stage("B", i0, "A")
    window = sch.get(sch.get_block("A_stage")).writes[0].buffer
    assert [int(extent) for extent in window.shape] == [5]
    check(sch, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("extent", "tile"), [(1, 1), (1, 4), (3, 4), (4, 4), (5, 4), (13, 4), (13, 5)])
def test_boundary_shapes(extent, tile):
    before = matmul(extent, 3, extent)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, tile])
    k0, k1 = sch.split(k, [None, tile])
    sch.reorder(i0, k0, i1, j, k1)
    sch.stage("C", k0, "A", layout=lambda i, k: (i // 2, k, i % 2))
    sch.stage("C", k0, "B", layout=lambda k, j: (j, k))
    check(sch, before)


def test_a_fused_loop_tells_where_its_window_is():
    before = matmul(4, 6, 5)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    sch.stage("C", sch.fuse(i, j), "A")
    check(sch, before)


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    before = te.create_prim_func([A, te.compute((n, 8), lambda i, j: A[i, j] * 2.0, name="B")])
    sch = tir.Schedule(before)
    i, _ = sch.get_loops("B")
    i0, _ = sch.split(i, [None, 4])
    sch.stage("B", i0, "A")
    sch.stage("B", i0, "B")
    check_replay(sch, before)
    for size in (1, 3, 4, 9):
        a = np.arange(size * 8, dtype=np.float32).reshape(size, 8)
        b = np.zeros_like(a)
        lw.build(sch.mod)(a, b)
        np.testing.assert_array_equal(b, a * 2)


def test_a_layout_of_symbolic_sizes():
    n = te.size_var("n")
    A = te.placeholder((n, 8), name="A")
    k = te.reduce_axis((0, n), name="k")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((8,), lambda j: te.sum(A[k, j], axis=k), name="B")]))
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 8])
    staged = sch.stage("B", outer, "A", layout=lambda k, j: (j // 4, k, j % 4))
    shape = [str(size) for size in sch.get(staged).writes[0].buffer.shape]
    assert shape == ["2", "n", "4"]
    for size in (1, 5):
        a = np.arange(size * 8, dtype=np.float32).reshape(size, 8)
        b = np.zeros(8, np.float32)
        lw.build(sch.mod)(a, b)
        np.testing.assert_array_equal(b, a.sum(0))


def test_only_the_block_reads_the_window():
    before = chain()
    sch = tir.Schedule(before)
    m, _ = sch.get_loops("E")
    sch.stage("E", m, "D")
    sch.stage("F", sch.get_loops("F")[0], "E")
    check(sch, before)


def test_the_window_is_private_to_an_iteration_so_the_loop_may_be_parallel():
    before, sch, block, (i0, *_) = tiled()
    sch.stage(block, i0, "B")
    sch.parallel(i0)
    check(sch, before)


def test_a_panel_shared_by_parallel_iterations_is_refused_with_both_and_the_cell():
    _, sch, block, (i0, *_) = tiled()
    copy = sch.stage(block, i0, "A")
    sch.lift_alloc(copy, "A_stage")
    error = refused(sch, WouldRace, "parallel: loop i_0", "parallel", i0)
    assert "i_0 = 0 and i_0 = 1" in error.why and "A_stage[0, 0]" in error.why


def test_copy_loops_are_ordinary_loops():
    before, sch, block, (i0, *_) = tiled(m=8, n=6, k=4)
    copy = sch.stage(block, i0, "B")
    _, ax0, ax1 = sch.get_loops(copy)
    sch.reorder(ax1, ax0)
    outer, inner = sch.split(ax1, [None, 3])
    sch.unroll(outer)
    sch.vectorize(ax0)
    check(sch, before)


def test_what_is_not_there_is_refused():
    _, sch, block, (i0, *_) = tiled()
    refused(sch, NoSuchBuffer, r"block 'C' touches no buffer 'X'", "stage", block, i0, "X")
    refused(sch, NoSuchBuffer, r"touches 3 buffers, so there is none at 7", "stage", block, i0, 7)
    refused(sch, BadStepArgument, r"there is no memory scope 'fast'", "stage", block, i0, "A", "fast")
    refused(sch, BadStepArgument, r"the map takes 1 index, A has 2", "stage", block, i0, "A", layout=lambda i: (i,))
    refused(sch, BadStepArgument, r"goes down to -", "stage", block, i0, "A", layout=lambda i, k: (i - 9, k))
    other = tir.Schedule(chain())
    loop = other.get_loops("F")[0]
    refused(other, BadStepArgument, r"loop m is not around block 'E'", "stage", "E", loop, "D")


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


def test_a_copy_stands_where_its_buffer_exists():
    sch, loop = with_guarded_memory()
    sch.stage("C", loop, "B")
    check(sch, doubled_twice)


@T.prim_func
def declared_only(A: T.Buffer((4,), "int32"), I: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi], I[vi])
            T.writes(C[vi])
            C[vi] = A[vi]


def test_a_buffer_that_is_only_declared_has_no_window():
    sch = tir.Schedule(declared_only)
    loops = sch.get_loops("C")
    refused(sch, NotSupported, "declares I, but neither reads nor writes it", "stage", "C", loops[0], "I")


@T.prim_func
def lines_of_seven(A: T.Buffer(28), B: T.Buffer(28)):
    for y, p in T.grid(4, 7):
        with T.block("B"):
            v = T.axis.spatial(28, y * 7 + p)
            B[v] = A[v] * T.float32(2)


def test_a_window_where_loops_leave_a_gap():
    """Two whole pieces of three, then a step of seven: y and p are digits of v all the same."""
    sch = tir.Schedule(lines_of_seven)
    y, p = sch.get_loops("B")
    pieces, _ = sch.split(p, [None, 3], tail="peel")[:2]
    sch.stage("B", pieces, "A", "local")
    assert "A_stage[v - v // 7 * 7 - v % 7 // 3 * 3]" in sch.mod.script()
    check_replay(sch, lines_of_seven)
    assert_same_numbers(sch.mod["main"], lines_of_seven)


@T.prim_func
def lower_triangle(A: T.Buffer((3, 3), "int32"), C: T.Buffer((3, 3), "int32")):
    for i, j in T.grid(3, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j < i + 1)
            C[vi, vj] = A[vj, vi] + C[vj, vi]


def test_where_isl_fails_in_a_check_of_its_own_the_step_is_not_proved():
    sch = tir.Schedule(lower_triangle)
    sch.reorder(*reversed(sch.get_loops("C")))
    inner = sch.get_loops("C")[1]
    refused(
        sch, NotProved, "could not be proved", "stage", "C", inner, 1, layout=lambda i, j: (i, j * 2 % 3)
    )


def test_a_loop_that_begins_where_another_says_is_told_from_both():
    @T.prim_func
    def main(A: T.Buffer((12, 12), "int32"), B: T.Buffer((12, 12), "int32")):
        for i in range(3):
            for j in range(i):
                for k in T.serial(j, j + 1):
                    with T.block("B"):
                        v0 = T.axis.opaque(12, i - j + 4)
                        v1 = T.axis.opaque(12, j)
                        v2 = T.axis.opaque(12, k + i)
                        B[v0, v1] = B[v0, v1] + A[v0 // 2, v2]

    sch = tir.Schedule(main)
    sch.stage("B", sch.get_loops("B")[2], 0)
    check(sch, main)
