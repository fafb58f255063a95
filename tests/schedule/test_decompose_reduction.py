"""decompose_reduction: the init of a reduction as a block of its own."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.schedule import Schedule
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.primitives.compute.decompose_reduction import LoopNotAround, NothingToDecompose
from loopwright.schedule.rewrite.bindings import is_true
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


@T.prim_func
def row_sums(A: T.Buffer((4, 8)), C: T.Buffer(4)):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]


def test_the_init_stands_before_the_loop():
    sch = Schedule(row_sums)
    block = sch.get_block("C")
    init = sch.decompose_reduction(block, sch.get_loops(block)[1])

    @T.prim_func
    def expected(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        for i in range(4):
            with T.block("C_init"):
                vi = T.axis.spatial(4, i)
                C[vi] = 0.0
            for k in range(8):
                with T.block("C_update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vi, vk]

    check(sch, row_sums, expected)
    assert sch.get(init).name_hint == "C_init"
    assert sch.get(block).name_hint == "C_update"


def test_before_an_outer_loop_the_data_loops_are_mirrored():
    sch = Schedule(row_sums)
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 3])
    sch.unroll(inner)
    init = sch.decompose_reduction("C", outer)

    @T.prim_func
    def expected(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        for i_0_init in range(2):
            for i_1_init in T.unroll(3):
                with T.block("C_init"):
                    vi = T.axis.spatial(4, i_0_init * 3 + i_1_init)
                    T.where(i_0_init * 3 + i_1_init < 4)
                    C[vi] = 0.0
        for i_0 in range(2):
            for i_1 in T.unroll(3):
                for k in range(8):
                    with T.block("C_update"):
                        vi = T.axis.spatial(4, i_0 * 3 + i_1)
                        vk = T.axis.reduce(8, k)
                        T.where(i_0 * 3 + i_1 < 4)
                        C[vi] = C[vi] + A[vi, vk]

    check(sch, row_sums, expected)
    assert [loop.name for loop in sch.get_loops(init)] == ["i_0_init", "i_1_init"]


def test_inside_a_loop_that_carries_the_reduction_it_would_start_again():
    sch = Schedule(row_sums)
    i, k = sch.get_loops("C")
    outer, inner = sch.split(k, [2, 4])
    error = refused(sch, WouldChangeValues, r"C\[0\]", "decompose_reduction", "C", inner)
    assert "the caller" in str(error)
    sch.reorder(outer, i)
    refused(sch, WouldChangeValues, r"C\[0\]", "decompose_reduction", "C", i)
    sch.decompose_reduction("C", outer)
    check(sch, row_sums)


def test_data_and_reduction_fused():
    sch = Schedule(row_sums)
    fused = sch.fuse(*sch.get_loops("C"))
    outer, inner = sch.split(fused, [None, 5])
    sch.reorder(inner, outer)
    sch.decompose_reduction("C", inner)
    check(sch, row_sums)


def test_a_guard_on_the_reduction_alone_is_left_out():
    sch = Schedule(row_sums)
    i, k = sch.get_loops("C")
    outer, _ = sch.split(k, [None, 3])
    init = sch.decompose_reduction("C", outer)
    assert is_true(sch.view().realize(init.key).predicate)
    check(sch, row_sums)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_matmul_at_every_legal_loop(size):
    func = matmul(size, 3, 4)
    for depth in range(3):
        sch = Schedule(func)
        sch.decompose_reduction("C", sch.get_loops("C")[depth])
        check(sch, func)


def test_a_full_reduction_has_an_init_without_axes():
    A = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), "k")
    func = te.create_prim_func([A, te.compute((1,), lambda i: te.max(A[k], axis=k), name="C")])
    sch = Schedule(func)
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    check(sch, func)

    @T.prim_func
    def scalar(A: T.Buffer(6), C: T.Buffer(())):
        for k in range(6):
            with T.block("C"):
                vk = T.axis.reduce(6, k)
                with T.init():
                    C[()] = 0.0
                C[()] = C[()] + A[vk]

    sch = Schedule(scalar)
    init = sch.decompose_reduction("C", sch.get_loops("C")[0])
    assert sch.get(init).iter_vars == ()
    check(sch, scalar)


def test_pairs_are_started_together():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    argmax = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), tir.min_value(t1)),
        name="argmax",
    )
    index, value = te.compute((4,), lambda i: argmax((k.var, A[i, k]), axis=k), name="M")
    func = te.create_prim_func([A, index, value])
    sch = Schedule(func)
    sch.decompose_reduction("M", sch.get_loops("M")[1])
    check(sch, func)


def test_moving_on_from_there():
    func = chain(4, 5, 3, 2)
    sch = Schedule(func)
    m, l, k = sch.get_loops("D")
    sch.reorder(k, l)
    sch.decompose_reduction("D", k)
    sch.reverse_compute_at("E", m)
    check(sch, func)
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape).astype("float32") for shape in ((4, 3), (3, 5), (5, 2)))
    got = np.zeros((4, 2), "float32")
    loopwright.build(sch.mod)(a, b, c, got)
    np.testing.assert_allclose(got, np.exp(a.astype("float64") @ b) @ c, rtol=1e-4)


def test_refusals():
    func = chain()
    sch = Schedule(func)
    m = sch.get_loops("E")[0]
    refused(sch, NothingToDecompose, "block 'E' has no init", "decompose_reduction", "E", m)
    error = refused(sch, LoopNotAround, "loop m is not around block 'D'", "decompose_reduction", "D", m)
    assert "its loops are: m, l, k" in str(error)


def test_a_guard_on_a_loop_of_one_iteration_guards_the_init():
    """The axis is the outer loop alone, but the guard names the inner one as well."""
    sch = Schedule(row_sums)
    block = sch.get_block("C")
    outer, inner = sch.split(sch.get_loops(block)[0], [9, None])
    sch.decompose_reduction(block, inner)
    text = sch.mod["main"].script()
    assert text.count("T.where(i_0 + i_1") == 2
    check(sch, row_sums)


def test_a_condition_between_the_loop_and_the_block_is_refused():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        for i, k in T.grid(4, 8):
            if k < 6:
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(func)
    for loop in sch.get_loops("C"):
        problem = f"block 'C' stands in a IfThenElse inside loop {loop.name}"
        refused(sch, NothingToDecompose, problem, "decompose_reduction", "C", loop)


def test_a_guard_that_ties_the_reduction_to_a_loop_outside_says_which_cells_there_are():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), C: T.Buffer(4)):
        for i, k in T.grid(6, 4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(4, k)
                T.where(i + k < 4)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    @T.prim_func
    def expected(A: T.Buffer((4, 4)), C: T.Buffer(4)):
        for i in range(6):
            for k_init in range(4):
                with T.block("C_init"):
                    vi = T.axis.spatial(4, i)
                    T.where(i + k_init < 4)
                    C[vi] = 0.0
            for k in range(4):
                with T.block("C_update"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(4, k)
                    T.where(i + k < 4)
                    C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(func)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    check(sch, func, expected)


def test_an_init_is_not_moved_before_what_it_reads():
    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), S: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        B = T.alloc_buffer((4,), "int32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = S[vi] + 1
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        C[vi] = B[vi] * 2
                    C[vi] = C[vi] + A[vi, vj]

    sch = Schedule(main)
    with pytest.raises(WouldChangeValues, match=r"C_init reads B\[0\] before iteration \(vi=0\) of B writes it"):
        sch.decompose_reduction("C", sch.get_loops("C")[0])
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    (read,) = sch.get(sch.get_block("C_init")).reads
    assert read.buffer.name == "B"


def test_what_is_allocated_in_the_loop_stays_there():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        for i, k in T.grid(4, 8):
            S = T.decl_buffer((1,), scope="local")
            with T.block("S"):
                vi, vk = T.axis.remap("SS", [i, k])
                S[0] = A[vi, vk] * 2.0
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + S[0]

    sch = Schedule(func)
    init = sch.decompose_reduction("C", sch.get_loops("C")[1])
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(init)] == ["i"]
    check(sch, func)


def test_an_init_that_uses_what_the_loop_allocates_stays():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        for i, k in T.grid(4, 8):
            S = T.decl_buffer((1,), scope="local")
            with T.block("S"):
                vi, vk = T.axis.remap("SS", [i, k])
                S[0] = A[vi, vk] * 2.0
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = S[0]
                C[vi] = C[vi] + S[0]

    sch = Schedule(func)
    problem = "has an init that uses buffers of the block's own"
    refused(sch, NothingToDecompose, problem, "decompose_reduction", "C", sch.get_loops("C")[1])
