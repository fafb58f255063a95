"""flat_index, folding, purity and clone_definitions: the small tools of lowering."""

from __future__ import annotations

import pytest

from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IterType,
    IterVar,
    LetStmt,
    MatchBufferRegion,
    Mul,
    PrimFunc,
    Ramp,
    Range,
    Var,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.intrinsics import call_extern, exp
from loopwright.ir.structural import structural_equal
from loopwright.ir.verifier import verify
from loopwright.transform import clone_definitions
from loopwright.transform.parts.flat_index import add_index, flat_index, mul_index, sub_index
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.purity import can_fail, has_data, is_pure, loads_from

i, j, n = Var("i"), Var("j"), Var("n")
ramp = Ramp(i, const(2), 4)


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (add_index(i, const(0)), i),
        (add_index(const(0), i), i),
        (add_index(ramp, j), Ramp(i + j, const(2), 4)),
        (add_index(j, ramp), Ramp(j + i, const(2), 4)),
        (add_index(ramp, ramp), Ramp(i + i, const(4), 4)),
        (sub_index(ramp, j), Ramp(i - j, const(2), 4)),
        (sub_index(j, ramp), Ramp(j + i * -1, const(-2), 4)),
        (mul_index(i, const(1)), i),
        (mul_index(i, const(0)), const(0)),
        (mul_index(ramp, const(3)), Ramp(i * 3, const(6), 4)),
        (flat_index(decl_buffer((3, 4, 5)), (i, j, n)), i * 20 + j * 5 + n),
        (flat_index(decl_buffer((3, 4), strides=(n, 1), elem_offset=7), (i, j)), 7 + i * n + j),
        (flat_index(decl_buffer(()), ()), const(0)),
        (substitute_folding(i * 8 + j, {i: const(0), j: n}), n),
        (substitute_folding((i + 3) // 2, {i: const(2)}), const(2)),
        (substitute_folding(i < 3, {i: const(2)}), const(True)),
    ],
)
def test_folded_as_they_are_built(got, wanted):
    assert structural_equal(got, wanted, map_free_vars=False), f"{got} is not {wanted}"


def test_substitution_without_effect_gives_the_same_object():
    expr = i * 8 + 0
    assert substitute_folding(expr, {j: const(1)}) is expr


def test_an_effect_is_not_multiplied_away():
    beep = call_extern("int32", "beep")
    assert isinstance(substitute_folding(Mul(beep, i), {i: const(0)}), Mul)


def test_purity():
    A = decl_buffer((4,), name="A")
    beep = call_extern("int32", "beep")
    assert is_pure(exp(A[i])) and not is_pure(beep + 1)
    assert has_data(A[i] + 1.0) and has_data(beep) and not has_data(i // j)
    assert can_fail(i // j) and can_fail(A[0]) and not can_fail(i // 3) and not can_fail(exp(Var("x", "float32")))
    assert loads_from(A[i] * 2.0, A.data) and not loads_from(A[i], Var("other", "handle"))


def test_a_renewed_copy_defines_its_own_variables():
    A, B = decl_buffer((8,), name="A"), decl_buffer((8,), name="B")
    x = Var("x")
    body = LetStmt(x, i + 1, seq([BufferStore(B, A[x], [i]), BufferStore(A, B[i], [i])]))
    nest = For(i, 0, 7, ForKind.SERIAL, Allocate(B.data, "float32", [8], const(True), DeclBuffer(B, body)))
    copy = clone_definitions(nest)
    assert structural_equal(copy, nest, map_free_vars=False)
    verify(PrimFunc([A], seq([nest, copy])))  # nothing is defined twice
    store = BufferStore(A, 1.0, [0])
    assert clone_definitions(store) is store


def test_a_renewed_block_has_axes_and_memory_of_its_own():
    A, B, C = decl_buffer((8,), name="A"), decl_buffer((8,), name="B"), decl_buffer((n,), name="C")
    axis = IterVar(Range(8), Var("v"), IterType.DataPar)
    match = MatchBufferRegion(C, BufferRegion(A, (Range(8),)))
    body = seq([BufferStore(B, A[axis.var], [axis.var]), BufferStore(C, const(0.0), [0])])
    block = Block((axis,), (), (), "b", body, alloc_buffers=(B,), match_buffers=(match,))
    made = BlockRealize((i,), const(True), block)
    copy = clone_definitions(made)
    assert structural_equal(copy, made)
    assert copy.block.alloc_buffers[0].data is not B.data
    nest = For(i, 0, 8, ForKind.SERIAL, made)
    verify(PrimFunc([A], seq([nest, clone_definitions(nest)])))  # nothing is defined twice
