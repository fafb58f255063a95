"""hypot: the root of a sum of squares that neither overflow nor vanish; infinite if one side is, whatever the other."""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, fma, magnitude, select, typed
from loopwright.ir import intrinsics

_INFINITY: Final = float("inf")
_FAR: Final = 2.0**500  # squares of what is between one over it and it keep all their digits


def hypot_float32(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """√(x² + y²), in float64: the squares are exact there."""
    body = Body()
    a, b = (body.let("wide", side.astype(typed("float64", x))) for side in (x, y))
    length = intrinsics.sqrt(fma(a, a, b * b)).astype(x.dtype)
    return body.result(_with_infinity(x, y, length))


def hypot_float64(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """√(x² + y²), both scaled by a power of two first where the greater is very large or very small."""
    body = Body()
    a, b = body.let("a", magnitude(x)), body.let("b", magnitude(y))
    most = body.let("most", select(a > b, a, b))
    large, small = body.let("large", most > _FAR), body.let("small", most < 1 / _FAR)
    one = ir.const(1.0, x.dtype)
    up = body.let("up", select(large, ir.const(2.0**-600, x.dtype), select(small, ir.const(2.0**600, x.dtype), one)))
    down = select(large, ir.const(2.0**600, x.dtype), select(small, ir.const(2.0**-600, x.dtype), one))
    a, b = body.let("a", a * up), body.let("b", b * up)
    return body.result(_with_infinity(x, y, intrinsics.sqrt(fma(a, a, b * b)) * down))


def _with_infinity(x: ir.Expr, y: ir.Expr, length: ir.Expr) -> ir.Expr:
    infinite = (magnitude(x) == _INFINITY) | (magnitude(y) == _INFINITY)  # also where the other side is NaN
    return select(infinite, _INFINITY, length)
