"""Statements are made of statements, variables, buffers and texts; their constructors say so."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir.wrong_part import WrongCount, WrongPart

i = tir.Var("i", "int32")
A = tir.decl_buffer((4, 4), "float32", name="A")
NOTHING = tir.Evaluate(0)
AXIS = tir.IterVar((0, 4), i, tir.IterVar.DataPar)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tir.For(i, 0, 8, 0, 3), "For: body must be a Stmt, not int 3"),
        (lambda: tir.For("i", 0, 8, 0, NOTHING), "For: loop_var must be a Var, not str 'i'"),
        (lambda: tir.For(i, 0, 8.5, 0, NOTHING), "For: extent must be an integer, not FloatImm"),
        (lambda: tir.IfThenElse(i < 3, 3), "IfThenElse: then_case must be a Stmt, not int 3"),
        (lambda: tir.IfThenElse(i < 3, NOTHING, i), "IfThenElse: else_case must be a Stmt, not Var i"),
        (lambda: tir.SeqStmt([NOTHING, 1]), "SeqStmt: each of seq must be a Stmt, not int 1"),
        (lambda: tir.While(i < 3, None), "While: body must be a Stmt, not NoneType None"),
        (lambda: tir.LetStmt(i, 3, i), "LetStmt: body must be a Stmt, not Var i"),
        (lambda: tir.AttrStmt(None, 3, 1, NOTHING), "AttrStmt: attr_key must be a str, not int 3"),
        (lambda: tir.Allocate("A", "int8", [4], True, NOTHING), "Allocate: buffer_var must be a Var, not str 'A'"),
        (lambda: tir.DeclBuffer(i, NOTHING), "DeclBuffer: buffer must be a Buffer, not Var i"),
        (lambda: tir.BufferStore(i, 1.0, [0, 0]), "BufferStore: buffer must be a Buffer, not Var i"),
        (lambda: tir.BufferStore(A, 1.0, [0, 0.5]), "BufferStore: each of indices must be an integer, not FloatImm"),
        (lambda: tir.Block([i], [], [], "B", NOTHING), "Block: each of iter_vars must be an IterVar, not Var i"),
        (lambda: tir.Block([AXIS], [A], [], "B", NOTHING), "Block: each of reads must be a BufferRegion, not Buffer"),
        (lambda: tir.Block([AXIS], [], [], "B", NOTHING, init=4), "Block: init must be a Stmt, not int 4"),
        (lambda: tir.BlockRealize([0], True, NOTHING), "BlockRealize: block must be a Block, not Evaluate"),
        (lambda: tir.PrimFunc([i], 3), "PrimFunc: body must be a Stmt, not int 3"),
    ],
)
def test_a_part_of_another_kind(make, message):
    with pytest.raises(WrongPart, match=message) as caught:
        make()
    assert isinstance(caught.value, TypeError)


def test_as_many_values_as_axes():
    with pytest.raises(WrongCount, match="block 'B' has 1 axes, but 2 values were given"):
        tir.BlockRealize([0, 1], True, tir.Block([AXIS], [], [], "B", NOTHING))
