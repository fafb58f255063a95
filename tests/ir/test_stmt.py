"""Statements: what constructors check and convert, and how sequences are built."""

from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.ir import const
from loopwright.ir.expr import OperandMismatch


def store(k: int = 0) -> ir.Stmt:
    return ir.BufferStore(ir.decl_buffer((4,), "int32", "A"), const(k), [0])


def test_stores_take_the_type_of_the_buffer():
    A = ir.decl_buffer((8,), "float32", "A")
    assert ir.BufferStore(A, 1.0, [0]).value.dtype == "float32"
    assert ir.BufferStore(A, const(0, "float32x4"), [ir.Ramp(0, 1, 4)]).value.dtype == "float32x4"
    with pytest.raises(OperandMismatch, match="BufferStore to A: operands have different types, float32 and int32"):
        ir.BufferStore(A, 1, [0])
    with pytest.raises(OperandMismatch, match="float32x4 and float32"):
        ir.BufferStore(A, 1.0, [ir.Ramp(0, 1, 4)])


def test_loops():
    i = ir.Var("i")
    loop = ir.For(i, 0, 4, ir.ForKind.PARALLEL, store())
    assert (loop.thread_binding, loop.annotations) == (None, {})
    assert [type(child) for child in loop.children()] == [ir.IntImm, ir.IntImm, ir.BufferStore]  # not the variable
    bound = ir.For(i, 0, 4, ir.ForKind.THREAD_BINDING, store(), ir.IterVar(None, "t", 1, "threadIdx.x"))
    assert bound.thread_binding.thread_tag == "threadIdx.x"
    assert [int(kind) for kind in ir.ForKind] == [0, 1, 2, 3, 4]


def test_conditions_and_else():
    statement = ir.IfThenElse(ir.Var("p", "bool"), store())
    assert statement.else_case is None
    assert len(list(statement.children())) == 2
    assert len(list(ir.IfThenElse(ir.Var("p", "bool"), store(), store()).children())) == 3


def test_seq_is_flat_and_leaves_out_what_does_nothing():
    a, b, c = store(1), store(2), store(3)
    assert ir.seq([a]) is a
    assert ir.seq([None, ir.no_op(), a]) is a
    made = ir.seq([a, ir.seq([b, c]), None])
    assert isinstance(made, ir.SeqStmt) and made.seq == (a, b, c) and len(made) == 3 and made[1] is b
    assert ir.is_no_op(ir.seq([])) and ir.is_no_op(ir.seq([ir.no_op(), None]))
    assert ir.stmt_list(made) == [a, b, c] and ir.stmt_list(a) == [a]
    assert ir.stmt_seq(a, b).seq == (a, b)
    assert not ir.is_no_op(a)
    assert not ir.is_no_op(ir.Evaluate(ir.Call("int32", ir.Op.get("tir.call_extern"), [ir.StringImm("f")])))


def test_blocks_define_their_axes():
    A = ir.decl_buffer((4,), "int32", "A")
    axis = ir.IterVar((0, 4), "vi", 0)
    block = ir.Block([axis], [], [ir.BufferRegion(A, [ir.Range(0, 4)])], "B", ir.BufferStore(A, 1, [axis.var]))
    assert block.init is None and block.alloc_buffers == () and block.annotations == {}
    realize = ir.BlockRealize([ir.Var("i")], True, block)
    assert realize.predicate.value == 1
    assert axis not in list(block.children())
    assert list(realize.children())[-1] is block


def test_allocations():
    var = ir.pointer("p", "int8")
    allocation = ir.Allocate(var, "int8", [4, 4], True, store())
    assert allocation.dtype is ir.DataType("int8") and [int(e) for e in allocation.extents] == [4, 4]
    assert var not in list(allocation.children())
