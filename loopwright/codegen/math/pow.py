"""pow: e^(y ln |x|), with a logarithm of some 10 more bits than the type has: an error of the product is not relative.

With x = m 2^e, m in [√½, √2), and u = (m - 1) / ((m + 1) / 2), ln m = u + u t (1/12 + t Q(t)), t = u². All but t Q(t)
is held in pairs of numbers, the second being what rounding took from the first. tools/fit_polynomials.py has the fit.

Where a lane has an x that is not positive and finite, or a result near overflow or underflow, the vector is finished
by the general rule: the C standard's values for zeros, infinities, NaN and negative bases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopwright import ir
from loopwright.codegen.math.avx512 import positive_mantissa_avx512
from loopwright.codegen.math.body import (
    ROUND,
    ROUND_BITS,
    ROUND_FLOAT64,
    ROUND_FLOAT64_BITS,
    Body,
    at_least,
    at_most,
    bits_of,
    copysign,
    fma,
    from_bits,
    magnitude,
    polynomial_by_pairs,
    select,
    where_all,
)
from loopwright.codegen.math.exp import EXP_TAIL, EXP_TAIL_FLOAT64, LOG2_E, scale, scale_float64
from loopwright.codegen.math.log import (
    SQRT_HALF_BITS,
    SQRT_HALF_BITS_FLOAT64,
    exponent_and_mantissa_avx512,
)
from loopwright.ir import intrinsics

_INFINITY: Final = float("inf")
_NAN: Final = float("nan")


@dataclass(frozen=True)
class _Numbers:
    """What differs between the types."""

    digits: int  # after the point
    bias: int  # of exponents
    curve: Sequence[float]  # Q
    twelfth: tuple[float, float]  # the sum is 1/12
    ln2: tuple[float, float]  # the sum is ln 2; the first times an exponent is exact
    exp_tail: Sequence[float]
    round: float
    round_bits: int
    near: float  # e^p is a normal number for |p| below this
    ends: tuple[float, float]  # beyond these it is zero or infinity
    sqrt_half_bits: int


_FLOAT32: Final = _Numbers(
    23,
    127,
    (0.0125000514, 0.00223013735, 0.000458054186),
    (0.083333336, -2.483526865641276e-09),
    (0.693145751953125, 1.4286068e-06),
    EXP_TAIL,
    ROUND,
    ROUND_BITS,
    87.0,
    (-104.0, 89.0),
    SQRT_HALF_BITS,
)
_FLOAT64: Final = _Numbers(
    52,
    1023,
    (
        0.012499999999999992,
        0.0022321428571444209,
        0.00043402777766996258,
        8.8778412946572806e-05,
        1.8779968326287173e-05,
        4.0700001954514465e-06,
        8.903211881420134e-07,
        2.2948883426401639e-07,
    ),
    (0.08333333333333333, 4.625929269271485e-18),
    (0.6931471805598903, 5.497923018708371e-14),
    EXP_TAIL_FLOAT64,
    ROUND_FLOAT64,
    ROUND_FLOAT64_BITS,
    708.0,
    (-746.0, 710.0),
    SQRT_HALF_BITS_FLOAT64,
)


def pow_float32(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """x^y as the C standard has it: 1 when x is 1 or y is 0, NaN for negative finite x and fractional y."""
    return _pow(x, y, _FLOAT32)


def pow_float64(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """x^y as the C standard has it."""
    return _pow(x, y, _FLOAT64)


def pow_float32_avx512(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """x^y, the same bits with fewer instructions."""
    return _pow(x, y, _FLOAT32, avx512=True)


def pow_float64_avx512(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """x^y, the same bits with fewer instructions."""
    return _pow(x, y, _FLOAT64, avx512=True)


def _pow(x: ir.Expr, y: ir.Expr, numbers: _Numbers, *, avx512: bool = False) -> ir.Expr:
    body = Body()
    high, low = _logarithm(body, *(_split_avx512 if avx512 else _split)(body, x, numbers), numbers)
    product = body.let("product", high * y)
    excess = body.let("excess", fma(-y, low, fma(-y, high, product)))
    bits = bits_of(x, f"uint{x.dtype.bits}")
    infinite = (2 * numbers.bias + 1) << numbers.digits
    finite = bits - 1 < ir.const(infinite - 1, bits.dtype)  # and positive: zero is the greatest, one less
    usual = body.let("usual", finite & (magnitude(product) < numbers.near))
    return body.result(where_all(usual, _near(product, excess, numbers), _anywhere(x, y, product, excess, numbers)))


def _split(body: Body, x: ir.Expr, numbers: _Numbers) -> tuple[ir.Expr, ir.Expr]:
    """e, as a float, and m of |x|; of zero, infinity and NaN any numbers."""
    a = body.let("a", magnitude(x))
    small = body.let("small", a < 2.0 ** (1 - numbers.bias))  # denormal: scaled up first
    up = numbers.digits + 1
    e, m = _exponent_and_mantissa(body, select(small, a * 2.0**up, a), numbers)
    return body.let("e", select(small, e - float(up), e)), m


def _exponent_and_mantissa(body: Body, x: ir.Expr, numbers: _Numbers) -> tuple[ir.Expr, ir.Expr]:
    """e as a float, and m, of a positive normal number.

    The exponent becomes a float without a conversion: added to the bits of a large float, it is in its last places.
    """
    digits, bias, least = numbers.digits, numbers.bias, numbers.sqrt_half_bits
    above = body.let("above", bits_of(x, f"uint{x.dtype.bits}") + ((bias << digits) - least))  # has e + bias
    e = body.let("e", from_bits((above >> digits) + numbers.round_bits) - (numbers.round + bias))
    return e, body.let("m", from_bits((above & ((1 << digits) - 1)) + least))


def _split_avx512(body: Body, x: ir.Expr, _: _Numbers) -> tuple[ir.Expr, ir.Expr]:
    return exponent_and_mantissa_avx512(body, x, positive_mantissa_avx512(x))


def _logarithm(body: Body, e: ir.Expr, m: ir.Expr, numbers: _Numbers) -> tuple[ir.Expr, ir.Expr]:
    """ln(m 2^e), and what is missing from it.

    A `low` is what is missing from a number, an `excess` what is too much: c - a b is one instruction everywhere.
    """
    ln2, twelfth = numbers.ln2, numbers.twelfth
    f = body.let("f", m - 1.0)
    # The divisor and its rest are exact, and so is what is left of f.
    g = body.let("g", fma(m, 0.5, 0.5))
    g_low = body.let("g_low", fma(m, 0.5, 0.5 - g))
    inverse = body.let("inverse", 1.0 / g)
    u = body.let("u", f * inverse)
    u_low = body.let("u_low", fma(-u, g_low, fma(-u, g, f)) * inverse)
    t = body.let("t", u * u)
    t_excess = body.let("t_excess", fma(-(u + u), u_low, fma(-u, u, t)))
    q = body.let("q", polynomial_by_pairs(body, t, numbers.curve))
    v = body.let("v", fma(t, q, twelfth[0]))
    v_low = body.let("v_low", fma(-t_excess, q, fma(t, q, twelfth[0] - v) + twelfth[1]))
    w = body.let("w", t * v)
    w_excess = body.let("w_excess", fma(t_excess, v, fma(-t, v_low, fma(-t, v, w))))
    z = body.let("z", u * w)
    z_excess = body.let("z_excess", fma(-u_low, w, fma(u, w_excess, fma(-u, w, z))))
    most = body.let("most", fma(e, ln2[0], u))
    most_low = u - fma(e, -ln2[0], most)
    high = body.let("high", most + z)
    high_low = (most - high) + z
    return high, body.let("low", fma(e, ln2[1], u_low - z_excess) + (most_low + high_low))


def _near(product: ir.Expr, excess: ir.Expr, numbers: _Numbers) -> ir.Expr:
    """e^(product - excess), a normal number."""
    body = Body()
    value, rounded = _exp(body, product, excess, numbers)
    kind = f"int{product.dtype.bits}"
    return body.result(from_bits(bits_of(value, kind) + (bits_of(rounded, kind) << numbers.digits)))


def _anywhere(x: ir.Expr, y: ir.Expr, product: ir.Expr, excess: ir.Expr, numbers: _Numbers) -> ir.Expr:
    """x^y for any arguments, given y ln |x| where x is neither zero nor infinite."""
    body = Body()
    least, most = numbers.ends
    inside = body.let("inside", (product > least) & (product < most))
    end = body.let("end", at_least(at_most(product, most), least))
    value, rounded = _exp(body, end, body.let("excess", select(inside, excess, 0.0)), numbers)
    size = body.let("size", (scale if numbers.digits == 23 else scale_float64)(body, value, rounded))
    a = body.let("a", magnitude(x))
    limit = select((a > 1.0) == (y > 0.0), ir.const(_INFINITY, x.dtype), 0.0)
    size = select((a == 0.0) | (a == _INFINITY), select(y == y, limit, y), size)
    size = select(a == 1.0, select(y == y, ir.const(1.0, x.dtype), y), size)
    # From 2^digits + 1 on every float is an even integer; so are the infinities.
    whole = body.let("whole", intrinsics.trunc(y) == y)
    half = body.let("half", y * 0.5)
    odd = body.let("odd", whole & (intrinsics.trunc(half) != half))
    fractional = (x < 0.0) & (a < _INFINITY) & ~whole
    value = select(fractional | (x != x), ir.const(_NAN, x.dtype), copysign(size, select(odd, x, 1.0)))
    return body.result(select((x == 1.0) | (y == 0.0), 1.0, value))


def _exp(body: Body, product: ir.Expr, excess: ir.Expr, numbers: _Numbers) -> tuple[ir.Expr, ir.Expr]:
    """e^r and the rounded n of product - excess = n ln 2 + r."""
    rounded = body.let("rounded", fma(product, LOG2_E, numbers.round))
    n = body.let("n", rounded - numbers.round)
    r_high = body.let("r_high", fma(n, -numbers.ln2[0], product))  # exact
    r_excess = body.let("r_excess", fma(n, numbers.ln2[1], excess))
    r = body.let("r", r_high - r_excess)
    # What rounding took from r comes in with the small terms.
    square = body.let("square", r * r)
    tail = polynomial_by_pairs(body, r, numbers.exp_tail, square)
    return body.let("value", (r_high - fma(-square, tail, r_excess)) + 1.0), rounded
