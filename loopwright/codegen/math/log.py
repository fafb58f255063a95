"""log, log2, log10, log1p: x = m 2^e with m in [√½, √2), so that log x = e ln 2 + log(1 + f), f = m - 1.

For float32, log(1 + f) = f - f²/2 + f³ P(f); for float64, with s = f / (2 + f), it is 2s + s³ Q(s²), which needs fewer
terms but a division. tools/fit_polynomials.py has the fits.

log of float32, the most frequent, has an interval and a polynomial of its own: [¾, 1½) is one for which AVX-512 has
instructions, which spare the handling of denormals, zero, infinity and negative numbers. Elsewhere plain arithmetic
finds the same e and f, so the result has the same bits.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.avx512 import FROM_ONE, exponent_avx512, mantissa_avx512
from loopwright.codegen.math.body import (
    Body,
    bits_of,
    copysign,
    fma,
    from_bits,
    polynomial,
    polynomial_by_pairs,
    select,
    typed,
)
from loopwright.codegen.math.exp import LN2, LN2_FLOAT64
from loopwright.ir import intrinsics

_NATURAL_TAIL: Final = (
    0.333334506,
    -0.250000983,
    0.199908301,
    -0.166471764,
    0.144786164,
    -0.13162972,
    0.104656518,
    -0.0450850353,
)
_TAIL: Final = (
    0.333333105,
    -0.250000119,
    0.20002237,
    -0.166679025,
    0.142167687,
    -0.124051683,
    0.119100235,
    -0.116896391,
    0.0671336874,
)
_TAIL_FLOAT64: Final = (
    0.66666666666667485,
    0.39999999999310398,
    0.2857142876749576,
    0.22222195821027443,
    0.18183715606454859,
    0.15309987841301875,
    0.14838363324367973,
)
# Pairs of numbers whose sum has twice the precision; exponents, which may be infinite, are multiplied by positive ones.
_LOG2_E: Final = (1.44269502, 1.92596303e-08)
_LOG10_E: Final = (0.434294492, -1.010305e-08)
_LOG10_2: Final = (0.30102998, 1.54813335e-08)
_LOG2_E_FLOAT64: Final = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E_FLOAT64: Final = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2_FLOAT64: Final = (0.30102999566398114, 5.270742310347266e-17)
_THREE_QUARTERS_BITS: Final = 0x3F400000
SQRT_HALF_BITS: Final = 0x3F3504F3
SQRT_HALF_BITS_FLOAT64: Final = 0x3FE6A09E667F3BCD
_INFINITY: Final = float("inf")
# The NaN that x86 makes of negative numbers: all ways to compute a logarithm give this one.
_NAN_BITS: Final = {32: 0xFFC00000, 64: 0xFFF8000000000000}


def log_float32(x: ir.Expr) -> ir.Expr:
    """ln x: -∞ at zero, NaN below."""
    body = Body()
    e, f = split_exponent(body, x, _THREE_QUARTERS_BITS)
    return body.result(_with_limits(x, _natural(e, f)))


def log_float32_avx512(x: ir.Expr) -> ir.Expr:
    """ln x: the exponent of zero is -∞, that of infinity ∞, and m of a negative number NaN."""
    body = Body()
    m = body.let("m", mantissa_avx512(x))
    e = exponent_avx512(x) - exponent_avx512(m)  # m < 1 has the exponent -1
    return body.result(_natural(e, body.let("f", m - 1.0)))


def _natural(e: ir.Expr, f: ir.Expr) -> ir.Expr:
    """e ln 2 + ln(1 + f). Rounded to float32, ln 2 is right to 28 bits: what is missing is 0.06 ulp at most."""
    curve = fma(polynomial(f, _NATURAL_TAIL), f, -0.5)
    return fma(e, LN2[0], fma(f * f, curve, f))


def log2_float32(x: ir.Expr) -> ir.Expr:
    """log2 x; exact where x is a power of two."""
    body = Body()
    return body.result(_with_limits(x, _log2(body, *split_exponent(body, x))))


def log2_float32_avx512(x: ir.Expr) -> ir.Expr:
    """log2 x, the same bits with fewer instructions."""
    body = Body()
    return body.result(_log2(body, *_split_avx512(body, x)))


def log10_float32(x: ir.Expr) -> ir.Expr:
    """log10 x."""
    body = Body()
    return body.result(_with_limits(x, _log10(body, *split_exponent(body, x))))


def log10_float32_avx512(x: ir.Expr) -> ir.Expr:
    """log10 x, the same bits with fewer instructions."""
    body = Body()
    return body.result(_log10(body, *_split_avx512(body, x)))


def _log2(body: Body, e: ir.Expr, f: ir.Expr) -> ir.Expr:
    tail = fma(f, _LOG2_E[1], log_tail(body, f) * _LOG2_E[0])
    return e + fma(f, _LOG2_E[0], tail)


def _log10(body: Body, e: ir.Expr, f: ir.Expr) -> ir.Expr:
    tail = fma(f, _LOG10_E[1], fma(e, _LOG10_2[1], log_tail(body, f) * _LOG10_E[0]))
    return fma(e, _LOG10_2[0], fma(f, _LOG10_E[0], tail))


def log1p(x: ir.Expr) -> ir.Expr:
    """ln(1 + x), accurate for small x."""
    body = Body()
    return body.result(log1p_of(body, x))


def log1p_of(body: Body, x: ir.Expr) -> ir.Expr:
    """ln(1 + x): what rounding 1 + x lost is found exactly, scaled like m, and added to f."""
    x = body.let("x", x)
    total = body.let("total", x + 1.0)
    above = body.let("above", x > 1.0)
    lost = select(above, ir.const(1.0, x.dtype), x) - (total - select(above, x, ir.const(1.0, x.dtype)))
    is_single = x.dtype.bits == 32
    digits, bias, parts = (23, 127, LN2) if is_single else (52, 1023, LN2_FLOAT64)
    bits = bits_of(total, f"int{x.dtype.bits}")
    exponent, m = _normalize(body, bits, digits, SQRT_HALF_BITS if is_single else SQRT_HALF_BITS_FLOAT64)
    # 2^-e, which must not leave the normal numbers; from 2^25 (2^54) on nothing is lost that matters.
    least = from_bits((bias - intrinsics.minimum(exponent, ir.const(bias - 1, exponent.dtype))) << digits)
    f = body.let("f", (m - 1.0) + lost * least)
    e = body.let("e", exponent.astype(typed("int32", x)).astype(x.dtype))
    tail = fma(e, parts[1], log_tail(body, f)) if is_single else _log_tail_float64(body, f, e * parts[1])
    value = _with_limits(total, fma(e, parts[0], f + tail))
    return copysign(value, x)  # for the sake of -0.0 alone


def split_exponent(body: Body, x: ir.Expr, least: int = SQRT_HALF_BITS) -> tuple[ir.Expr, ir.Expr]:
    """e as a float, and m - 1, of a positive float32; `least` are the bits of the least m."""
    small = body.let("small", x < 2.0**-126)  # denormal: scaled up first
    exponent, m = _normalize(body, bits_of(select(small, x * 2.0**24, x)), 23, least)
    e = body.let("e", exponent.astype(x.dtype) - select(small, ir.const(24.0, x.dtype), 0.0))
    return e, body.let("f", m - 1.0)


def _normalize(body: Body, bits: ir.Expr, digits: int, least: int) -> tuple[ir.Expr, ir.Expr]:
    """The exponent e and m of the positive normal number with these bits; `least` are the bits of the least m."""
    bits = body.let("bits", bits)
    exponent = body.let("exponent", (bits - least) >> digits)
    return exponent, from_bits(bits - (exponent << digits))


def log_tail(body: Body, f: ir.Expr) -> ir.Expr:
    """ln(1 + f) - f."""
    square = body.let("square", f * f)
    return body.let("tail", square * fma(polynomial_by_pairs(body, f, _TAIL, square), f, -0.5))


def _with_limits(x: ir.Expr, value: ir.Expr) -> ir.Expr:
    """`value`, the logarithm of a positive finite x, with what it is elsewhere."""
    bits = x.dtype.bits
    nan = from_bits(ir.const(_NAN_BITS[bits], typed(f"uint{bits}", x)))
    limit = select(x == 0.0, ir.const(-_INFINITY, x.dtype), nan)
    return select(x < _INFINITY, select(x > 0.0, value, limit), x)


def log_float64(x: ir.Expr) -> ir.Expr:
    """ln x: -∞ at zero, NaN below."""
    body = Body()
    return body.result(_with_limits(x, _natural_float64(body, *_split_exponent_float64(body, x))))


def log_float64_avx512(x: ir.Expr) -> ir.Expr:
    """ln x, the same bits with fewer instructions."""
    body = Body()
    return body.result(_natural_float64(body, *_split_avx512(body, x)))


def log2_float64(x: ir.Expr) -> ir.Expr:
    """log2 x; exact where x is a power of two."""
    body = Body()
    return body.result(_with_limits(x, _log2_float64(body, *_split_exponent_float64(body, x))))


def log2_float64_avx512(x: ir.Expr) -> ir.Expr:
    """log2 x, the same bits with fewer instructions."""
    body = Body()
    return body.result(_log2_float64(body, *_split_avx512(body, x)))


def log10_float64(x: ir.Expr) -> ir.Expr:
    """log10 x."""
    body = Body()
    return body.result(_with_limits(x, _log10_float64(body, *_split_exponent_float64(body, x))))


def log10_float64_avx512(x: ir.Expr) -> ir.Expr:
    """log10 x, the same bits with fewer instructions."""
    body = Body()
    return body.result(_log10_float64(body, *_split_avx512(body, x)))


def _natural_float64(body: Body, e: ir.Expr, f: ir.Expr) -> ir.Expr:
    tail = _log_tail_float64(body, f, e * LN2_FLOAT64[1])
    return fma(e, LN2_FLOAT64[0], f + tail)


def _log2_float64(body: Body, e: ir.Expr, f: ir.Expr) -> ir.Expr:
    tail = fma(f, _LOG2_E_FLOAT64[1], _log_tail_float64(body, f) * _LOG2_E_FLOAT64[0])
    return e + fma(f, _LOG2_E_FLOAT64[0], tail)


def _log10_float64(body: Body, e: ir.Expr, f: ir.Expr) -> ir.Expr:
    tail = fma(e, _LOG10_2_FLOAT64[1], _log_tail_float64(body, f) * _LOG10_E_FLOAT64[0])
    tail = fma(f, _LOG10_E_FLOAT64[1], tail)
    return fma(e, _LOG10_2_FLOAT64[0], fma(f, _LOG10_E_FLOAT64[0], tail))


def _split_avx512(body: Body, x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """e and m - 1, as `split_exponent`; the exponent of zero is -∞, that of infinity ∞, and m of a negative NaN."""
    e, m = exponent_and_mantissa_avx512(body, x, mantissa_avx512(x, FROM_ONE))
    return e, body.let("f", m - 1.0)


def exponent_and_mantissa_avx512(body: Body, x: ir.Expr, mantissa: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """e and m in [√½, √2), from the mantissa in [1, 2)."""
    double = x.dtype.bits == 64
    root_bits = SQRT_HALF_BITS_FLOAT64 + (1 << 52) if double else SQRT_HALF_BITS + (1 << 23)
    mantissa = body.let("mantissa", mantissa)
    greater = body.let("greater", mantissa >= from_bits(ir.const(root_bits, typed(f"int{x.dtype.bits}", x))))
    exponent = body.let("exponent", exponent_avx512(x))
    e = body.let("e", select(greater, exponent + 1.0, exponent))
    return e, body.let("m", select(greater, mantissa * 0.5, mantissa))


def _split_exponent_float64(body: Body, x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """e as a float, and m - 1, of a positive float64."""
    small = body.let("small", x < 2.0**-1022)
    bits = bits_of(select(small, x * 2.0**54, x), "int64")
    exponent, m = _normalize(body, bits, 52, SQRT_HALF_BITS_FLOAT64)
    exponent = exponent.astype(typed("int32", x)).astype(x.dtype)  # more machines convert 32 bits
    e = body.let("e", exponent - select(small, ir.const(54.0, x.dtype), 0.0))
    return e, body.let("f", m - 1.0)


def _log_tail_float64(body: Body, f: ir.Expr, rest: ir.Expr | float = 0.0) -> ir.Expr:
    """ln(1 + f) - f + rest. 2s = f - s f, and f is exact."""
    s = body.let("s", f / (f + 2.0))
    t = body.let("t", s * s)
    return body.let("tail", fma(s, t * polynomial(t, _TAIL_FLOAT64) - f, rest))
