"""reverse_compute_at: the consumer's nest under the producer's loop, over what one iteration made."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.schedule.rewrite.relocate import NothingUnderLoop
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, refused


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


def test_the_consumer_follows_a_tile():
    sch = Schedule(two_steps)
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.reverse_compute_at("C", outer)

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(10)):
        B = T.alloc_buffer(10)
        for i_0 in range(3):
            for i_1 in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(10, i_0 * 4 + i_1)
                    T.where(i_0 * 4 + i_1 < 10)
                    B[vi] = A[vi] + 1.0
            for ax0 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(10, i_0 * 4 + ax0)
                    T.where(i_0 * 4 + ax0 < 10)
                    C[vi] = B[vi] * 2.0

    check(sch, two_steps, expected)


def test_unit_loops_may_be_kept():
    sch = Schedule(two_steps)
    sch.reverse_compute_at("C", sch.get_loops("B")[0], preserve_unit_loops=True)
    assert [loop.name for loop in sch.get_loops("C")] == ["i", "ax0"]
    check(sch, two_steps)


def test_a_stencil_follows_at_a_distance():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])

    @T.prim_func
    def expected(A: T.Buffer(6), C: T.Buffer(4)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer(6)
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] + T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(4, i - 2)
                T.where(2 <= i)
                C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    check(sch, func, expected)


def test_a_window_reduction_follows_at_a_distance():
    X, W = te.placeholder((6, 6), name="X"), te.placeholder((3, 3), name="W")
    P = te.compute((6, 6), lambda y, x: X[y, x] * 2, name="P")
    ry, rx = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    Y = te.compute((4, 4), lambda y, x: te.sum(P[y + ry, x + rx] * W[ry, rx], axis=[ry, rx]), name="Y")
    func = te.create_prim_func([X, W, Y])
    sch = Schedule(func)
    sch.reverse_compute_at("Y", sch.get_loops("P")[0])
    assert [loop.name for loop in sch.get_loops("Y")] == ["y", "ax0", "ax1", "ax2"]
    check(sch, func)


def test_a_reduction_may_follow_along_its_reduce_axis():
    func = chain(3, 4, 2, 2)
    sch = Schedule(func)
    m, l = sch.get_loops("E")
    sch.reverse_compute_at("F", l)
    assert [loop.name for loop in sch.get_loops("F")] == ["m", "l", "ax0"]
    check(sch, func)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 7])
def test_the_chain_at_tiles_of_four(size):
    func = chain(size, 3, 2, 3)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("D")[0], [None, 4])
    sch.reverse_compute_at("E", outer)
    sch.reverse_compute_at("F", outer)
    check(sch, func)


def test_the_same_natively():
    func = chain(13, 9, 7, 5)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("D")[0], [None, 4])
    sch.reverse_compute_at("E", outer)
    sch.reverse_compute_at("F", outer)
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape).astype("float32") for shape in ((13, 7), (7, 9), (9, 5)))
    got = np.zeros((13, 5), "float32")
    loopwright.build(sch.mod)(a, b, c, got)
    np.testing.assert_allclose(got, np.exp(a.astype("float64") @ b) @ c, rtol=1e-4)


def test_several_producers_under_the_loop():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="B")
    C = te.compute((8,), lambda i: B[i] * 2, name="C")
    D = te.compute((8,), lambda i: B[i] + C[i], name="D")
    func = te.create_prim_func([A, D])
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 3])
    sch.reverse_compute_at("C", outer)
    sch.reverse_compute_at("D", outer)
    names = [sch.get(block).name_hint for block in sch.get_child_blocks(outer)]
    assert names == ["B", "C", "D"]
    check(sch, func)


def test_following_into_a_reduction_is_refused_with_a_witness():
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((3, 5), lambda i, j: te.exp(C[i, j]), name="D")
    func = te.create_prim_func([A, B, D])
    sch = Schedule(func)
    i, j, k_loop = sch.get_loops("C")
    match = r"iteration \(v_i=0, v_j=0\) of D reads C\[0, 0\] before iteration \(v_i=0, v_j=0, v_k=1\) of C updates it"
    refused(sch, WouldChangeValues, match, "reverse_compute_at", "D", k_loop)
    sch.reverse_compute_at("D", j)
    check(sch, func)


def test_a_reversed_consumer_is_refused_with_a_witness():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((6,), lambda i: B[i] + B[5 - i], name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    match = r"iteration \(v_i=\d\) of C reads B\[\d\] before iteration \(v_i=\d\) of B writes it"
    refused(sch, WouldChangeValues, match, "reverse_compute_at", "C", sch.get_loops("B")[0])


def test_what_the_producer_never_reaches_is_not_dropped():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2, name="B")
    C = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), B[i - 1], 0.0), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    match = r"the caller reads C\[0\], but iteration \(v_i=0\) of C no longer writes it"
    refused(sch, WouldChangeValues, match, "reverse_compute_at", "C", sch.get_loops("B")[0])


def test_refusals_before_anything_is_built():
    sch = Schedule(two_steps)
    b, c = sch.get_loops("B")[0], sch.get_loops("C")[0]
    match = "nothing under loop i writes what is read by block 'B'"
    refused(sch, NothingUnderLoop, match, "reverse_compute_at", "B", c)
    refused(sch, NotSupported, "loop i is an ancestor of block 'C'", "reverse_compute_at", "C", c)
    refused(sch, BadStepArgument, "index 3, but loop i holds 1 statements", "reverse_compute_at", "C", b, index=3)
    match = r"iteration \(vi=0\) of C reads B\[0\] before iteration \(vi=0\) of B writes it"
    refused(sch, WouldChangeValues, match, "reverse_compute_at", "C", b, index=0)


def test_handles_survive():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    func = te.create_prim_func([A, te.compute((4,), lambda i: B[i] * 2, name="C")])
    sch = Schedule(func)
    c = sch.get_block("C")
    sch.reverse_compute_at(c, sch.get_loops("B")[0])
    assert sch.get(c).name_hint == "C"
    assert [loop.name for loop in sch.get_loops(c)] == ["i"]


def test_nothing_moves_between_the_init_and_the_body_of_a_block():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((8,), lambda j: te.sum(A[k, j], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    sch.reorder(*reversed(sch.get_loops("C")))
    sch.blockize(sch.get_loops("C")[1])
    loop = sch.get_loops("C_init")[0]
    message = "of block 'C' and loop j_init only one is in the init of block 'C_o'"
    for step in ("reverse_compute_at", "compute_at"):
        refused(sch, NotSupported, message, step, "C", loop)


@T.prim_func
def two_sides(A: T.Buffer(4), X: T.Buffer(4), Y: T.Buffer(4), Z: T.Buffer(4), n: T.int32):
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] + 1.0
    if n < 4:
        for i in range(4):
            with T.block("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] * 2.0
    else:
        for i in range(4):
            with T.block("Z"):
                vi = T.axis.spatial(4, i)
                Z[vi] = X[vi] * 3.0


@pytest.mark.parametrize(("moved", "other"), [("Y", "Z"), ("Z", "Y")])
def test_a_block_that_leaves_one_side_of_a_condition_leaves_the_other_alone(moved, other):
    sch = Schedule(two_sides)
    sch.reverse_compute_at(moved, sch.get_loops("X")[0])
    assert {"X", moved, other} <= set(sch.view().block_names())
    for n in (3, 4):
        given = [np.arange(4, dtype="float32"), *[np.zeros(4, "float32") for _ in range(3)]]
        expected = [array.copy() for array in given]
        loopwright.build(two_sides)(*expected, n)
        loopwright.build(sch.mod)(*given, n)
        for one, two in zip(given, expected, strict=True):
            np.testing.assert_array_equal(one, two)


@T.prim_func
def never_run(A: T.Buffer(4), B: T.Buffer(4), C: T.Buffer(4)):
    D = T.alloc_buffer(4)
    if T.bool(True):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]
    else:
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = B[vi]
        for i in range(4):
            with T.block("E"):
                vi = T.axis.spatial(4, i)
                C[vi] = D[vi]


def test_a_block_from_the_other_branch_of_a_condition_keeps_its_own():
    sch = Schedule(never_run)
    loop = sch.get_loops("B")[0]
    sch.reverse_compute_at("D", loop)
    sch.reverse_compute_at("E", loop, index=0)  # in front of what it reads; but it never runs
    assert "T.where(T.bool(False))" in sch.mod["main"].script()
    check(sch, never_run)
    given = [np.arange(4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32")]
    loopwright.build(sch.mod)(*given)
    np.testing.assert_array_equal(given[2], given[0] + 1)
