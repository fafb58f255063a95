"""sigmoid, tanh, sinh, cosh and the inverses asinh, acosh, atanh: exponentials and logarithms that keep small values.

tanh and sinh go through e^x - 1 rather than e^x, the inverses through log(1 + u) rather than log: near zero, where
the plain formulas subtract nearly equal numbers, those are accurate. tools/fit_polynomials.py has the fit.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    ROUND,
    ROUND_FLOAT64_BITS,
    Body,
    at_least,
    at_most,
    bits_of,
    copysign,
    fma,
    from_bits,
    magnitude,
    polynomial,
    select,
)
from loopwright.codegen.math.exp import (
    EXP_TAIL,
    EXP_TAIL_FLOAT64,
    LN2,
    LOG2_E,
    Scale,
    exp_of,
    exp_of_float64,
    expm1_tail,
    power_of_two,
    reduce_by_ln2,
    reduce_by_ln2_float64,
    scale,
    scale_avx512,
    scale_biased,
    scale_float64,
)
from loopwright.codegen.math.log import log1p_of
from loopwright.ir import intrinsics

_LN2: Final = 0.6931471805599453
_NAN: Final = float("nan")
_HALF_EXPM1_TAIL: Final = (1.0, 0.666661918, 0.333334833, 0.133858606, 0.0444744118)  # of (e^(2r) - 1) / 2


def sigmoid_float32(x: ir.Expr) -> ir.Expr:
    """1 / (1 + e^-x), from e^-|x|: that cannot overflow, and keeps the small results of negative x."""
    return _sigmoid(x, scale_biased)


def sigmoid_float32_avx512(x: ir.Expr) -> ir.Expr:
    """1 / (1 + e^-x), the same bits with fewer instructions."""
    return _sigmoid(x, scale_avx512)


def _sigmoid(x: ir.Expr, scale_by: Scale) -> ir.Expr:
    body = Body()
    power = body.let("power", exp_of(body, at_least(magnitude(x) * -1.0, -104.0), scale_by))
    return body.result(select(x < 0.0, power, 1.0) / (power + 1.0))


def sigmoid_float64(x: ir.Expr) -> ir.Expr:
    """1 / (1 + e^-x), from e^-|x|."""
    body = Body()
    power = body.let("power", exp_of_float64(body, at_least(magnitude(x) * -1.0, -746.0)))
    return body.result(select(x < 0.0, power, 1.0) / (power + 1.0))


def tanh_float32(x: ir.Expr) -> ir.Expr:
    """tanh x = h / (h + 1) with h = (e^(2|x|) - 1) / 2, and the sign of x; 1 from 9.01 on."""
    body = Body()
    a = body.let("a", at_most(magnitude(x), 9.5))
    rounded = body.let("rounded", fma(a, 2 * LOG2_E, ROUND))
    # ln 2 rounded to float32 is right to 28 bits: enough here, where a large n goes with a result near 1.
    r = body.let("r", fma(rounded - ROUND, -LN2[0] / 2, a))
    half_expm1 = fma(r * r, polynomial(r, _HALF_EXPM1_TAIL), r)
    power = body.let("power", power_of_two(rounded))
    h = body.let("h", fma(power, half_expm1, fma(power, 0.5, -0.5)))
    return body.result(copysign(h / (h + 1.0), x))


def tanh_float64(x: ir.Expr) -> ir.Expr:
    """tanh x = t / (t + 2) with t = e^(2|x|) - 1, and the sign of x; 1 from 19.06 on."""
    body = Body()
    doubled = body.let("doubled", at_most(magnitude(x), 20.0) * 2.0)
    r, rounded = reduce_by_ln2_float64(body, doubled)
    power = body.let("power", from_bits((bits_of(rounded, "uint64") - (ROUND_FLOAT64_BITS - 1023)) << 52))
    expm1 = fma(r * r, polynomial(r, EXP_TAIL_FLOAT64), r)
    t = body.let("t", fma(power, expm1, power - 1.0))
    return body.result(copysign(t / (t + 2.0), x))


def sinh_float32(x: ir.Expr) -> ir.Expr:
    """sinh x = (t + t / (t + 1)) / 2 with t = e^|x| - 1, computed as q = t / 4, which does not overflow before sinh."""
    body = Body()
    size = body.let("size", magnitude(x))
    r, rounded = reduce_by_ln2(body, at_most(size, 89.5))
    quarter = body.let("quarter", power_of_two(rounded, -2))
    q = body.let("q", fma(quarter, expm1_tail(body, r), quarter - 0.25))
    value = copysign((q + q / fma(q, 4.0, 1.0)) * 2.0, x)
    return body.result(select(size < 2.0**-12, x, value))  # t / 4 would lose the digits of denormals


def cosh_float32(x: ir.Expr) -> ir.Expr:
    """cosh x = h + 1 / (4h) with h = e^|x| / 2, which does not overflow before cosh."""
    body = Body()
    r, rounded = reduce_by_ln2(body, at_most(magnitude(x), 90.0))
    h = body.let("h", scale(body, polynomial(r, (0.5, 0.5, *(c / 2 for c in EXP_TAIL))), rounded))
    return body.result(h + 0.25 / h)


def sinh_float64(x: ir.Expr) -> ir.Expr:
    """sinh x, as in float32."""
    body = Body()
    size = body.let("size", magnitude(x))
    r, rounded = reduce_by_ln2_float64(body, body.let("a", at_most(size, 710.6)))
    quarter = body.let("quarter", from_bits((bits_of(rounded, "uint64") - (ROUND_FLOAT64_BITS - 1023 + 2)) << 52))
    expm1 = fma(r * r, polynomial(r, EXP_TAIL_FLOAT64), r)
    q = body.let("q", fma(quarter, expm1, quarter - 0.25))
    value = copysign((q + q / fma(q, 4.0, 1.0)) * 2.0, x)
    return body.result(select(size < 2.0**-28, x, value))


def cosh_float64(x: ir.Expr) -> ir.Expr:
    """cosh x, as in float32."""
    body = Body()
    r, rounded = reduce_by_ln2_float64(body, body.let("a", at_most(magnitude(x), 711.0)))
    half = polynomial(r, (0.5, 0.5, *(c / 2 for c in EXP_TAIL_FLOAT64)))
    h = body.let("h", scale_float64(body, half, rounded))
    return body.result(h + 0.25 / h)


def asinh(x: ir.Expr) -> ir.Expr:
    """log(1 + u), u = a + a² / (1 + √(a² + 1)) and a = |x|; for large a, where a² overflows, log(1 + a) + ln 2."""
    body = Body()
    a = body.let("a", magnitude(x))
    square = body.let("square", a * a)
    u = a + square / (intrinsics.sqrt(square + 1.0) + 1.0)
    return body.result(copysign(_log1p_or_doubled(body, a, u), x))


def acosh(x: ir.Expr) -> ir.Expr:
    """log(1 + u), u = t + √(t (x + 1)) and t = x - 1; for large x log(1 + x) + ln 2; NaN below 1."""
    body = Body()
    t = body.let("t", x - 1.0)
    u = t + intrinsics.sqrt(t * (x + 1.0))
    return body.result(select(x < 1.0, _NAN, _log1p_or_doubled(body, x, u)))


def _log1p_or_doubled(body: Body, a: ir.Expr, u: ir.Expr) -> ir.Expr:
    """log(1 + u), or log(2 a) where a is so large that a² would overflow (and 1 no longer counts)."""
    large = body.let("large", a > (2.0**30 if a.dtype.bits == 32 else 2.0**60))
    return log1p_of(body, select(large, a, u)) + select(large, ir.const(_LN2, a.dtype), 0.0)


def atanh(x: ir.Expr) -> ir.Expr:
    """log(1 + 2a / (1 - a)) / 2 with a = |x|, and the sign of x: ∞ at 1, NaN beyond."""
    body = Body()
    a = body.let("a", magnitude(x))
    return body.result(copysign(log1p_of(body, (a + a) / (1.0 - a)) * 0.5, x))
