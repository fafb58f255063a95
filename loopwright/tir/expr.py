"""`tir.expr`: the expression nodes, under the names users know."""

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.expr import *  # noqa: F403
from loopwright.ir.expr import EQ, NE, BinaryExpr, CompareExpr, Expr
from loopwright.ir.expr import Any_ as Any
from loopwright.ir.op import CallEffect as CallEffectKind

PrimExpr = ExprOp = Expr
BinaryOpExpr, CmpExpr = BinaryExpr, CompareExpr
EqualOp, NotEqualOp = EQ, NE
