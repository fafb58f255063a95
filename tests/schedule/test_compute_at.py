"""compute_at: the producer's nest under the consumer's loop, over what one iteration needs."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues, WouldRace
from loopwright.schedule.rewrite.iteration_domain import NotOnItsOwnTerms
from loopwright.schedule.rewrite.relocate import HasEffects, NothingUnderLoop, NotInOneScope
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, check_replay, refused


@T.prim_func
def two_steps(A: T.Buffer(10), C: T.Buffer(10)):
    B = T.alloc_buffer(10)
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] + 1.0
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi] * 2.0


def stencil(n: int = 8, width: int = 3) -> PrimFunc:
    A = te.placeholder((n + width - 1,), name="A")
    B = te.compute((n + width - 1,), lambda i: A[i] + 1, name="B")
    C = te.compute((n,), lambda i: B[i] + B[i + width - 1], name="C")
    return te.create_prim_func([A, C])


def test_compute_at_computes_what_a_tile_needs():
    sch = Schedule(two_steps)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", outer)

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(10)):
        B = T.alloc_buffer(10)
        for i_0 in range(3):
            for ax0 in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(10, i_0 * 4 + ax0)
                    T.where(i_0 * 4 + ax0 < 10)
                    B[vi] = A[vi] + 1.0
            for i_1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(10, i_0 * 4 + i_1)
                    T.where(i_0 * 4 + i_1 < 10)
                    C[vi] = B[vi] * 2.0

    check(sch, two_steps, expected)


def test_compute_at_leaves_out_loops_of_one_iteration_unless_asked():
    sch = Schedule(two_steps)
    sch.compute_at("B", sch.get_loops("C")[0])

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(10)):
        B = T.alloc_buffer(10)
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi] + 1.0
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = B[vi] * 2.0

    check(sch, two_steps, expected)

    sch = Schedule(two_steps)
    sch.compute_at("B", sch.get_loops("C")[0], preserve_unit_loops=True)
    assert [loop.name for loop in sch.get_loops("B")] == ["i", "ax0"]
    check(sch, two_steps)


def test_compute_at_recomputes_a_halo():
    func = stencil(8, 3)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [2, 4])
    sch.compute_at("B", outer)

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(8)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer(10)
        for i_0 in range(2):
            for ax0 in range(6):
                with T.block("B"):
                    vi = T.axis.spatial(10, i_0 * 4 + ax0)
                    B[vi] = A[vi] + T.float32(1)
            for i_1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(8, i_0 * 4 + i_1)
                    C[vi] = B[vi] + B[vi + 2]

    check(sch, func, expected)


def test_compute_at_of_padding_keeps_within_what_there_is():
    n = 5
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    C = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), B[i - 1], 0.0), name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])

    @T.prim_func
    def expected(A: T.Buffer(5), C: T.Buffer(7)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer(5)
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(5, i - 1)
                T.where(1 <= i and i < 6)
                B[vi] = A[vi] * T.float32(2)
            with T.block("C"):
                vi = T.axis.spatial(7, i)
                C[vi] = T.if_then_else(vi >= 1 and vi < 6, B[vi - 1], T.float32(0))

    check(sch, func, expected)


def test_a_reduction_keeps_its_loops_inside():
    func = chain()
    sch = Schedule(func)
    m = sch.get_loops("F")[0]
    sch.compute_at("E", m)
    sch.compute_at("D", m)
    assert [loop.name for loop in sch.get_loops("D")] == ["m", "ax0", "ax1"]
    check(sch, func)
    tile, _ = sch.split(sch.get_loops("D")[1], [None, 2])
    assert tile.name == "ax0_0"
    check(sch, func)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7])
def test_the_chain_at_tiles_of_four(size):
    func = chain(size, 3, 2, 3)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("F")[0], [None, 4])
    sch.compute_at("E", outer)
    sch.compute_at("D", outer)
    check(sch, func)


def test_compute_at_runs_natively():
    func = chain(13, 9, 7, 5)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("F")[0], [None, 4])
    sch.compute_at("E", outer)
    sch.compute_at("D", outer)
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape).astype("float32") for shape in ((13, 7), (7, 9), (9, 5)))
    got = np.zeros((13, 5), "float32")
    loopwright.build(sch.mod)(a, b, c, got)
    np.testing.assert_allclose(got, np.exp(a.astype("float64") @ b) @ c, rtol=1e-4)


def test_indices_that_divide_reverse_and_stride():
    X = te.placeholder((4, 4), name="X")
    P = te.compute((4, 4), lambda y, x: X[y, x] + 1, name="P")
    R = te.compute((16,), lambda f: P[f // 4, f % 4], name="R")
    S = te.compute((4,), lambda f: R[15 - 4 * f], name="S")
    func = te.create_prim_func([X, S])
    sch = Schedule(func)
    loop = sch.get_loops("S")[0]
    sch.compute_at("R", loop)
    assert len(sch.get_loops("R")) == 1  # one element an iteration
    sch.compute_at("P", loop)
    assert len(sch.get_loops("P")) == 1
    check(sch, func)


def test_two_consumers_share_what_is_computed():
    A = te.placeholder((12,), name="A")
    B = te.compute((12,), lambda i: A[i] + 1, name="B")
    C = te.compute((10,), lambda i: B[i] * 2, name="C")
    D = te.compute((10,), lambda i: B[i + 2] + C[i], name="D")
    func = te.create_prim_func([A, D])
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("D")[0], [5, 2])
    sch.compute_at("C", outer)
    sch.compute_at("B", outer)
    assert sch.get(sch.get_loops("B")[-1]).extent.value == 4  # elements 0 to 3 of a tile
    check(sch, func)


def test_a_consumer_left_behind_is_named():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((3,), lambda i: B[i] * 2, name="C")
    D = te.compute((6,), lambda i: B[i] * 3, name="D")
    sch = Schedule(te.create_prim_func([A, C, D]))
    loop = sch.get_loops("C")[0]
    match = r"iteration \(v_i=3\) of D reads B\[3\], but iteration \(v_i=3\) of B no longer writes it"
    refused(sch, WouldChangeValues, match, "compute_at", "B", loop)


def test_an_output_may_move_when_all_of_it_is_still_computed():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((6,), lambda i: B[i] * 2, name="C")
    func = te.create_prim_func([A, B, C])
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    check(sch, func)


@T.prim_func
def three_in_a_loop(A: T.Buffer((4, 6)), E: T.Buffer((4, 6))):
    B = T.alloc_buffer((4, 6))
    D = T.alloc_buffer((4, 6))
    for i in range(4):
        for j in range(6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
        for j in range(6):
            with T.block("E0"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] * 2.0
    for i in range(4):
        for j in range(6):
            with T.block("E1"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = E[vi, vj] + D[vi, vj]


def test_the_slot_may_be_chosen():
    for index, place in ((-1, 0), (-2, 0), (0, 0)):
        sch = Schedule(three_in_a_loop)
        sch.compute_at("D", sch.get_loops("E1")[0], index=index)
        names = [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_loops("E1")[0])]
        assert names.index("D") == place
        check(sch, three_in_a_loop)
    sch = Schedule(three_in_a_loop)
    match = r"iteration \(vi=0, vj=0\) of E1 reads D\[0, 0\] before iteration \(vi=0, vj=0\) of D writes it"
    refused(sch, WouldChangeValues, match, "compute_at", "D", sch.get_loops("E1")[0], index=1)
    refused(
        sch,
        BadStepArgument,
        "index 7, but loop i holds 1 statements",
        "compute_at",
        "D",
        sch.get_loops("E1")[0],
        index=7,
    )
    refused(sch, BadStepArgument, "index -5", "compute_at", "D", sch.get_loops("E1")[0], index=-5)


def test_compute_at_above_a_needed_producer_is_refused_with_a_witness():
    @T.prim_func
    def func(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        C = T.alloc_buffer((4, 6))
        for i in range(4):
            for j in range(6):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + 1.0
            for j in range(6):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, 5 - vj]
            for j in range(6):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = C[vi, vj] * 2.0

    sch = Schedule(func)
    i, j = sch.get_loops("D")
    match = r"iteration \(vi=0, vj=0\) of C reads B\[0, 5\] before iteration \(vi=0, vj=5\) of B writes it"
    refused(sch, WouldChangeValues, match, "compute_at", "C", i, index=0)
    sch.compute_at("C", j)
    check(sch, func)
    sch.compute_at("C", i, index=-2)  # out again, to where it was
    check(sch, func)


def test_a_recurrence_in_the_consumer_order_is_refused():
    @T.prim_func
    def func(A: T.Buffer(8), C: T.Buffer(8)):
        B = T.alloc_buffer(8)
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[7 - vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                A[vi] = B[vi] * 2.0
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]

    sch = Schedule(func)
    error = refused(sch, WouldChangeValues, "compute_at would change a value", "compute_at", "B", sch.get_loops("C")[0])
    assert "iteration (vi=4) of B reads A[3]" in str(error)


def test_a_halo_under_a_parallel_loop_is_computed_by_each_iteration():
    func = stencil(8, 3)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [2, 4])
    sch.parallel(outer)
    sch.compute_at("B", outer)  # neighbours write the same cells: each in memory of its own
    check(sch, func)


def test_a_halo_under_lanes_needs_memory_first():
    func = stencil(8, 3)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [2, 4])
    sch.vectorize(outer)
    error = refused(sch, WouldRace, "would touch the same cell", "compute_at", "B", outer)
    assert error.hint == (
        'compute_at before vectorize, and sink_alloc("B", "B") between them: '
        "each iteration of i_0 then has a B of its own (proved)"
    )
    sch.undo()
    sch.compute_at("B", outer)
    sch.sink_alloc("B", "B")
    sch.vectorize(outer)
    check(sch, func)


def test_an_output_that_parallel_loops_share_has_no_hint():
    @T.prim_func
    def func(A: T.Buffer(10), B: T.Buffer(10), C: T.Buffer(8)):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[vi + 2]

    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [2, 4])
    sch.parallel(outer)
    error = refused(sch, WouldRace, "would touch the same cell", "compute_at", "B", outer)
    assert not error.hint and "hint" not in str(error)


def test_a_window_read_at_a_fixed_place_too_is_computed_by_tiles():
    A = te.placeholder((12, 12), name="A")
    P = te.compute((12, 12), lambda i, j: A[i, j] + 1.0, name="P")
    d, e = te.reduce_axis((0, 5), name="d"), te.reduce_axis((0, 5), name="e")
    N = te.compute((8, 8), lambda i, j: te.sum(P[i + d, j + e] - P[i + 2, j + 2], axis=[d, e]), name="N")
    func = te.create_prim_func([A, N])
    sch = Schedule(func)
    i, j, _, _ = sch.get_loops("N")
    i_0, i_1 = sch.split(i, [None, 2])
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(i_0, j_0, i_1, j_1)
    sch.compute_at("P", j_0)
    assert [sch.get(loop).extent.value for loop in sch.get_loops("P")] == [4, 2, 6, 8]
    check_replay(sch, func)


def test_symbolic_sizes():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + 1.0
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[vi] * 2.0

    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", outer)
    check_replay(sch, func)
    for n in (0, 1, 4, 5):
        a, c = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        loopwright.build(sch.mod)(a, c)
        np.testing.assert_array_equal(c, (a + 1) * 2)


def test_wide_indices():
    @T.prim_func
    def func(A: T.Buffer((T.int64(6),)), C: T.Buffer((T.int64(6),))):
        B = T.alloc_buffer((T.int64(6),))
        for i in range(T.int64(6)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(6), i)
                B[vi] = A[vi] + 1.0
        for i in range(T.int64(6)):
            with T.block("C"):
                vi = T.axis.spatial(T.int64(6), i)
                C[vi] = B[vi] * 2.0

    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", outer)
    check(sch, func)


def test_a_triangle_is_computed_as_a_triangle():
    @T.prim_func
    def func(A: T.Buffer((5, 5)), C: T.Buffer((5, 5))):
        B = T.alloc_buffer((5, 5))
        for i, j in T.grid(5, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
        for i in range(5):
            for j in range(i + 1):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] * 2.0

    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert "for ax0 in range(i + 1)" in sch.mod.script()
    check(sch, func)


def test_conditions_of_the_old_loops_are_said_again():
    @T.prim_func
    def func(A: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        B = T.alloc_buffer((6, 6))
        for i, j in T.grid(6, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(j <= i)
                B[vi, vj] = A[vi, vj] + 1.0
        for i, j in T.grid(6, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(vj <= vi, B[vi, vj], 0.0)

    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert "T.where(ax0" in sch.mod.script()
    check(sch, func)


def test_refusals_before_anything_is_built():
    @T.prim_func
    def func(A: T.Buffer(4), F: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            if F[i] > 0.0:
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    sch = Schedule(func)
    refused(sch, NotOnItsOwnTerms, r"block 'B' runs only where", "compute_at", "B", sch.get_loops("C")[0])
    sch = Schedule(two_steps)
    b, c = sch.get_loops("B")[0], sch.get_loops("C")[0]
    refused(sch, NothingUnderLoop, "under loop i reads what is written by output block 'C'", "compute_at", "C", b)
    refused(sch, NotSupported, "loop i is an ancestor of block 'B'", "compute_at", "B", b)
    refused(sch, NotSupported, "the root block cannot move", "compute_at", "root", c)


def test_a_loop_of_another_block_is_refused():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        B = T.alloc_buffer((4, 4))
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                for j in range(4):
                    with T.block("C"):
                        wi, wj = T.axis.spatial(4, vi), T.axis.spatial(4, j)
                        C[wi, wj] = B[wi, wj]

    sch = Schedule(func)
    inner = sch.get_loops("C")[0]
    refused(sch, NotInOneScope, "block 'B' and loop j are not in the same block scope", "compute_at", "B", inner)
    sch.compute_at("B", sch.get_loops("outer")[0])
    check(sch, func)


def test_effects_stay_where_they_are():
    @T.prim_func
    def func(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.call_extern("float32", "tick", A[vi])
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    sch = Schedule(func)
    refused(sch, HasEffects, "does more than give a value", "compute_at", "B", sch.get_loops("C")[0])


def test_a_copy_of_a_copy_stays_in_its_iteration_of_the_loops_around_both():
    """The tile in shared memory is there once for each j: an axis of the second copy tells these apart."""
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    func = te.create_prim_func([A, B, te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")])
    sch = Schedule(func)
    i, j, k0 = sch.get_loops("C")
    (i, i1), (j, j1), (k0, k1) = [sch.split(loop, [None, 4]) for loop in (i, j, k0)]
    k1, k2 = sch.split(k1, [2, None])
    sch.reorder(i, j, k0, k1, i1, j1, k2)
    shared = sch.cache_read("C", 0, "shared")
    sch.compute_at(shared, k0)
    own = sch.cache_read("C", 0, "local")
    sch.compute_at(own, k1)
    assert "o0 = T.axis.opaque(2, j_0)" in str(sch.mod)
    assert [sch.get(loop).extent for loop in sch.get_loops(own)[4:]] == [4, 2]
    check(sch, func)
