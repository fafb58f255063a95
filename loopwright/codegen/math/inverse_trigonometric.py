"""asin, acos, atan, atan2: odd polynomials on a short interval; the rest of the domain is folded onto it.

tools/fit_polynomials.py has the fits of (asin x / x - 1) / x² on [0, ½] and (atan x / x - 1) / x² on [0, 1].
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, bits_of, copysign, fma, magnitude, polynomial, select
from loopwright.ir import intrinsics

_ASIN: Final = (0.166667521, 0.074952893, 0.0454715714, 0.02417312, 0.0421779417)
_ATAN: Final = (
    -0.333332986,
    0.199985474,
    -0.142642409,
    0.109521799,
    -0.084034346,
    0.0579573587,
    -0.0311776362,
    0.0109145045,
    -0.00179360143,
)
# Pairs of numbers whose sum has twice the precision.
_PI: Final = (3.14159274, -8.74227766e-08)
_HALF_PI: Final = (1.57079637, -4.37113883e-08)


def asin_float32(x: ir.Expr) -> ir.Expr:
    """asin x: beyond ½ it is π/2 - 2 asin √((1 - |x|) / 2); NaN outside [-1, 1]."""
    body = Body()
    a = body.let("a", magnitude(x))
    large, z, tail = _folded_asin(body, a)
    folded = _HALF_PI[0] - ((z + z) + (fma(tail, 2.0, -_HALF_PI[1])))
    return body.result(copysign(select(large, folded, z + tail), x))


def acos_float32(x: ir.Expr) -> ir.Expr:
    """acos x: π/2 - asin x up to ½ either way, 2 asin √((1 - |x|) / 2) or π less that beyond; NaN outside [-1, 1]."""
    body = Body()
    a = body.let("a", magnitude(x))
    large, z, tail = _folded_asin(body, a)
    positive = body.let("positive", x > 0.0)
    doubled = body.let("doubled", (z + tail) * 2.0)
    folded = select(positive, doubled, _PI[0] - (doubled - _PI[1]))
    signed, signed_tail = copysign(z, x), select(positive, tail, tail * -1.0)
    return body.result(select(large, folded, _HALF_PI[0] - (signed + (signed_tail - _HALF_PI[1]))))


def _folded_asin(body: Body, a: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    """Whether a > ½; z = a or √((1 - a) / 2), at most ½; and asin z - z."""
    large = body.let("large", a > 0.5)
    half = body.let("half", fma(a, -0.5, 0.5))
    square = body.let("square", select(large, half, a * a))
    z = body.let("z", select(large, intrinsics.sqrt(half), a))
    return large, z, body.let("tail", z * square * polynomial(square, _ASIN))


def atan_float32(x: ir.Expr) -> ir.Expr:
    """atan x: beyond 1 it is π/2 - atan(1 / |x|)."""
    body = Body()
    a = body.let("a", magnitude(x))
    large = body.let("large", a > 1.0)
    z = body.let("z", select(large, 1.0, a) / select(large, a, 1.0))
    angle = body.let("angle", _atan_up_to_1(body, z))
    return body.result(copysign(select(large, _HALF_PI[0] - (angle - _HALF_PI[1]), angle), x))


def atan2_float32(y: ir.Expr, x: ir.Expr) -> ir.Expr:
    """The angle of the point (x, y), from -π to π; signs of zeros and infinities as in the C standard."""
    body = Body()
    across, up = body.let("across", magnitude(x)), body.let("up", magnitude(y))
    steep = body.let("steep", up > across)
    low, high = body.let("low", select(steep, across, up)), body.let("high", select(steep, up, across))
    # 0 / 0 counts as 0, ∞ / ∞ as 1; NaN equals nothing.
    quotient = select(low == high, select(high == 0.0, ir.const(0.0, x.dtype), 1.0), low / high)
    angle = body.let("angle", _atan_up_to_1(body, body.let("z", quotient)))
    angle = body.let("angle", select(steep, _HALF_PI[0] - (angle - _HALF_PI[1]), angle))
    left = bits_of(x) < 0  # also -0.0
    return body.result(copysign(select(left, _PI[0] - (angle - _PI[1]), angle), y))


def _atan_up_to_1(body: Body, z: ir.Expr) -> ir.Expr:
    square = body.let("square", z * z)
    return fma(z * square, polynomial(square, _ATAN), z)
