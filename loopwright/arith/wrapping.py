"""Narrow and unsigned integers, floats and vectors: the few identities that hold bit by bit.

    x + 0   x - 0   x * 1   x // 1   x * 0   x - x   (x + 2) + 3   min(x, x)        integers, also when they wrap
    x * 1   x / 1   x - 0.0   x + -0.0   min(x, x)                                  floats, also NaN, infinity and -0.0

`x + 0.0` stays: it turns -0.0 into 0.0. `x * 0.0` and `x - x` stay: they are NaN for infinities.
"""

from __future__ import annotations

from math import copysign
from typing import Any

from loopwright.arith.bounds import operand_ranges
from loopwright.arith.compare import by_interval
from loopwright.arith.engine import Engine
from loopwright.arith.linear import imm
from loopwright.ir import (
    Add,
    BinaryExpr,
    Broadcast,
    CompareExpr,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Sub,
    const,
)
from loopwright.ir.operators import fold_or_build
from loopwright.runtime.dtype import BOOL


def fold(e: Expr) -> Expr | None:
    """The literal that an operation on two literals is."""
    if isinstance(e, BinaryExpr) and type(e.a) is type(e.b) and type(e.a) in (IntImm, FloatImm):
        folded = fold_or_build(type(e), e.a, e.b)
        return folded if isinstance(folded, (IntImm, FloatImm)) else None
    return None


def simplify_wrapping(s: Engine, e: Expr) -> Expr | None:
    """What `e`, whose operands are simple, may be replaced by; None to keep it."""
    if not isinstance(e, BinaryExpr):
        return None
    a, b = e.a, e.b
    dtype = a.dtype
    if dtype.is_vector:
        return _vector(e, a, b)
    if isinstance(e, CompareExpr):
        return _compare(s, e) if dtype.is_int else None
    if isinstance(e, (Min, Max)):
        return a if s.same(a, b) else None
    if dtype.is_float:
        return _float(e, a, b)
    return _integer(s, e, a, b) if dtype.is_int else None


def _float(e: Expr, a: Expr, b: Expr) -> Expr | None:
    if isinstance(e, Mul):
        for one, other in ((a, b), (b, a)):
            if isinstance(one, FloatImm) and one.value == 1:
                return other
    if isinstance(b, FloatImm):
        if isinstance(e, Div) and b.value == 1:
            return a
        positive = copysign(1.0, b.value) > 0
        if b.value == 0 and ((isinstance(e, Sub) and positive) or (isinstance(e, Add) and not positive)):
            return a
    return None


def _integer(s: Engine, e: BinaryExpr, a: Expr, b: Expr) -> Expr | None:
    cls = type(e)
    if cls in (Add, Mul) and type(a) is IntImm:
        a, b = b, a
    if type(b) is IntImm:
        value = b.value
        if (cls in (Add, Sub) and value == 0) or (cls in (Mul, Div, FloorDiv) and value == 1):
            return a
        if (cls is Mul and value == 0) or (cls in (Mod, FloorMod) and value == 1):
            return const(0, e.dtype)
        # Addition stays associative when it wraps.
        if cls is Add and type(a) is Add and type(a.b) is IntImm:
            return Add(a.a, fold_or_build(Add, a.b, b))
    if cls is Sub and s.same(a, b):
        return const(0, e.dtype)
    return None


def _compare(s: Engine, e: CompareExpr) -> Expr | None:
    """Limits of the type settle some comparisons; nothing is moved from one side to the other."""
    (low_a, high_a), (low_b, high_b) = operand_ranges(s, e)
    result = by_interval(type(e), low_a - high_b, high_a - low_b)
    if result is None and s.same(e.a, e.b):
        result = by_interval(type(e), 0, 0)
    return None if result is None else imm(int(result), BOOL)


def _vector(e: Any, a: Expr, b: Expr) -> Expr | None:
    """Operations on equal lanes, and ramps that are shifted or scaled."""
    cls = type(e)
    if type(a) is Broadcast and type(b) is Broadcast:
        literal = type(a.value) is type(b.value) and type(a.value) in (IntImm, FloatImm)
        if a.value.dtype.is_int or literal:
            return Broadcast(cls(a.value, b.value), a.lanes)
    if a.dtype.element not in ("int32", "int64") or cls not in (Add, Sub, Mul):
        return None
    if type(a) is Broadcast and type(b) is Ramp and cls is not Sub:
        a, b = b, a
    if type(a) is Ramp and type(b) is Broadcast:
        if cls is Mul:
            return Ramp(Mul(a.base, b.value), Mul(a.stride, b.value), a.lanes)
        return Ramp(cls(a.base, b.value), a.stride, a.lanes)
    if type(a) is Ramp and type(b) is Ramp and cls is not Mul:
        return Ramp(cls(a.base, b.base), cls(a.stride, b.stride), a.lanes)
    return None
