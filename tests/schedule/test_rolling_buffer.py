"""rolling_buffer: iterations that need overlapping rows keep them in a circular buffer."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, WouldChangeValues
from loopwright.schedule.primitives.memory.rolling_buffer import NothingRolls
from loopwright.schedule.rewrite.allocations import NotOurMemory
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, matmul, refused


def stencil(n: int = 16, taps: int = 3):
    A = te.placeholder((n + taps - 1,), name="A")
    B = te.compute((n + taps - 1,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: sum([B[i + k] for k in range(taps)], start=B[i]), name="C")
    return te.create_prim_func([A, C])


def tiled(before, tile: int = 4):
    sch = tir.Schedule(before)
    i_0, _ = sch.split(sch.get_loops("C")[0], [None, tile])
    sch.compute_at("B", i_0)
    return sch


def test_a_circular_buffer():
    before = stencil(16)
    sch = tiled(before)
    sch.rolling_buffer("B", 0)

    @T.prim_func
    def expected(A: T.Buffer(18), C: T.Buffer(16)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer((6,))
        for i_0 in range(4):
            for ax0 in range(6):
                with T.block("B"):
                    vi = T.axis.opaque(18, i_0 * 4 + ax0)
                    T.where(i_0 < 1 or ax0 >= 2)
                    T.reads(A[vi])
                    T.writes(B[vi % 6])
                    B[vi % 6] = A[vi] + T.float32(1)
            for i_1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(16, i_0 * 4 + i_1)
                    T.reads(B[0:6])
                    T.writes(C[vi])
                    C[vi] = B[vi % 6] + B[vi % 6] + B[(vi + 1) % 6] + B[(vi + 2) % 6]

    check(sch, before, expected)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("n", "tile", "taps"), [(2, 1, 2), (5, 2, 2), (7, 4, 3), (13, 4, 4), (8, 1, 3), (9, 3, 2)])
def test_odd_sizes(n, tile, taps):
    before = stencil(n, taps)
    sch = tiled(before, tile)
    sch.rolling_buffer("B", "B")
    check(sch, before)


@pytest.mark.parametrize("size", [6, 7, 8, 16])
def test_more_rows_than_needed(size):
    before = stencil(16)
    sch = tiled(before)
    sch.rolling_buffer("B", 0, size)
    check(sch, before)


@pytest.mark.parametrize(("size", "row"), [(1, 5), (2, 4), (5, 5)])
def test_too_few_rows_are_refused_with_a_witness(size, row):
    sch = tiled(stencil(16))
    error = refused(sch, WouldChangeValues, "rolling_buffer would change a value", "rolling_buffer", "B", 0, size)
    assert f"iteration (v_i={row}) of B has overwritten what iteration (v_i=0) of B wrote" in error.why


def test_two_dimensions():
    n = 6
    A = te.placeholder((n + 2, n + 2), name="A")
    B = te.compute((n + 2, n + 2), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, n), lambda i, j: B[i, j] + B[i + 2, j + 2], name="C")
    before = te.create_prim_func([A, C])
    sch = tir.Schedule(before)
    i, j = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 2])
    j_0, j_1 = sch.split(j, [None, 3])
    sch.reorder(i_0, j_0, i_1, j_1)
    sch.compute_at("B", j_0)
    sch.rolling_buffer("B", 0)
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [int(extent) for extent in buffer.shape] == [4, 8]  # rows roll along i_0, columns stay
    check(sch, before)


def test_it_runs_natively():
    before = stencil(64)
    sch = tiled(before, 8)
    sch.rolling_buffer("B", 0)
    A, one, other = np.arange(66, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    loopwright.build(before)(A, one)
    loopwright.build(sch.mod)(A, other)
    np.testing.assert_array_equal(one, other)


def test_the_iterations_depend_on_each_other_now():
    sch = tiled(stencil(16))
    sch.rolling_buffer("B", 0)
    with pytest.raises(tir.ScheduleError, match="same cell"):
        sch.parallel(sch.get_loops("C")[0])


def test_what_is_refused():
    sch = tir.Schedule(stencil(16))
    refused(sch, NothingRolls, "there is no loop around all uses of B", "rolling_buffer", "B", 0)
    refused(sch, NotOurMemory, "C is an argument", "rolling_buffer", "C", 0)
    refused(sch, BadStepArgument, "size is 0", "rolling_buffer", "B", 0, 0)
    whole = tiled(stencil(16, 1))
    refused(
        whole, NothingRolls, "loops i_0 around all uses of B have no iterations that share", "rolling_buffer", "B", 0
    )
    refused(tir.Schedule(matmul()), NotOurMemory, "C is an argument", "rolling_buffer", "C", 0)


def pools(n: int = 8, reducer=te.max):
    """Two pools of three in a row."""
    A = te.placeholder((n + 4,), name="A")
    k, l = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "l")
    B = te.compute((n + 2,), lambda i: reducer(A[i + k], axis=k), name="B")
    C = te.compute((n,), lambda i: reducer(B[i + l], axis=l), name="C")
    return te.create_prim_func([A, C])


def test_rows_of_a_reduction():
    before = pools(8)
    sch = tiled(before, 2)
    sch.rolling_buffer("B", 0)

    @T.prim_func
    def expected(A: T.Buffer(12), C: T.Buffer(8)):
        T.func_attr({"tir.noalias": True})
        B = T.decl_buffer((4,))
        for i_0 in range(4):
            for ax0, ax1 in T.grid(4, 3):
                with T.block("B"):
                    vi = T.axis.opaque(10, i_0 * 2 + ax0)
                    vk = T.axis.reduce(3, ax1)
                    T.where(i_0 < 1 or ax0 >= 2)
                    T.reads(A[vi + vk])
                    T.writes(B[vi % 4])
                    with T.init():
                        B[vi % 4] = T.float32("-inf")
                    B[vi % 4] = T.max(B[vi % 4], A[vi + vk])
            for i_1, l in T.grid(2, 3):
                with T.block("C"):
                    vi = T.axis.spatial(8, i_0 * 2 + i_1)
                    vl = T.axis.reduce(3, l)
                    T.reads(B[(vi + vl) % 4])
                    T.writes(C[vi])
                    with T.init():
                        C[vi] = T.float32("-inf")
                    C[vi] = T.max(C[vi], B[(vi + vl) % 4])

    check(sch, before, expected)
    assert sch.is_proved
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("n", "tile"), [(5, 2), (7, 3), (8, 1), (9, 4)])
@pytest.mark.parametrize("reducer", [te.sum, te.max])
def test_reductions_of_odd_sizes(n, tile, reducer):
    before = pools(n, reducer)
    sch = tiled(before, tile)
    sch.rolling_buffer("B", 0)
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_a_reduction_with_its_init_apart():
    before = pools(8)
    sch = tiled(before, 2)
    sch.decompose_reduction("B", sch.get_loops("B")[-1])
    sch.rolling_buffer("B_update", 0)
    check(sch, before)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_too_few_rows_of_a_reduction_are_refused(size):
    sch = tiled(pools(8), 2)
    refused(sch, WouldChangeValues, "rolling_buffer would change a value", "rolling_buffer", "B", 0, size)


def test_tiles_of_two_pools_in_two_dimensions():
    n, channels = 6, 2
    A = te.placeholder((n + 4, n + 4, channels), name="A")
    axes = [te.reduce_axis((0, 3), name) for name in ("kh", "kw", "lh", "lw")]
    kh, kw, lh, lw = axes
    B = te.compute((n + 2, n + 2, channels), lambda y, x, c: te.max(A[y + kh, x + kw, c], axis=[kh, kw]), name="B")
    C = te.compute((n, n, channels), lambda y, x, c: te.max(B[y + lh, x + lw, c], axis=[lh, lw]), name="C")
    before = te.create_prim_func([A, C])
    sch = tir.Schedule(before)
    y, x, *_ = sch.get_loops("C")
    y_0, y_1 = sch.split(y, [None, 2])
    x_0, x_1 = sch.split(x, [None, 3])
    sch.reorder(y_0, x_0, y_1, x_1)
    sch.compute_at("B", x_0)
    sch.rolling_buffer("B", 0)
    check(sch, before)
    assert sch.is_proved
    data = np.random.default_rng(0).normal(size=(n + 4, n + 4, channels)).astype("float32")
    result, wanted = np.zeros((n, n, channels), "float32"), np.zeros((n, n, channels), "float32")
    loopwright.build(sch.mod)(data, result)
    loopwright.build(before)(data, wanted)
    np.testing.assert_array_equal(result, wanted)


def test_a_flow_that_isl_gives_up_on_is_no_error_of_isl():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i0 in range(3):
        for ax in range(4):
            with T.block("B"):
                vi = T.axis.spatial(8, i0 * 2 + ax)
                B[vi] = A[vi] + 1
        for i1 in range(2):
            with T.block("C"):
                vi = T.axis.spatial(6, i0 * 2 + i1)
                C[vi] = B[vi] + B[vi + 2]
""")
    sch = tir.Schedule(program)
    sch.unroll_and_jam(sch.get_loops("B")[0], 2)
    refused(sch, NotProved, "the flow through B cannot be followed", "rolling_buffer", "B", 0)


def test_a_block_in_a_block_is_refused():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i0 in range(3):
        for ax in range(4):
            with T.block("B_o"):
                vo, vx = T.axis.remap("SS", [i0, ax])
                with T.block("B"):
                    vi = T.axis.spatial(8, vo * 2 + vx)
                    B[vi] = A[vi] + 1
        for i1 in range(2):
            with T.block("C"):
                vi = T.axis.spatial(6, i0 * 2 + i1)
                C[vi] = B[vi] + B[vi + 2]
""")
    why = "block 'B_o', which writes B, has blocks inside"
    refused(tir.Schedule(program), NotSupported, why, "rolling_buffer", "B_o", 0)


def test_what_else_the_block_writes_counts():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((5,), "int32")):
    B = T.alloc_buffer((5,), "int32")
    for ii in range(3):
        for io in range(2):
            with T.block("first"):
                vi = T.axis.spatial(5, io * 3 + ii)
                T.where(io * 3 + ii < 5)
                B[vi] = vi
                C[vi] = vi
        for io in range(2):
            with T.block("second"):
                vi = T.axis.spatial(5, io * 3 + ii)
                T.where(io * 3 + ii < 5)
                B[vi] = B[vi] + 1
                C[vi] = C[vi] + 1
""")
    refused(tir.Schedule(program), WouldChangeValues, r"the caller reads C\[1\]", "rolling_buffer", "first", 0)
