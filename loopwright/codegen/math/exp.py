"""exp, exp2, exp10: the argument is cut into n ln 2 + r with n an integer and |r| ≤ ln 2 / 2; 2^n is a bit pattern.

The polynomials are fits of (e^r - 1 - r) / r² and (2^r - 1) / r: tools/fit_polynomials.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.math.avx512 import scaled_avx512
from loopwright.codegen.math.body import (
    ROUND,
    ROUND_BITS,
    ROUND_FLOAT64,
    ROUND_FLOAT64_BITS,
    Body,
    at_least,
    at_most,
    bits_of,
    fma,
    from_bits,
    polynomial,
    polynomial_by_pairs,
)

# Two numbers whose sum is ln 2 to twice the precision; likewise log10 2.
LN2: Final = (0.693147182, -1.90465421e-09)
LN2_FLOAT64: Final = (0.6931471805599453, 2.3190468138462996e-17)
_LOG10_2: Final = (0.30103001, -1.43209888e-08)
LOG2_E: Final = 1.4426950408889634
_LOG10_2_FLOAT64: Final = (0.3010299956639812, -2.8037281277851704e-18)
_LN2: Final = 0.6931471805599453
_LOG2_10: Final = 3.3219280948873623
_LN10: Final = 2.302585092994046

EXP_TAIL: Final = (0.49999994, 0.166665196, 0.0416684002, 0.00836884975, 0.00138143101)
_EXPM1_TAIL: Final = (0.5, 0.166666657, 0.0416663587, 0.00833338965, 0.00139408221, 0.000198458452)
EXP2: Final = (1.0, 0.693147182, 0.240226507, 0.0555032715, 0.00961800292, 0.00134005351, 0.000154765716)
EXP_TAIL_FLOAT64: Final = (
    0.5,
    0.16666666666666677,
    0.041666666666666505,
    0.0083333333333215145,
    0.00138888888889635,
    0.0001984126988647619,
    2.4801587171081456e-05,
    2.7557243805242885e-06,
    2.7557403248487272e-07,
    2.510919475034039e-08,
    2.0875335504955362e-09,
)

# How a value is multiplied by 2^n, for the n that a rounded float holds: `scale`, or one instruction that does it.
Scale = Callable[[Body, ir.Expr, ir.Expr], ir.Expr]


def exp_float32(x: ir.Expr) -> ir.Expr:
    """e^x: overflows to infinity above 88.72, is denormal below -87.34 and zero below -103.98."""
    return _exp(x, scale_biased)


def exp_float32_avx512(x: ir.Expr) -> ir.Expr:
    """e^x, the same bits with fewer instructions."""
    return _exp(x, scale_avx512)


def _exp(x: ir.Expr, scale_by: Scale) -> ir.Expr:
    body = Body()
    return body.result(exp_of(body, at_least(at_most(x, 89.0), -104.0), scale_by))


def exp2_float32(x: ir.Expr) -> ir.Expr:
    """2^x; exact where x is an integer."""
    return _exp2(x, scale)


def exp2_float32_avx512(x: ir.Expr) -> ir.Expr:
    """2^x, the same bits with fewer instructions."""
    return _exp2(x, scale_avx512)


def _exp2(x: ir.Expr, scale_by: Scale) -> ir.Expr:
    body = Body()
    x = body.let("x", at_least(at_most(x, 129.0), -151.0))
    rounded = body.let("rounded", x + ROUND)
    r = body.let("r", x - (rounded - ROUND))
    return body.result(scale_by(body, polynomial(r, EXP2), rounded))


def exp10_float32(x: ir.Expr) -> ir.Expr:
    """10^x."""
    body = Body()
    x = body.let("x", at_least(at_most(x, 38.6), -45.5))
    rounded = body.let("rounded", fma(x, _LOG2_10, ROUND))
    n = body.let("n", rounded - ROUND)
    r = body.let("r", fma(n, -_LOG10_2[1], fma(n, -_LOG10_2[0], x)) * _LN10)
    return body.result(scale(body, polynomial(r, (1.0, 1.0, *EXP_TAIL)), rounded))


def reduce_by_ln2(body: Body, x: ir.Expr, bias: int = 0) -> tuple[ir.Expr, ir.Expr]:
    """r and the rounded n, plus a bias and in the last bits of a float, of x = n ln 2 + r."""
    rounded = body.let("rounded", fma(x, LOG2_E, ROUND + bias))
    n = body.let("n", rounded - (ROUND + bias))
    r = body.let("r", fma(n, -LN2[1], fma(n, -LN2[0], x)))  # the first step is exact: x and n ln 2 nearly cancel
    return r, rounded


def scale(body: Body, value: ir.Expr, rounded: ir.Expr) -> ir.Expr:
    """value · 2^n. In two steps, neither of which overflows alone; the second rounds denormal results once."""
    twice_biased = body.let("k", bits_of(rounded) - (ROUND_BITS - 2 * 127))
    half = body.let("half", twice_biased >> 1)
    return value * from_bits(half << 23) * from_bits((twice_biased - half) << 23)


def scale_biased(body: Body, value: ir.Expr, rounded: ir.Expr) -> ir.Expr:
    """As `scale`, of an n that was rounded with the bias of both steps: shifting leaves nothing else of its bits."""
    bits = body.let("k", bits_of(rounded))
    half = body.let("half", bits >> 1)
    return value * from_bits(half << 23) * from_bits((bits - half) << 23)


def scale_avx512(body: Body, value: ir.Expr, rounded: ir.Expr) -> ir.Expr:
    """value · 2^n in one step, which rounds denormal results once too."""
    return scaled_avx512(body.let("value", value), body.let("n", rounded - ROUND))


def exp_of(body: Body, x: ir.Expr, scale_by: Scale = scale_biased) -> ir.Expr:
    """e^x for x in [-104, 89], or NaN."""
    bias = 2 * 127 if scale_by is scale_biased else 0
    r, rounded = reduce_by_ln2(body, body.let("x", x), bias)
    return scale_by(body, polynomial(r, (1.0, 1.0, *EXP_TAIL)), rounded)


def expm1_tail(body: Body, r: ir.Expr) -> ir.Expr:
    """e^r - 1 for |r| ≤ ln 2 / 2, without the loss that subtracting 1 would bring."""
    return body.let("expm1", fma(r * r, polynomial(r, _EXPM1_TAIL), r))


def power_of_two(rounded: ir.Expr, shift: int = 0) -> ir.Expr:
    """2^(n + shift) for the n that `rounded` holds; -126 ≤ n + shift ≤ 127."""
    return from_bits((bits_of(rounded) - (ROUND_BITS - 127 - shift)) << 23)


def exp_float64(x: ir.Expr) -> ir.Expr:
    """e^x: overflows to infinity above 709.78, is zero below -745.13."""
    return _exp_float64(x, scale_float64)


def exp_float64_avx512(x: ir.Expr) -> ir.Expr:
    """e^x, the same bits with fewer instructions."""
    return _exp_float64(x, scale_float64_avx512)


def _exp_float64(x: ir.Expr, scale_by: Scale) -> ir.Expr:
    body = Body()
    return body.result(exp_of_float64(body, at_least(at_most(x, 710.0), -746.0), scale_by))


def scale_float64_avx512(body: Body, value: ir.Expr, rounded: ir.Expr) -> ir.Expr:
    """value · 2^n in one step."""
    return scaled_avx512(body.let("value", value), body.let("n", rounded - ROUND_FLOAT64))


def exp_of_float64(body: Body, x: ir.Expr, scale_by: Scale | None = None) -> ir.Expr:
    """e^x for x in [-746, 710], or NaN."""
    x = body.let("x", x)
    r, rounded = reduce_by_ln2_float64(body, x)
    tail = polynomial_by_pairs(body, r, EXP_TAIL_FLOAT64, body.let("square", r * r))
    return (scale_by or scale_float64)(body, fma(r, fma(r, tail, 1.0), 1.0), rounded)


def exp2_float64(x: ir.Expr) -> ir.Expr:
    """2^x = e^(r ln 2) 2^n; exact where x is an integer."""
    body = Body()
    x = body.let("x", at_least(at_most(x, 1025.0), -1076.0))
    rounded = body.let("rounded", x + ROUND_FLOAT64)
    r = body.let("r", (x - (rounded - ROUND_FLOAT64)) * _LN2)
    return body.result(scale_float64(body, polynomial(r, (1.0, 1.0, *EXP_TAIL_FLOAT64)), rounded))


def exp10_float64(x: ir.Expr) -> ir.Expr:
    """10^x."""
    body = Body()
    x = body.let("x", at_least(at_most(x, 309.0), -324.5))
    rounded = body.let("rounded", fma(x, _LOG2_10, ROUND_FLOAT64))
    n = body.let("n", rounded - ROUND_FLOAT64)
    r = body.let("r", fma(n, -_LOG10_2_FLOAT64[1], fma(n, -_LOG10_2_FLOAT64[0], x)) * _LN10)
    return body.result(scale_float64(body, polynomial(r, (1.0, 1.0, *EXP_TAIL_FLOAT64)), rounded))


def scale_float64(body: Body, value: ir.Expr, rounded: ir.Expr) -> ir.Expr:
    """value · 2^n, in two steps as `scale`."""
    # Unsigned, since AVX2 shifts 64-bit integers right only without sign; after adding the bias they have none.
    twice_biased = body.let("k", bits_of(rounded, "uint64") - (ROUND_FLOAT64_BITS - 2 * 1023))
    half = body.let("half", twice_biased >> 1)
    return value * from_bits(half << 52) * from_bits((twice_biased - half) << 52)


def reduce_by_ln2_float64(body: Body, x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """r and the rounded n, in the last bits of a float, of x = n ln 2 + r."""
    rounded = body.let("rounded", fma(x, LOG2_E, ROUND_FLOAT64))
    n = body.let("n", rounded - ROUND_FLOAT64)
    r = body.let("r", fma(n, -LN2_FLOAT64[1], fma(n, -LN2_FLOAT64[0], x)))
    return r, rounded
