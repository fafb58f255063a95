"""blockize: a nest, or blocks in a row, as one block over whole tiles."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.evaluator import evaluate
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.primitives.compute.blockize import NotInARow, TileNotWhole
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused


@T.prim_func
def double(A: T.Buffer((8, 12)), B: T.Buffer((8, 12))):
    for i, j in T.grid(8, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def test_a_tile_of_a_plain_block():
    sch = Schedule(double)
    i, j = sch.get_loops("B")
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 6])
    sch.reorder(i_0, j_0, i_1, j_1)
    outer = sch.blockize(i_1)

    @T.prim_func
    def expected(A: T.Buffer((8, 12)), B: T.Buffer((8, 12))):
        for i_0, j_0 in T.grid(2, 2):
            with T.block("B_o"):
                vi_o, vj_o = T.axis.remap("SS", [i_0, j_0])
                T.reads(A[vi_o * 4 : vi_o * 4 + 4, vj_o * 6 : vj_o * 6 + 6])
                T.writes(B[vi_o * 4 : vi_o * 4 + 4, vj_o * 6 : vj_o * 6 + 6])
                for i_1, j_1 in T.grid(4, 6):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i_1, j_1])
                        T.reads(A[vi_o * 4 + vi, vj_o * 6 + vj])
                        T.writes(B[vi_o * 4 + vi, vj_o * 6 + vj])
                        B[vi_o * 4 + vi, vj_o * 6 + vj] = A[vi_o * 4 + vi, vj_o * 6 + vj] * 2.0

    check(sch, double, expected)
    assert sch.get(outer).name_hint == "B_o"
    assert [loop.name for loop in sch.get_loops(outer)] == ["i_0", "j_0"]
    assert [loop.name for loop in sch.get_loops("B")] == ["i_1", "j_1"]


def tiled(m: int = 8, n: int = 12, k: int = 6) -> tuple[Schedule, list]:
    sch = Schedule(matmul(m, n, k))
    i, j, r = sch.get_loops("C")
    parts = [*sch.split(i, [None, 4]), *sch.split(j, [None, 6]), *sch.split(r, [None, 3])]
    i_0, i_1, j_0, j_1, k_0, k_1 = parts
    sch.reorder(i_0, j_0, k_0, i_1, j_1, k_1)
    return sch, [i_0, j_0, k_0, i_1, j_1, k_1]


def test_the_start_value_moves_out_with_the_reduction():
    sch, loops = tiled()
    outer = sch.blockize(loops[3])

    @T.prim_func
    def expected(A: T.Buffer((8, 6)), B: T.Buffer((6, 12)), C: T.Buffer((8, 12))):
        T.func_attr({"tir.noalias": True})
        for i_0, j_0, k_0 in T.grid(2, 2, 2):
            with T.block("C_o"):
                vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
                T.reads(
                    A[vi_o * 4 : vi_o * 4 + 4, vk_o * 3 : vk_o * 3 + 3],
                    B[vk_o * 3 : vk_o * 3 + 3, vj_o * 6 : vj_o * 6 + 6],
                )
                T.writes(C[vi_o * 4 : vi_o * 4 + 4, vj_o * 6 : vj_o * 6 + 6])
                with T.init():
                    for i_1_init, j_1_init in T.grid(4, 6):
                        with T.block("C_init"):
                            vi, vj = T.axis.remap("SS", [i_1_init, j_1_init])
                            T.reads()
                            T.writes(C[vi_o * 4 + vi, vj_o * 6 + vj])
                            C[vi_o * 4 + vi, vj_o * 6 + vj] = T.float32(0)
                for i_1, j_1, k_1 in T.grid(4, 6, 3):
                    with T.block("C"):
                        vi, vj, vk = T.axis.remap("SSR", [i_1, j_1, k_1])
                        T.reads(
                            C[vi_o * 4 + vi, vj_o * 6 + vj],
                            A[vi_o * 4 + vi, vk_o * 3 + vk],
                            B[vk_o * 3 + vk, vj_o * 6 + vj],
                        )
                        T.writes(C[vi_o * 4 + vi, vj_o * 6 + vj])
                        C[vi_o * 4 + vi, vj_o * 6 + vj] = (
                            C[vi_o * 4 + vi, vj_o * 6 + vj]
                            + A[vi_o * 4 + vi, vk_o * 3 + vk] * B[vk_o * 3 + vk, vj_o * 6 + vj]
                        )

    check(sch, matmul(8, 12, 6), expected)
    assert sch.get(outer).name_hint == "C_o"


def test_an_axis_whose_tile_is_one_value_is_the_outer_block_s():
    sch = Schedule(double)
    i, j = sch.get_loops("B")
    block = sch.get_block("B")
    sch.blockize(j)
    assert [str(region) for region in sch.get(block).writes] == ["B[vi_o, vj]"]
    assert [axis.var.name for axis in sch.get(block).iter_vars] == ["vj"]  # the handle follows
    check(sch, double)


def test_an_axis_whose_tile_depends_on_a_loop_keeps_its_domain():
    @T.prim_func
    def triangle(A: T.Buffer((6, 6)), B: T.Buffer((6, 6))):
        for i in range(6):
            for j in range(i, 6):
                with T.block("B"):
                    vi, vj = T.axis.spatial(6, i), T.axis.spatial(6, j)
                    B[vi, vj] = A[vi, vj] + 1.0

    sch = Schedule(triangle)
    sch.blockize(sch.get_loops("B")[0])
    assert [str(region) for region in sch.get(sch.get_block("B")).writes] == ["B[vi, vj]"]
    check(sch, triangle)


def test_later_steps_are_proved_as_before():
    sch, (i_0, j_0, k_0, i_1, j_1, k_1) = tiled()
    sch.blockize(i_1)
    sch.reorder(k_0, i_0)
    sch.parallel(j_0)
    sch.reorder(k_1, i_1)
    sch.vectorize(j_1)
    check(sch, matmul(8, 12, 6))
    a, b = np.random.default_rng(0).integers(0, 9, (2, 8, 6)).astype("float32")[0], np.ones((6, 12), "float32")
    c, d = np.zeros((8, 12), "float32"), np.zeros((8, 12), "float32")
    loopwright.build(sch.mod)(a, b, c)
    evaluate(matmul(8, 12, 6), a, b, d)
    np.testing.assert_array_equal(c, d)


def test_a_start_value_of_a_tile_as_a_block_of_its_own():
    sch, (i_0, j_0, k_0, i_1, *_) = tiled()
    outer = sch.blockize(i_1)
    sch.decompose_reduction(outer, k_0)
    check(sch, matmul(8, 12, 6))


def test_a_whole_reduction_in_one_tile():
    sch = Schedule(matmul(4, 6, 5))
    i, j, k = sch.get_loops("C")
    sch.blockize(j)
    check(sch, matmul(4, 6, 5))


def test_axes_of_one_iteration():
    sch = Schedule(matmul(4, 6, 5))
    outer = sch.blockize(sch.get_loops("C")[1])
    assert [axis.var.name for axis in sch.get(outer).iter_vars] == ["v_i_o", "v_j_o", "v_k_o"]
    sch = Schedule(matmul(4, 6, 5))
    outer = sch.blockize(sch.get_loops("C")[1], preserve_unit_iters=False)
    (around,) = sch.view().blocks_below(sch.view().root.block.body)
    assert [str(value) for value in around.iter_values] == ["i", "0", "0"]
    assert [str(region) for region in around.block.writes] == ["C[v_i_o, 0:6]"]
    check(sch, matmul(4, 6, 5))


def test_a_block_without_loops():
    sch = Schedule(double)
    outer = sch.blockize(["B"])
    check(sch, double)
    assert [int(axis.dom.extent) for axis in sch.get(outer).iter_vars] == [8, 12]
    again = Schedule(double)
    again.blockize("B")
    check(again, double)


def test_a_guard_outside_stays_outside():
    @T.prim_func
    def guarded(A: T.Buffer((10, 4), "int32"), B: T.Buffer((10, 4), "int32")):
        for i, j in T.grid(12, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                vj = T.axis.spatial(4, j)
                T.where(i < 10)
                B[vi, vj] = A[vi, vj]

    sch = Schedule(guarded)
    sch.blockize(sch.get_loops("B")[1])
    check(sch, guarded)


def test_blocks_in_a_row():
    @T.prim_func
    def two(A: T.Buffer((8, 8)), D: T.Buffer((8, 8))):
        B = T.alloc_buffer((8, 8))
        for i, j_0 in T.grid(8, 2):
            for j_1 in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j_0 * 4 + j_1)
                    B[vi, vj] = A[vi, vj] + 1.0
            for j_1 in range(4):
                with T.block("D"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j_0 * 4 + j_1)
                    D[vi, vj] = B[vi, vj] * 2.0

    sch = Schedule(two)
    outer = sch.blockize([sch.get_block("B"), sch.get_block("D")])

    @T.prim_func
    def expected(A: T.Buffer((8, 8)), D: T.Buffer((8, 8))):
        B = T.alloc_buffer((8, 8))
        for i, j_0 in T.grid(8, 2):
            with T.block("outer_B_D_"):
                vi_o, vj_o = T.axis.remap("SS", [i, j_0])
                T.reads(A[vi_o, vj_o * 4 : vj_o * 4 + 4], B[vi_o, vj_o * 4 : vj_o * 4 + 4])
                T.writes(B[vi_o, vj_o * 4 : vj_o * 4 + 4], D[vi_o, vj_o * 4 : vj_o * 4 + 4])
                for j_1 in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(8, vi_o)
                        vj = T.axis.spatial(8, vj_o * 4 + j_1)
                        T.reads(A[vi, vj])
                        T.writes(B[vi, vj])
                        B[vi, vj] = A[vi, vj] + 1.0
                for j_1 in range(4):
                    with T.block("D"):
                        vi = T.axis.spatial(8, vi_o)
                        vj = T.axis.spatial(8, vj_o * 4 + j_1)
                        T.reads(B[vi, vj])
                        T.writes(D[vi, vj])
                        D[vi, vj] = B[vi, vj] * 2.0

    check(sch, two, expected)
    assert sch.get(outer).name_hint == "outer_B_D_"


def test_reductions_in_a_row():
    before = chain(4, 5, 3, 2)
    sch = Schedule(before)
    sch.blockize(["D", "E"])
    check(sch, before)


# --- refusals -----------------------------------------------------------------------------------------------------


def test_tiles_that_do_not_divide():
    sch = Schedule(double)
    i, j = sch.get_loops("B")
    j_0, j_1 = sch.split(j, [None, 5])
    message = r"the guard j_0 \* 5 \+ j_1 < 12 .* cuts tiles over the loops j_1 short"
    refused(sch, TileNotWhole, message, "blockize", j_1)


def test_loops_of_a_tile_must_be_inside():
    sch = Schedule(double)
    i, j = sch.get_loops("B")
    j_0, j_1 = sch.split(j, [None, 6])
    sch.reorder(j_1, j_0)
    error = refused(sch, TileNotWhole, "axis vj = j_0 \\* 6 \\+ j_1 of block 'B' does not divide", "blockize", j_0)
    assert error.fields["block"] == "B"


def test_loops_with_several_blocks():
    sch = Schedule(chain())
    m = sch.get_loops("D")[0]
    sch.compute_at("E", sch.get_loops("F")[0])
    refused(sch, NotSupported, "must hold loops and one block; its blocks are: E, F", "blockize", sch.get_loops("F")[0])
    sch.blockize(m)


def test_blocks_that_do_not_stand_in_a_row():
    sch = Schedule(chain())
    refused(sch, NotInARow, "blocks D, F do not stand one right after the other", "blockize", ["D", "F"])
    outer = sch.blockize(sch.get_loops("D")[1])
    assert sch.get(outer).name_hint == "D_o"
    refused(sch, NotInARow, "stand in different blocks", "blockize", ["D", "E"])


def test_a_reduction_that_goes_on_outside_of_a_row():
    @T.prim_func
    def two(A: T.Buffer((4, 8), "int32"), B: T.Buffer(4, "int32"), D: T.Buffer((4, 8), "int32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
            with T.block("D"):
                vi, vk = T.axis.remap("SS", [i, k])
                D[vi, vk] = A[vi, vk]

    sch = Schedule(two)
    refused(sch, TileNotWhole, "the reduction of block 'B' goes on over loops outside", "blockize", ["B", "D"])


@pytest.mark.parametrize("target", [[], 3])
def test_what_is_no_loop_and_no_blocks(target):
    sch = Schedule(double)
    refused(sch, BadStepArgument, "expected a loop, or a list of blocks", "blockize", target)


# --- axes that do not start at 0 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [True, False])
def test_an_axis_that_counts_from_elsewhere_keeps_its_start(keep):
    @T.prim_func
    def before(A: T.Buffer((7, 4)), B: T.Buffer((7, 4))):
        for i in range(2, 6):
            for j in range(4):
                with T.block("B"):
                    vi = T.axis.spatial((1, 5), i - 1)
                    vj = T.axis.spatial(4, j)
                    B[vi, vj] = A[vi, vj] * 2.0

    sch = Schedule(before)
    sch.blockize(sch.get_loops("B")[1], preserve_unit_iters=keep)
    axis = sch.get(sch.get_block("B_o")).iter_vars[0]
    assert (int(axis.dom.min), int(axis.dom.extent)) == (1, 4)
    check(sch, before)


def test_tiles_that_count_from_elsewhere():
    @T.prim_func
    def before(A: T.Buffer(24), B: T.Buffer(24)):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi = T.axis.spatial(24, i * 4 + j + 8)
                B[vi] = A[vi] * 2.0

    sch = Schedule(before)
    outer = sch.blockize(sch.get_loops("B")[1])
    (axis,) = sch.get(outer).iter_vars
    assert (int(axis.dom.min), int(axis.dom.extent)) == (2, 4)
    check(sch, before)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_reduction_that_counts_from_elsewhere_starts_at_its_first_tile(depth):
    @T.prim_func
    def before(A: T.Buffer((3, 12)), C: T.Buffer(3)):
        for i, k_0, k_1 in T.grid(3, 2, 4):
            with T.block("C"):
                vi = T.axis.spatial((1, 4), i + 1)
                vk = T.axis.reduce((4, 12), k_0 * 4 + k_1 + 4)
                with T.init():
                    C[vi - 1] = 0.0
                C[vi - 1] = C[vi - 1] + A[vi - 1, vk]

    sch = Schedule(before)
    sch.blockize(sch.get_loops("C")[depth])
    check(sch, before)


def test_the_tail_of_a_split():
    before = chain(10)
    sch = Schedule(before)
    sch.split(sch.get_loops("E")[0], [None, 4], tail="peel")
    sch.blockize([sch.get_block("E_tail")])
    check(sch, before)


def test_blocks_in_a_row_that_count_from_elsewhere():
    @T.prim_func
    def before(A: T.Buffer(8), C: T.Buffer(8), D: T.Buffer(8)):
        for i in range(3):
            with T.block("C"):
                vi = T.axis.spatial(8, i + 5)
                C[vi] = A[vi] + 1.0
            with T.block("D"):
                vi = T.axis.spatial(8, i + 5)
                D[vi] = C[vi] * 2.0

    sch = Schedule(before)
    outer = sch.blockize([sch.get_block("C"), sch.get_block("D")])
    (axis,) = sch.get(outer).iter_vars
    assert (int(axis.dom.min), int(axis.dom.extent)) == (5, 3)
    check(sch, before)


def test_the_inside_of_a_padding():
    @T.prim_func
    def before(A: T.Buffer((2, 1), "int32"), B: T.Buffer((4, 2), "int32")):
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi >= 1 and vi < 3 and vj < 1, A[vi - 1, vj], 0)

    sch = Schedule(before)
    sch.decompose_padding("B", sch.get_loops("B")[0])
    sch.blockize(sch.get_loops("B")[1], preserve_unit_iters=False)
    check(sch, before)


def test_a_guard_that_skips_the_first_of_a_reduction():
    @T.prim_func
    def before(A: T.Buffer((3, 6)), C: T.Buffer(3)):
        for i, k, j in T.grid(3, 6, 1):
            with T.block("C"):
                vi, vk, vj = T.axis.spatial(3, i), T.axis.reduce((1, 6), k), T.axis.reduce(1, j)
                T.where(k >= 1)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk + vj]

    sch = Schedule(before)
    refused(sch, TileNotWhole, "do not divide into tiles over the loops j", "blockize", sch.get_loops("C")[2])


def test_a_loop_whose_length_depends_on_loops_outside_is_no_tile():
    @T.prim_func
    def as_often_as_told(S: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            for j in range(T.min(T.max(S[i], 0), 2)):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.opaque(2, j)
                    B[vi] = B[vi] * 2 + vj

    sch = Schedule(as_often_as_told)
    for units in (True, False):
        with pytest.raises(TileNotWhole, match="depends on loops outside"):
            sch.blockize(sch.get_loops("B")[1], preserve_unit_iters=units)


@T.prim_func
def pairs_as_often_as_told(S: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for j in range(T.min(T.max(S[i], 0), 2)):
            for k in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.opaque(4, j * 2 + k)
                    B[vi] = B[vi] * 2 + vj


def test_the_domain_of_an_axis_depends_on_neither_loops_nor_data():
    sch = Schedule(pairs_as_often_as_told)
    loop = sch.get_loops("B")[2]
    refused(sch, TileNotWhole, "how many tiles axis vj has depends on loops or data", "blockize", loop)
    sch.unroll(loop)
    sch.blockize([sch.get_block("B")])
    (axis,) = [axis for axis in sch.get(sch.get_block("B_o")).iter_vars if axis.var.name == "vj_o"]
    assert axis.dom.extent.value == 4
    sch.blockize([sch.get_block("B_o")])
    assert_same_numbers(sch.mod["main"], pairs_as_often_as_told)


def test_an_outer_part_of_one_value_that_loops_inside_decide():
    @T.prim_func
    def fused(A: T.Buffer((13, 5), "int32"), B: T.Buffer((13, 5), "int32")):
        for f0, f1, f2 in T.grid(1, 61, 2):
            with T.block("B"):
                vi = T.axis.spatial(13, f0 * 24 + (f0 * 2 + f1 * 2 + f2) // 5)
                vj = T.axis.spatial(5, (f0 * 2 + f1 * 2 + f2) % 5)
                T.where((f0 * 61 + f1) * 2 + f2 < 65)
                B[vi, vj] = A[vi, vj] * 3

    sch = Schedule(fused)
    sch.blockize(sch.get_loops("B")[0], preserve_unit_iters=False)
    check(sch, fused)


def test_an_axis_stays_in_its_domain_where_no_loop_inside_runs():
    @T.prim_func
    def from_minus_one(B: T.Buffer((12, 12), "int32"), n: T.int32, m: T.int32):
        for i in range(n):
            for j in T.serial(i - 1, i - 1 + n):
                for k in range(T.min(m - 1, 5)):
                    with T.block("B"):
                        vi, vk = T.axis.remap("SS", [i, k])
                        vj = T.axis.spatial(12, j)
                        B[vi, vj] = vk

    sch = Schedule(from_minus_one)
    with pytest.raises(TileNotWhole, match="axis vj may leave its domain where no loop inside runs"):
        sch.blockize(sch.get_loops("B")[2], preserve_unit_iters=False)


def test_the_domain_of_an_axis_inside_names_no_loop_outside():
    @T.prim_func
    def band(B: T.Buffer((12, 12), "int32")):
        for i in range(4):
            for j in T.serial(i, i + 3):
                for k in range(5):
                    with T.block("B"):
                        vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                        B[vi, vj] = vk

    sch = Schedule(band)
    with pytest.raises(TileNotWhole, match="the domain of axis vj depends on loops outside the tile"):
        sch.blockize(sch.get_loops("B")[2])


def test_an_axis_that_no_loop_of_the_tile_moves_may_count_in_any_way():
    @T.prim_func
    def windows(A: T.Buffer((8, 8, 4), "int32"), B: T.Buffer((36, 3, 3, 4), "int32")):
        S = T.alloc_buffer((8, 8, 4), "int32")
        for f, kh, kw in T.grid(36, 3, 3):
            for c in range(4):
                with T.block("S"):
                    vh = T.axis.spatial(8, f // 6 + kh)
                    vw = T.axis.spatial(8, f % 6 + kw)
                    vc = T.axis.spatial(4, c)
                    S[vh, vw, vc] = A[vh, vw, vc]
            for c in range(4):
                with T.block("B"):
                    vf, vkh, vkw, vc = T.axis.remap("SSSS", [f, kh, kw, c])
                    B[vf, vkh, vkw, vc] = S[vf // 6 + vkh, vf % 6 + vkw, vc]

    sch = Schedule(windows)
    outer = sch.blockize(sch.get_loops("S")[3])
    text = str(sch.mod)
    assert "vh_o = T.axis.spatial(8, f // 6 + kh)" in text and "vw_o = T.axis.spatial(8, f % 6 + kw)" in text
    assert sch.get(outer).name_hint == "S_o"
    check(sch, windows)


def test_where_no_iteration_of_the_tile_runs_such_an_axis_may_leave_its_domain():
    @T.prim_func
    def some(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32"), n: T.int32):
        for f, g in T.grid(8, 8):
            for c in range(T.min(n, 4)):
                with T.block("B"):
                    v = T.axis.spatial(8, f + g)
                    vc = T.axis.spatial(4, c)
                    T.where(f + g < 8)
                    B[v, vc] = A[v, vc]

    sch = Schedule(some)
    with pytest.raises(TileNotWhole):
        sch.blockize(sch.get_loops("B")[2])
