"""pad_einsum: a sum of products runs over padded axes, on padded copies of its operands."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.primitives.compute.pad_einsum import NotEinsum
from loopwright.schedule.proof.speculative_runs import FailsInExtraRuns
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check_replay, matmul, refused, same_program


def test_operands_are_padded():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    sch.pad_einsum("C", [4, 1, 3])

    @T.prim_func
    def expected(A: T.Buffer((6, 4)), B: T.Buffer((4, 5)), C: T.Buffer((6, 5))):
        T.func_attr({"tir.noalias": True})
        C_pad = T.alloc_buffer((8, 5))
        A_pad = T.alloc_buffer((8, 6))
        B_pad = T.alloc_buffer((6, 5))
        for ax0, ax1 in T.grid(8, 6):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[v0, v1])
                T.writes(A_pad[v0, v1])
                A_pad[v0, v1] = T.if_then_else(v0 < 6 and v1 < 4, A[v0, v1], T.float32(0))
        for ax0, ax1 in T.grid(6, 5):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(B[v0, v1])
                T.writes(B_pad[v0, v1])
                B_pad[v0, v1] = T.if_then_else(v0 < 4, B[v0, v1], T.float32(0))
        for i, j, k in T.grid(8, 5, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A_pad[vi, vk], B_pad[vk, vj])
                T.writes(C_pad[vi, vj])
                with T.init():
                    C_pad[vi, vj] = T.float32(0)
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for ax0, ax1 in T.grid(6, 5):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(C_pad[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_pad[v0, v1]

    verify(sch.mod["main"])
    same_program(sch.mod["main"], expected)
    check_replay(sch, before)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 4, 5), (7, 8, 9)])
@pytest.mark.parametrize("padding", [[4, 4, 4], [8, 1, 2], [1, 16, 1]])
def test_bit_for_bit(shape, padding):
    """Sums of products of zeros change nothing, not even the sign of a zero, nor where infinities are about."""
    before = matmul(*shape)
    sch = tir.Schedule(before)
    sch.pad_einsum("C", padding)
    random = np.random.default_rng(1)
    m, n, k = shape
    A, B = random.standard_normal((m, k)).astype("float32"), random.standard_normal((k, n)).astype("float32")
    A[0, 0], B[-1, -1] = np.inf, -0.0
    for run in (lambda function: lambda *arrays: evaluate(function, *arrays), loopwright.build):
        one, other = np.zeros((m, n), "float32"), np.zeros((m, n), "float32")
        run(before)(A, B, one)
        run(sch.mod["main"])(A, B, other)
        assert one.tobytes() == other.tobytes()


def test_multiples_already_change_nothing():
    before = matmul(8, 8, 8)
    sch = tir.Schedule(before)
    sch.pad_einsum("C", [4, 8, 2])
    same_program(sch.mod["main"], before)


def test_in_the_middle_of_a_chain():
    before = chain()
    sch = tir.Schedule(before)
    sch.pad_einsum("D", [8, 8, 8])
    sch.pad_einsum("E", [8, 8])
    sch.pad_einsum("F", [8, 8, 8])
    check_replay(sch, before)
    A, B, C = (np.random.default_rng(0).standard_normal(s).astype("float32") for s in [(4, 3), (3, 5), (5, 2)])
    one, other = np.zeros((4, 2), "float32"), np.zeros((4, 2), "float32")
    evaluate(before, A, B, C, one)
    evaluate(sch.mod["main"], A, B, C, other)
    assert one.tobytes() == other.tobytes()


@T.prim_func
def no_start(A: T.Buffer((4, 3)), S: T.Buffer(4)):
    for i, k in T.grid(4, 3):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            S[vi] = S[vi] + A[vi, vk]


@T.prim_func
def last_wins(A: T.Buffer((4, 3)), S: T.Buffer(4)):
    for i, k in T.grid(4, 3):
        with T.block("S"):
            vi, vk = T.axis.remap("SS", [i, k])
            S[vi] = A[vi, vk]


@T.prim_func
def part(A: T.Buffer(4), S: T.Buffer(6)):
    for i in range(4):
        with T.block("S"):
            vi = T.axis.spatial(4, i)
            S[vi] = A[vi]


def convolution():
    X, W = te.placeholder((3, 10), name="X"), te.placeholder((5, 3, 3), name="W")
    c, d = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 3), "d")
    Y = te.compute((5, 8), lambda o, x: te.sum(X[c, x + d] * W[o, c, d], axis=[c, d]), name="Y")
    return te.create_prim_func([X, W, Y])


def test_axes_that_are_not_padded_may_be_part_of_an_index():
    before = convolution()
    sch = tir.Schedule(before)
    sch.pad_einsum("Y", [4, 1, 1, 1])
    text = sch.mod.script()
    assert "W_pad = T.alloc_buffer((8, 3, 3))" in text
    assert "X[v_c, v_x + v_d] * W_pad[v_o, v_c, v_d]" in text  # the image is read as it is
    check_replay(sch, before)
    assert_same_numbers(sch.mod["main"], before)
    again = tir.Schedule(before)
    refused(again, NotEinsum, r"uses the index v_x \+ v_d, which is no single axis", "pad_einsum", "Y", [1, 3, 1, 1])
    refused(again, NotEinsum, r"uses the index v_x \+ v_d, which is no single axis", "pad_einsum", "Y", [1, 1, 1, 2])


@T.prim_func
def one_row(A: T.Buffer((1, 6)), S: T.Buffer((1, 6))):
    for n, i in T.grid(1, 6):
        with T.block("S"):
            vn, vi = T.axis.remap("SS", [n, i])
            S[0, vi] = A[0, vi] + T.float32(1)


def test_an_axis_of_one_value_may_be_written_as_zero():
    sch = tir.Schedule(one_row)
    sch.pad_einsum("S", [1, 4])
    assert_same_numbers(sch.mod["main"], one_row)
    refused(tir.Schedule(one_row), NotEinsum, "at other indices than its data axes", "pad_einsum", "S", [2, 4])


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, BadStepArgument, r"padding is \[4, 4\], and block 'C' has 3 axes", "pad_einsum", "C", [4, 4])
    refused(sch, BadStepArgument, r"padding is \[4, 4, 0\]", "pad_einsum", "C", [4, 4, 0])
    A = te.placeholder((9,), name="A")
    B = te.compute((7,), lambda i: A[i + 2], name="B")
    window = tir.Schedule(te.create_prim_func([A, B]))
    refused(window, NotEinsum, r"uses the index v_i \+ 2, which is no single axis", "pad_einsum", "B", [4])
    refused(tir.Schedule(no_start), NotEinsum, "goes on from what S holds already", "pad_einsum", "S", [8, 1])
    refused(tir.Schedule(last_wins), NotEinsum, "at other indices than its data axes", "pad_einsum", "S", [1, 8])
    refused(tir.Schedule(part), NotEinsum, "does not write all of S", "pad_einsum", "S", [8])
    k = te.reduce_axis((0, 3), "k")
    P = te.placeholder((4, 3), name="P")
    Q = te.placeholder((4,), name="Q")
    largest = te.compute((4,), lambda i: te.max(P[i, k], axis=k), name="M")
    sch = tir.Schedule(te.create_prim_func([P, largest]))
    refused(sch, NotEinsum, "no sum of products|does not start", "pad_einsum", "M", [1, 4])
    k = te.reduce_axis((0, 3), "k")
    scaled = te.compute((4,), lambda i: te.sum(P[i, k] * Q[i], axis=k), name="S")
    refused(tir.Schedule(te.create_prim_func([P, Q, scaled])), NotEinsum, "multiplies with Q, which has no axis v_k",
            "pad_einsum", "S", [1, 4])  # fmt: skip
    split = tir.Schedule(matmul())
    split.split(split.get_loops("C")[0], [None, 2])
    refused(split, NotEinsum, "does not stand alone in a nest of one loop an axis", "pad_einsum", "C", [4, 4, 4])
    kinds = tir.Schedule(matmul())
    kinds.parallel(kinds.get_loops("C")[0])
    refused(kinds, NotSupported, "loop i is parallel", "pad_einsum", "C", [4, 4, 4])


def test_a_start_from_what_the_cell_holds():
    @T.prim_func
    def doubled(A: T.Buffer((3, 4)), C: T.Buffer((3,))):
        for i, j in T.grid(3, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = C[vi] * 2.0
                C[vi] = C[vi] + A[vi, vj]

    sch = tir.Schedule(doubled)
    with pytest.raises(NotEinsum, match="goes on from what C holds already"):
        sch.pad_einsum("C", [2, 1])


@pytest.mark.parametrize("room", [5, 7, 8, 20])
def test_what_lies_past_the_axis_is_not_summed(room):
    """Operands that are larger than the axis: what they hold past its end is no part of the sum."""

    @T.prim_func
    def before(A: T.Buffer((2, room)), B: T.Buffer((room, 3)), C: T.Buffer((2, 3))):
        for i, j, k in T.grid(2, 3, 5):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(before)
    sch.pad_einsum("C", [1, 1, 8])
    assert_same_numbers(sch.mod["main"], before)


def test_one_buffer_with_axes_of_two_sizes():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), C: T.Buffer((5, 3))):
        for i, j, k in T.grid(5, 3, 7):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vj, vk]

    sch = tir.Schedule(before)
    message = "indexes dimension 0 of A in several ways, not all padded to one size"
    refused(sch, NotEinsum, message, "pad_einsum", "C", [4, 4, 4])


def guarded_window():
    X, W = te.placeholder((6,), name="X"), te.placeholder((3, 5), name="W")
    P = te.compute((8,), lambda i: te.if_then_else(te.all(i >= 1, i < 7), X[i - 1], 0.0), name="P")
    r = te.reduce_axis((0, 3), name="r")
    C = te.compute((6, 5), lambda i, k: te.sum(P[i + r] * W[r, k], axis=r), name="C")
    return te.create_prim_func([X, W, C])


def test_a_copy_that_would_read_what_nobody_wrote():
    """The copy that reindex made is written only where the block's guard holds; the padded copy reads all of it."""
    sch = tir.Schedule(guarded_window())
    sch.compute_inline("P")
    sch.reindex("C", ("read", 0))
    message = r"reads X_reindex\[0, 0\] before anything has written it"
    refused(sch, FailsInExtraRuns, message, "pad_einsum", "C", [4, 4, 1])

    sch = tir.Schedule(guarded_window())  # a copy of the padded values is whole
    sch.reindex("C", ("read", 0))
    sch.compute_inline("P")
    sch.pad_einsum("C", [4, 4, 1])
    assert_same_numbers(sch.mod["main"], guarded_window())


def test_an_axis_that_conditions_keep_inside_a_smaller_buffer():
    """The copy reads no further than the buffer goes, though the axis does."""

    @T.prim_func
    def padding(A: T.Buffer((1, 2), "int32"), B: T.Buffer((3, 3), "int32")):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi >= 1 and vi < 2 and vj < 2, A[vi - 1, vj], 0)

    sch = tir.Schedule(padding)
    sch.pad_einsum(sch.get_block("B"), [1, 2])
    assert_same_numbers(sch.mod["main"], padding)
