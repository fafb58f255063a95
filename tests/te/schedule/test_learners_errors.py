"""Learners' errors on a te schedule: each message says what went wrong, what became of things, and what would work."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.schedule.errors import WouldRace
from loopwright.schedule.primitives.compute.blockize import TileNotWhole
from loopwright.schedule.proof.tensorized import IntrinsicMismatch
from loopwright.te.compute import ReductionInside, ReductionsDiffer
from loopwright.te.create_prim_func import MissingPlaceholder
from loopwright.te.reduction import BadReducer
from loopwright.te.schedule.errors import (
    ArgumentsMissing,
    AxisGone,
    BadReorder,
    BadSplit,
    CannotAttach,
    CannotBind,
    CannotInline,
    CannotMark,
    ForeignAxis,
    NotAdjacent,
    NotAnOperation,
    NotAReader,
    UnknownStage,
)
from tests.schedule.saying import says


def two_stages():
    """B = A + 1, C = B * 2."""
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((16, 16), lambda i, j: B[i, j] * 2, name="C")
    return A, B, C, te.create_schedule(C.op)


def matmul():
    """C = A · B."""
    A, B = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, k, te.create_schedule(C.op)


def plus_one(size: int):
    """B = A + 1."""
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1.0, name="B")
    return A, B, te.create_schedule(B.op)


def eight_at_once():
    """An instruction that adds 1 to eight numbers."""
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1.0, name="y")

    def call(ins, outs):
        return tir.call_extern("int32", "plus_8", ins[0].access_ptr("r"), outs[0].access_ptr("w"))

    return te.decl_tensor_intrin(y.op, call, name="plus_8")


# --- axes that are no loops any more --------------------------------------------------------------------------------


@says(AxisGone)
def test_reorder_an_axis_that_was_split():
    """reorder: axis i of C is no loop any more: it was split into i.outer and i.inner at line +8 [LW0467]
    call: s[C].reorder(j, i) at line +9
    hint: use i.outer or i.inner; the loops of C are now i.outer, i.inner, j, k
    """
    _, _, C, _, s = matmul()
    i, j = C.op.axis
    s[C].split(i, factor=8)
    s[C].reorder(j, i)


@says(AxisGone)
def test_reorder_an_axis_that_was_split_and_split_again():
    """reorder: axis i of C is no loop any more: it was split into i.outer and i.inner at line +10, and i.inner was \
    split into i.inner.outer and i.inner.inner at line +11 [LW0467]
    call: s[C].reorder(j, i) at line +12
    hint: use i.outer, i.inner.outer or i.inner.inner; the loops of C are now i.outer, i.inner.outer, \
    i.inner.inner, j, k
    """
    _, _, C, _, s = matmul()
    i, j = C.op.axis
    _, inner = s[C].split(i, factor=8)
    s[C].split(inner, nparts=2)
    s[C].reorder(j, i)


@says(AxisGone)
def test_reorder_an_axis_that_was_tiled():
    """reorder: axis j of C is no loop any more: it was split into j.outer and j.inner at line +8 [LW0467]
    call: s[C].reorder(j, i) at line +9
    hint: use j.outer or j.inner; the loops of C are now i.outer, j.outer, i.inner, j.inner, k
    """
    _, _, C, _, s = matmul()
    i, j = C.op.axis
    s[C].tile(i, j, 8, 8)
    s[C].reorder(j, i)


@says(AxisGone)
def test_compute_at_an_axis_that_was_fused():
    """compute_at of B: axis j of C is no loop any more: it was fused into i.j.fused at line +7 [LW0467]
    call: s[B].compute_at(s[C], C.op.axis[1]) at line +8
    hint: use i.j.fused; the loops of C are now i.j.fused
    """
    _, B, C, s = two_stages()
    s[C].fuse(*C.op.axis)
    s[B].compute_at(s[C], C.op.axis[1])


@says(AxisGone)
def test_vectorize_an_axis_that_was_split():
    """vectorize: axis i of B is no loop any more: it was split into i.outer and i.inner at line +7 [LW0467]
    call: s[B].vectorize(B.op.axis[0]) at line +8
    hint: use i.outer or i.inner; the loops of B are now i.outer, i.inner
    """
    _, B, s = plus_one(64)
    s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(B.op.axis[0])


@says(ForeignAxis)
def test_an_axis_of_another_stage():
    """split: axis i is no axis of C: it belongs to B [LW0468]
    call: s[C].split(B.op.axis[0], factor=2) at line +7
    hint: the loops of C are i, j
    """
    _, B, C, s = two_stages()
    s[C].split(B.op.axis[0], factor=2)


@says(ForeignAxis)
def test_a_number_in_place_of_an_axis():
    """split: int 0 is no axis of C [LW0468]
    call: s[C].split(0, factor=2) at line +7
    hint: the loops of C are i, j
    """
    _, _, C, s = two_stages()
    s[C].split(0, factor=2)


# --- where stages are computed --------------------------------------------------------------------------------------


@says(ForeignAxis)
def test_compute_at_an_axis_of_the_stage_itself():
    """compute_at of B: axis i is no axis of C: it belongs to B [LW0468]
    call: s[B].compute_at(s[C], B.op.axis[0]) at line +7
    hint: the loops of C are i, j
    """
    _, B, C, s = two_stages()
    s[B].compute_at(s[C], B.op.axis[0])


@says(CannotAttach)
def test_compute_at_a_stage_that_comes_before():
    """compute_at: B is not computed from C, so no iteration of i needs any of it [LW0472]
    call: s[C].compute_at(s[B], B.op.axis[0]) at line +7
    hint: C is read by no stage
    """
    _, B, C, s = two_stages()
    s[C].compute_at(s[B], B.op.axis[0])


@says(CannotAttach)
def test_compute_at_in_a_circle():
    """compute_at: B is not computed from C, so no iteration of i needs any of it [LW0472]
    call: s[C].compute_at(s[B], B.op.axis[0]) at line +10
    hint: C is read by D
    """
    A, B, C, _ = two_stages()
    D = te.compute((16, 16), lambda i, j: C[i, j] + B[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].compute_at(s[B], B.op.axis[0])


@says(CannotAttach)
def test_compute_at_a_stage_of_another_schedule():
    """compute_at: the stage of C that is given belongs to another schedule than that of B [LW0472]
    call: s[B].compute_at(other[C], C.op.axis[0]) at line +8
    hint: take both stages from one schedule: s[B].compute_at(s[C], …)
    """
    _, B, C, s = two_stages()
    other = te.create_schedule(C.op)
    s[B].compute_at(other[C], C.op.axis[0])


@says(CannotAttach)
def test_compute_at_a_tensor():
    """compute_at: Tensor(C, shape=(16, 16), dtype='float32') is no stage [LW0472]
    call: s[B].compute_at(C, C.op.axis[0]) at line +7
    hint: give s[consumer] first, then one of its loops
    """
    _, B, C, s = two_stages()
    s[B].compute_at(C, C.op.axis[0])


@says(UnknownStage)
def test_a_stage_of_another_schedule():
    """schedule: C is not among what this schedule computes [LW0466]
    call: s[C].split(C.op.axis[0], factor=2) at line +8
    hint: the stages are A, B: give one of these tensors, or its operation
    """
    _, _, C, _ = two_stages()
    _, B, s = plus_one(8)
    s[C].split(C.op.axis[0], factor=2)


@says(UnknownStage)
def test_a_stage_by_name():
    """schedule: str 'C' is neither a tensor nor an operation [LW0466]
    call: s["C"].split(0, 2) at line +7
    hint: the stages are A, B, C: give one of these tensors, or its operation
    """
    _, _, _, s = two_stages()
    s["C"].split(0, 2)


@says(NotAnOperation)
def test_a_schedule_of_a_tensor():
    """te.create_schedule: a Tensor is not an operation [LW0465]
    call: te.create_schedule(B) at line +7
    hint: give the tensor's operation: te.create_schedule(B.op)
    """
    _, B, _ = plus_one(8)
    te.create_schedule(B)


@says(CannotInline)
def test_inline_a_reduction():
    """compute_inline: C is a reduction, whose result takes many steps to make [LW0473]
    call: s[C].compute_inline() at line +9
    hint: use compute_at at its consumer
    """
    _, _, C, _, _ = matmul()
    D = te.compute((64, 64), lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_inline()


@says(CannotInline)
def test_inline_a_result():
    """compute_inline: B is a result, which has to be stored [LW0473]
    call: s[B].compute_inline() at line +7
    hint: inline what it is computed from
    """
    _, B, s = plus_one(8)
    s[B].compute_inline()


# --- splitting, fusing, reordering ----------------------------------------------------------------------------------


@says(BadSplit)
def test_a_factor_of_zero():
    """split: factor is 0 [LW0469]
    call: s[B].split(B.op.axis[0], factor=0) at line +7
    hint: give an integer of at least 1
    """
    _, B, s = plus_one(64)
    s[B].split(B.op.axis[0], factor=0)


@says(BadSplit)
def test_negative_parts():
    """split: nparts is -2 [LW0469]
    call: s[B].split(B.op.axis[0], nparts=-2) at line +7
    hint: give an integer of at least 1
    """
    _, B, s = plus_one(64)
    s[B].split(B.op.axis[0], nparts=-2)


@says(BadSplit)
def test_a_factor_that_is_no_whole_number():
    """split: factor is 8.0 [LW0469]
    call: s[B].split(B.op.axis[0], factor=64 / 8) at line +7
    hint: 8.0 is a float: divide integers with //
    """
    _, B, s = plus_one(64)
    s[B].split(B.op.axis[0], factor=64 / 8)


@says(BadSplit)
def test_neither_factor_nor_parts():
    """split: neither factor nor nparts is given [LW0469]
    call: s[B].split(B.op.axis[0]) at line +7
    hint: give factor= (the size of the inner loop) or nparts=
    """
    _, B, s = plus_one(64)
    s[B].split(B.op.axis[0])


@says(NotAdjacent)
def test_fuse_axes_with_one_between():
    """fuse: i and k of C do not stand next to each other; the loops are i, j, k [LW0470]
    call: s[C].fuse(C.op.axis[0], k) at line +7
    hint: reorder first, so that k comes right after i
    """
    _, _, C, k, s = matmul()
    s[C].fuse(C.op.axis[0], k)


@says(BadReorder)
def test_reorder_with_an_axis_twice():
    """reorder: i of C is named twice [LW0471]
    call: s[C].reorder(i, i) at line +8
    hint: name each loop once
    """
    _, _, C, s = two_stages()
    i, _ = C.op.axis
    s[C].reorder(i, i)


def test_a_factor_that_does_not_divide():
    """No error: the last tile is guarded, or cut off."""
    A, B, s = plus_one(13)
    _, inner = s[B].split(B.op.axis[0], factor=5)
    s[B].vectorize(inner)
    assert "vectorized" not in lw.lower(s, [A, B]).script()


# --- what runs at the same time -------------------------------------------------------------------------------------


@says(CannotMark)
def test_vectorize_a_reduction():
    """vectorize: k of C is an axis of the reduction, whose iterations add to one cell one after the other [LW0480]
    call: s[C].vectorize(k) at line +7
    hint: vectorize a data axis; reorder brings it inside, and rfactor makes a part of a reduce axis one
    """
    _, _, C, k, s = matmul()
    s[C].vectorize(k)


@says(WouldRace)
def test_parallel_over_a_part_of_a_reduction():
    """parallel: loop k_0: iterations that run at the same time would touch the same cell [LW0207]
    call: s[C].parallel(outer) at line +13
    why: iterations k_0 = 0 and k_0 = 1 of the parallel loop k_0 both touch C[0, 0]: block "C" reads it at i = 0, \
    j = 0, k_0 = 0, k_1 = 0, and block "C" writes it at i = 0, j = 0, k_0 = 1, k_1 = 0; a parallel loop runs them \
    in any order
    hint: k_0 runs over a reduction: split it, rfactor the outer part, then parallel that loop of the new block
    names: k_0 is k.outer of C, k_1 is k.inner of C
    steps so far: split(k, [None, 8])
    """
    A, B, C, k, s = matmul()
    outer, _ = s[C].split(k, factor=8)
    s[C].parallel(outer)
    lw.lower(s, [A, B, C])


@says(CannotMark)
def test_vectorize_an_axis_of_unknown_length():
    """vectorize: i of B runs n times, which is no number yet [LW0480]
    call: s[B].vectorize(B.op.axis[0]) at line +10
    hint: split it with a factor, and vectorize the inner loop
    """
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    lw.lower(s, [A, B])


@says(CannotBind)
def test_two_axes_on_one_thread_axis():
    """bind: j of B runs 16 times and j.inner of C 8 times, but both are bound to threadIdx.x [LW0474]
    call: s[B].bind(B.op.axis[1], tx) at line +11
    why: one thread axis has one size in all that runs on it together
    hint: split one of them, so that both run 8 times
    """
    A, B, C, s = two_stages()
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(B.op.axis[1], tx)
    _, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].bind(inner, tx)
    lw.lower(s, [A, C])


@says(CannotBind)
def test_an_axis_on_fewer_threads():
    """bind: i of C runs 16 times, and there are 32 threads threadIdx.x [LW0474]
    call: s[C].bind(C.op.axis[0], te.thread_axis((0, 32), "threadIdx.x")) at line +7
    hint: split the axis with nparts=32, and bind the outer loop
    """
    A, _, C, s = two_stages()
    s[C].bind(C.op.axis[0], te.thread_axis((0, 32), "threadIdx.x"))
    lw.lower(s, [A, C])


@says(CannotBind)
def test_bind_to_an_axis_that_is_no_thread():
    """bind: j is no thread axis [LW0474]
    call: s[C].bind(C.op.axis[0], C.op.axis[1]) at line +7
    hint: make one: te.thread_axis("threadIdx.x")
    """
    _, _, C, s = two_stages()
    s[C].bind(C.op.axis[0], C.op.axis[1])


# --- caches and instructions ----------------------------------------------------------------------------------------


@says(NotAReader)
def test_cache_read_for_a_stage_that_does_not_read_it():
    """cache_read: C does not read A; it reads B [LW0475]
    call: s.cache_read(A, "shared", [C]) at line +7
    hint: A is read by B
    """
    A, _, C, s = two_stages()
    s.cache_read(A, "shared", [C])


@says(NotAReader)
def test_cache_read_for_nobody():
    """cache_read: no reader of A is given [LW0475]
    call: s.cache_read(A, "shared", []) at line +7
    hint: A is read by B
    """
    A, _, _, s = two_stages()
    s.cache_read(A, "shared", [])


@says(IntrinsicMismatch)
def test_tensorize_an_axis_that_is_too_long():
    """tensorize: block 'B_o' is not what 'te.plus_8.body.N' describes: loop i of the description has extent 8, here \
    i_1 has 16 [LW0290]
    call: s[B].tensorize(inner, plus_8) at line +12
    hint: split i_1 into [None, 8], and have the tile hold its inner part only
    names: i_1 is i.inner of B
    steps so far: split(i, [None, 16])
    """
    A, B, s = plus_one(64)
    plus_8 = eight_at_once()
    _, inner = s[B].split(B.op.axis[0], factor=16)
    s[B].tensorize(inner, plus_8)
    lw.lower(s, [A, B])


@says(IntrinsicMismatch)
def test_tensorize_an_axis_that_is_too_short():
    """tensorize: block 'B_o' is not what 'te.plus_8.body.N' describes: loop i of the description has extent 8, here \
    i has 6 [LW0290]
    call: s[B].tensorize(B.op.axis[0], plus_8) at line +9
    hint: i needs 8 values: make its axis longer, or choose an intrinsic for 6
    """
    A, B, s = plus_one(6)
    plus_8 = eight_at_once()
    s[B].tensorize(B.op.axis[0], plus_8)
    lw.lower(s, [A, B])


@says(TileNotWhole)
def test_tensorize_with_a_tail():
    """tensorize: the guard i_0 * 8 + i_1 < 60 of block 'B' cuts tiles over the loops i_1 short [LW0285]
    call: s[B].tensorize(inner, plus_8) at line +11
    hint: split by a factor that divides the extent, or pad it, or keep the last tile apart (tail='peel')
    names: i_0 is i.outer of B, i_1 is i.inner of B
    steps so far: split(i, [None, 8])
    """
    A, B, s = plus_one(60)
    plus_8 = eight_at_once()
    _, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].tensorize(inner, plus_8)
    lw.lower(s, [A, B])


# --- reductions and arguments ---------------------------------------------------------------------------------------


@says(ReductionsDiffer)
def test_a_tuple_of_reductions_over_different_axes():
    """te.compute T: its outputs differ in axis: output 1 reduces over r, output 0 over k [LW0406]
    call: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, r], axis=r)), name="T") at line +8
    hint: write one te.compute for each, or one te.comm_reducer over the tuple and return all its fields
    """
    A = te.placeholder((8, 8), name="A")
    k, r = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="r")
    te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, r], axis=r)), name="T")


@says(ReductionsDiffer)
def test_a_tuple_of_reductions_with_different_conditions():
    """te.compute T: its outputs differ in condition: the where= of output 1 is not that of output 0 [LW0406]
    call: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, k], axis=k, where=k < 4)), name="T… at \
    line +9
    hint: write one te.compute for each, or one te.comm_reducer over the tuple and return all its fields
    """
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, k], axis=k, where=k < 4)), name="T")


@says(ReductionsDiffer)
def test_a_tuple_of_different_reductions():
    """te.compute T: its outputs differ in combiner: output 1 combines by another reducer [LW0406]
    call: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), name="T") at line +8
    hint: write one te.compute for each, or one te.comm_reducer over the tuple and return all its fields
    """
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), name="T")


@says(ReductionsDiffer)
def test_a_reduction_beside_a_plain_value():
    """te.compute T: its outputs mix reductions and plain values: output 0 is a reduction, output 1 is no reduction \
    [LW0406]
    call: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]), name="T") at line +9
    hint: write one te.compute for each, or one te.comm_reducer over the tuple and return all its fields
    """
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]), name="T")


@says(BadReducer)
def test_a_reducer_of_pairs_with_one_value():
    """te.comm_reducer pair: fcombine cannot combine single values: 'Var' object is not subscriptable [LW0409]
    call: te.compute((8,), lambda i: pair(A[i, k], axis=k), name="T") at line +11
    hint: a reducer of tuples takes a tuple of values: (a, b)
    """
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    pair = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda a, b: (te.const(0, a), te.const(0, b)), name="pair"
    )
    te.compute((8,), lambda i: pair(A[i, k], axis=k), name="T")


@says(ReductionInside)
def test_a_reduction_inside_an_expression():
    """te.compute T: the reduction over k stands inside a larger expression [LW0405]
    call: te.compute((8,), lambda i: te.sum(A[i, k], axis=k) + 1, name="T") at line +9
    why: a reduction must be the outermost part of the body
    hint: give the reduction a te.compute of its own, and use its elements in a second one
    """
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    te.compute((8,), lambda i: te.sum(A[i, k], axis=k) + 1, name="T")


@says(ArgumentsMissing)
def test_an_input_is_forgotten():
    """schedule: args [A, C] lacks B [LW0478]
    call: lw.build(s, [A, C]) at line +8
    why: args gives the parameters of the function: inputs and outputs, in the order of the call
    hint: give args=[A, B, C]
    """
    A, _, C, _, s = matmul()
    lw.build(s, [A, C])


def test_a_result_is_forgotten():
    A, B, _, _, s = matmul()
    with pytest.warns(UserWarning, match="schedule: args lacks C: computed in the function, and dropped") as warned:
        lw.build(s, [A, B])
    assert warned[0].filename == __file__


@says(ArgumentsMissing)
def test_all_arguments_are_forgotten():
    """schedule: args is missing [LW0478]
    call: lw.build(s) at line +8
    why: args gives the parameters of the function: inputs and outputs, in the order of the call
    hint: give args=[A, B, C]
    """
    *_, s = matmul()
    lw.build(s)


@says(MissingPlaceholder)
def test_an_input_of_a_function_is_forgotten():
    """create_prim_func: placeholder B (read by C) is not in the list [A, C] [LW0416]
    call: te.create_prim_func([A, C]) at line +7
    hint: the list gives the parameters of the function: add B
    """
    A, _, C, _, _ = matmul()
    te.create_prim_func([A, C])
