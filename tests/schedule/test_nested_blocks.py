"""Blocks in blocks, and blocks without axes: their instances are told apart, and steps on them are proved."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.primitives.compute.blockize import TileNotWhole
from loopwright.schedule.rewrite.iteration_domain import NotOnItsOwnTerms
from loopwright.script import tir as T
from tests.schedule.steps import check, refused


@T.prim_func
def tiles(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
    B = T.alloc_buffer((8, 8))
    for io, jo in T.grid(4, 2):
        with T.block("B_o"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for i, j in T.grid(2, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vio * 2 + vi, vjo * 4 + vj] = A[vio * 2 + vi, vjo * 4 + vj] + 1.0
    for io, jo in T.grid(4, 2):
        with T.block("C_o"):
            wio, wjo = T.axis.remap("SS", [io, jo])
            for i, j in T.grid(2, 4):
                with T.block("C"):
                    wi, wj = T.axis.remap("SS", [i, j])
                    C[wio * 2 + wi, wjo * 4 + wj] = B[wio * 2 + wi, wjo * 4 + wj] * 2.0


@T.prim_func
def rows(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            R = T.alloc_buffer((8,))
            for j in range(8):
                with T.block("R"):
                    vj = T.axis.spatial(8, j)
                    R[vj] = A[vi, vj] + 1.0
            for j in range(8):
                with T.block("C"):
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] = R[7 - vj] * 2.0


@T.prim_func
def without_axes(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
    B = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("B"):
            B[i, j] = A[i, j] + 1.0
    for i, j in T.grid(4, 8):
        with T.block("C"):
            C[i, j] = B[i, 7 - j] * 2.0


@T.prim_func
def last_wins(A: T.Buffer((4, 4)), C: T.Buffer((4,))):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            C[(i + j) % 4] = A[i, j]


# --- blocks in blocks ---------------------------------------------------------------------------------------------

LOOP_STEPS = {
    "reorder": lambda sch, block: sch.reorder(*reversed(sch.get_loops(block))),
    "split": lambda sch, block: sch.split(sch.get_loops(block)[1], [None, 2]),
    "fuse": lambda sch, block: sch.fuse(*sch.get_loops(block)),
    "parallel": lambda sch, block: sch.parallel(sch.get_loops(block)[0]),
    "vectorize": lambda sch, block: sch.vectorize(sch.get_loops(block)[1]),
    "unroll_and_jam": lambda sch, block: sch.unroll_and_jam(sch.get_loops(block)[0], 2),
}
BLOCK_STEPS = {
    "cache_read": lambda sch, block: sch.cache_read(block, 0, "global"),
    "cache_write": lambda sch, block: sch.cache_write(block, 0, "global"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("block", ["B_o", "B", "C_o", "C"])
@pytest.mark.parametrize("step", [*LOOP_STEPS, *BLOCK_STEPS])
def test_steps_on_inner_and_outer_blocks(block, step):
    sch = tir.Schedule(tiles)
    {**LOOP_STEPS, **BLOCK_STEPS}[step](sch, block)
    assert sch.is_proved
    check(sch, tiles)


def test_reordered_and_cached():
    sch = tir.Schedule(tiles)
    sch.reorder(*reversed(sch.get_loops("C")))
    sch.cache_read("C", 0, "local")
    sch.reorder(*reversed(sch.get_loops("C_o")))
    check(sch, tiles)


def test_an_outer_block_moves():
    sch = tir.Schedule(tiles)
    sch.compute_at("B_o", sch.get_loops("C_o")[1])
    sch.parallel(sch.get_loops("C_o")[0])
    check(sch, tiles)
    sch = tir.Schedule(tiles)
    sch.reverse_compute_at("C_o", sch.get_loops("B_o")[0])
    check(sch, tiles)
    sch = tir.Schedule(tiles)
    sch.merge(sch.get_loops("B_o")[1], sch.get_loops("C_o")[1])
    check(sch, tiles)


def test_memory_of_an_outer_block():
    sch = tir.Schedule(rows)
    sch.cache_read("C", 0, "local")
    sch.cache_write("R", 0, "local")
    sch.parallel(sch.get_loops("row")[0])
    sch.vectorize(sch.split(sch.get_loops("C")[0], [None, 4])[1])
    check(sch, rows)


def test_what_an_inner_block_computes_is_inlined():
    @T.prim_func
    def straight(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                R = T.alloc_buffer((8,))
                for j in range(8):
                    with T.block("R"):
                        vj = T.axis.spatial(8, j)
                        R[vj] = A[vi, vj] + 1.0
                for j in range(8):
                    with T.block("C"):
                        vj = T.axis.spatial(8, j)
                        C[vi, vj] = R[vj] * 2.0

    sch = tir.Schedule(straight)
    sch.compute_inline("R")
    check(sch, straight)


def test_inner_order_that_matters_is_kept():
    sch = tir.Schedule(rows)
    refused(sch, WouldChangeValues, "merge", "merge", sch.get_loops("R")[0], sch.get_loops("C")[0])

    @T.prim_func
    def scan(A: T.Buffer((5, 4)), X: T.Buffer((4, 4))):
        for i in range(4):
            with T.block("step"):
                vi = T.axis.opaque(4, i)
                for j in range(4):
                    with T.block("A"):
                        vj = T.axis.spatial(4, j)
                        A[vi + 1, vj] = A[vi, 3 - vj] + X[vi, vj]

    sch = tir.Schedule(scan)
    sch.parallel(sch.get_loops("A")[0])
    with pytest.raises(Exception, match="would touch the same cell"):
        sch.parallel(sch.get_loops("step")[0])


@pytest.mark.parametrize("decomposed", [False, True])
def test_a_blockized_matmul(decomposed):
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] + 1.0, name="D")
    before = te.create_prim_func([A, B, D])
    sch = tir.Schedule(before)
    i, j, r = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 4])
    r_0, r_1 = sch.split(r, [None, 4])
    sch.reorder(i_0, j_0, r_0, i_1, j_1, r_1)
    if decomposed:
        sch.decompose_reduction("C", r_0)
    outer = sch.blockize(i_1)
    sch.reverse_compute_at("D", sch.get_loops(outer)[1])
    sch.reorder(*reversed(sch.get_loops(outer)[:2]))
    (inner, *_) = sch.get_child_blocks(outer)
    sch.vectorize(sch.get_loops(inner)[1])
    sch.parallel(sch.get_loops(outer)[0])
    check(sch, before)


# --- blocks without axes ------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("block", ["B", "C"])
@pytest.mark.parametrize("step", [*LOOP_STEPS, *BLOCK_STEPS])
def test_steps_on_blocks_without_axes(block, step):
    sch = tir.Schedule(without_axes)
    {**LOOP_STEPS, **BLOCK_STEPS}[step](sch, block)
    assert sch.is_proved
    check(sch, without_axes)


def test_loops_that_only_part_of_a_name_uses():
    @T.prim_func
    def sums(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("zero"):
                C[i] = 0.0
        for i, j in T.grid(4, 8):
            with T.block("C"):
                C[i] = C[i] + A[i, j]

    sch = tir.Schedule(sums)
    sch.merge(sch.get_loops("zero")[0], sch.get_loops("C")[0])
    check(sch, sums)
    sch = tir.Schedule(sums)
    sch.split(sch.get_loops("C")[1], [None, 3])
    sch.cache_read("C", 1, "local")
    check(sch, sums)


def test_two_nests_of_blocks_without_axes():
    sch = tir.Schedule(without_axes)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    sch.parallel(sch.get_loops("B")[0])
    check(sch, without_axes)
    sch = tir.Schedule(without_axes)
    refused(sch, WouldChangeValues, "merge", "merge", sch.get_loops("B")[1], sch.get_loops("C")[1])


def test_cells_written_twice_keep_their_last_write():
    sch = tir.Schedule(last_wins)
    error = refused(sch, WouldChangeValues, "reorder", "reorder", *reversed(sch.get_loops("C")))
    assert "of C wrote, not iteration" in error.why


def test_a_block_without_axes_has_no_loops_to_take_along():
    sch = tir.Schedule(without_axes)
    refused(
        sch,
        NotOnItsOwnTerms,
        "with i, a loop variable that no axis is bound to",
        "compute_at",
        "B",
        sch.get_loops("C")[0],
    )


def test_no_axes_inside_a_block_that_has_them():
    @T.prim_func
    def both(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
            with T.block("C"):
                C[i] = A[i]

    sch = tir.Schedule(both)
    refused(sch, TileNotWhole, "block 'C' uses loop i, which no axis is bound to", "blockize", ["B", "C"])


def test_blocks_of_one_name_get_names_of_their_own():
    @T.prim_func
    def twins(A: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("C"):
                C[i] = A[i]
        for i in range(4):
            with T.block("C"):
                C[i] = C[i] + A[3 - i]
        for i in range(4):
            with T.block("C_1"):
                C[i] = C[i] * 2.0

    sch = tir.Schedule(twins)
    assert sch.view().block_names() == ["root", "C", "C_2", "C_1"]
    sch.merge(sch.get_loops("C")[0], sch.get_loops("C_2")[0])
    check(sch, twins)
    swapped = tir.Schedule(twins)
    refused(swapped, WouldChangeValues, "merge", "merge", swapped.get_loops("C")[0], swapped.get_loops("C_1")[0])
