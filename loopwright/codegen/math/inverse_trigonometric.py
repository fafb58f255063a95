"""asin, acos, atan, atan2: odd polynomials on a short interval; the rest of the domain is folded onto it.

tools/fit_polynomials.py has the fits of (asin x / x - 1) / x² on [0, ½] and (atan x / x - 1) / x² on [0, 1], or in
float64 on [0, tan(π/8)]; and of acos x / √(1 - x) on [0, 1], float32's acos.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, bits_of, copysign, fma, magnitude, polynomial, select
from loopwright.ir import intrinsics

_ASIN: Final = (0.166667521, 0.074952893, 0.0454715714, 0.02417312, 0.0421779417)
_ACOS: Final = (
    1.57079637,
    -0.214607045,
    0.0891502053,
    -0.051533334,
    0.0361996256,
    -0.0283595473,
    0.019941764,
    -0.00940471981,
    0.00203027832,
)
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
_ASIN_FLOAT64: Final = (
    0.16666666666665403,
    0.075000000003387829,
    0.044642856826812426,
    0.030381959201544004,
    0.022371756457235395,
    0.017359729408521044,
    0.013884986358066951,
    0.012170882232723623,
    0.0065206063982130528,
    0.019548807657604104,
    -0.016257056476331761,
    0.031935131329267355,
)
_ATAN_FLOAT64: Final = (
    -0.33333333333333198,
    0.19999999999953233,
    -0.14285714280165007,
    0.11111110782069628,
    -0.090908977226356616,
    0.076920596686080672,
    -0.066630986266878953,
    0.05847854931789867,
    -0.050391702808444176,
    0.038061614433068394,
    -0.017904450184236791,
)
# Pairs of numbers whose sum has twice the precision.
_PI: Final = (3.14159274, -8.74227766e-08)
_HALF_PI: Final = (1.57079637, -4.37113883e-08)
_PI_FLOAT64: Final = (3.141592653589793, 1.2246467991473532e-16)
_HALF_PI_FLOAT64: Final = (1.5707963267948966, 6.123233995736766e-17)
_QUARTER_PI_FLOAT64: Final = (0.7853981633974483, 3.061616997868383e-17)
_TAN_EIGHTH: Final = 0.41421356237309503  # tan(π/8), and of three eighths one over it
_TAN_THREE_EIGHTHS: Final = 2.414213562373095
_INFINITY: Final = float("inf")


def asin(x: ir.Expr) -> ir.Expr:
    """asin x: beyond ½ it is π/2 - 2 asin √((1 - |x|) / 2); NaN outside [-1, 1]."""
    body = Body()
    a = body.let("a", magnitude(x))
    large, z, tail = _folded_asin(body, a)
    half_pi = _HALF_PI if x.dtype.bits == 32 else _HALF_PI_FLOAT64
    folded = half_pi[0] - ((z + z) + (fma(tail, 2.0, -half_pi[1])))
    return body.result(copysign(select(large, folded, z + tail), x))


def acos_float32(x: ir.Expr) -> ir.Expr:
    """acos x: √(1 - |x|) P(|x|), or π less that for negative x; NaN outside [-1, 1]."""
    body = Body()
    a = body.let("a", magnitude(x))
    angle = body.let("angle", intrinsics.sqrt(1.0 - a) * polynomial(a, _ACOS))
    return body.result(select(x < 0.0, _PI[0] - (angle - _PI[1]), angle))


def acos_float64(x: ir.Expr) -> ir.Expr:
    """acos x: π/2 - asin x up to ½ either way, 2 asin √((1 - |x|) / 2) or π less that beyond; NaN outside [-1, 1]."""
    body = Body()
    a = body.let("a", magnitude(x))
    large, z, tail = _folded_asin(body, a)
    positive = body.let("positive", x > 0.0)
    doubled = body.let("doubled", (z + tail) * 2.0)
    folded = select(positive, doubled, _PI_FLOAT64[0] - (doubled - _PI_FLOAT64[1]))
    signed, signed_tail = copysign(z, x), select(positive, tail, tail * -1.0)
    unfolded = _HALF_PI_FLOAT64[0] - (signed + (signed_tail - _HALF_PI_FLOAT64[1]))
    return body.result(select(large, folded, unfolded))


def _folded_asin(body: Body, a: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    """Whether a > ½; z = a or √((1 - a) / 2), at most ½; and asin z - z."""
    large = body.let("large", a > 0.5)
    half = body.let("half", fma(a, -0.5, 0.5))
    square = body.let("square", select(large, half, a * a))
    z = body.let("z", select(large, intrinsics.sqrt(half), a))
    return large, z, body.let("tail", z * square * polynomial(square, _ASIN if a.dtype.bits == 32 else _ASIN_FLOAT64))


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


def atan_float64(x: ir.Expr) -> ir.Expr:
    """atan x: an eighth of a turn, or a quarter, plus an angle whose tangent is at most tan(π/8)."""
    body = Body()
    a = body.let("a", magnitude(x))
    low, middle = body.let("low", a < _TAN_EIGHTH), body.let("middle", a < _TAN_THREE_EIGHTHS)
    one = ir.const(1.0, x.dtype)
    above = select(low, a, select(middle, a - 1.0, ir.const(-1.0, x.dtype)))
    below = select(low, one, select(middle, a + 1.0, a))
    z = body.let("z", above / below)
    whole, rest = (
        select(low, ir.const(0.0, x.dtype), select(middle, ir.const(eighth, x.dtype), quarter))
        for eighth, quarter in zip(_QUARTER_PI_FLOAT64, _HALF_PI_FLOAT64, strict=True)
    )
    return body.result(copysign(whole + (_atan_up_to_eighth(body, z) + rest), x))


def atan2_float64(y: ir.Expr, x: ir.Expr) -> ir.Expr:
    """The angle of the point (x, y), from -π to π; signs of zeros and infinities as in the C standard."""
    body = Body()
    across, up = body.let("across", magnitude(x)), body.let("up", magnitude(y))
    steep = body.let("steep", up > across)
    low, high = body.let("low", select(steep, across, up)), body.let("high", select(steep, up, across))
    middle = body.let("middle", (low > high * _TAN_EIGHTH) | (low == _INFINITY))
    half = body.let("half", select(high > 1.0, ir.const(0.5, x.dtype), 1.0))  # the sum might overflow
    above = select(middle, (low - high) * half, low)
    below = select(middle, low * half + high * half, high)
    # 0 / 0 counts as 0, ∞ / ∞ as 1; NaN equals nothing.
    z = body.let("z", select(low == high, ir.const(0.0, x.dtype), above / below))
    angle = body.let("angle", _atan_up_to_eighth(body, z))
    eighth = _QUARTER_PI_FLOAT64[0] + (angle + _QUARTER_PI_FLOAT64[1])
    angle = body.let("angle", select(middle, eighth, angle))
    angle = body.let("angle", select(steep, _HALF_PI_FLOAT64[0] - (angle - _HALF_PI_FLOAT64[1]), angle))
    left = bits_of(x, "int64") < 0  # also -0.0
    return body.result(copysign(select(left, _PI_FLOAT64[0] - (angle - _PI_FLOAT64[1]), angle), y))


def _atan_up_to_eighth(body: Body, z: ir.Expr) -> ir.Expr:
    square = body.let("square", z * z)
    return fma(z * square, polynomial(square, _ATAN_FLOAT64), z)


def _atan_up_to_1(body: Body, z: ir.Expr) -> ir.Expr:
    square = body.let("square", z * z)
    return fma(z * square, polynomial(square, _ATAN), z)
