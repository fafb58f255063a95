"""pow: 2^(y log2 |x|), the logarithm and the product in float64, since the product's absolute error becomes relative.

The polynomial is a fit of log2(1 + f) / f: tools/fit_polynomials.py.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    ROUND,
    ROUND_FLOAT64,
    Body,
    at_least,
    at_most,
    copysign,
    magnitude,
    polynomial,
    select,
    typed,
)
from loopwright.codegen.math.exp import EXP2, scale
from loopwright.codegen.math.log import split_exponent
from loopwright.ir import intrinsics

_LOG2: Final = (
    1.4426950408738595,
    -0.72134752007741443,
    0.48089835209899878,
    -0.36067382954884547,
    0.28853858741895921,
    -0.24044462586468501,
    0.20611190910540611,
    -0.18047751295612854,
    0.16018109536057451,
    -0.14206638208846972,
    0.1301675644293705,
    -0.13643106836297109,
    0.1341986215950467,
    -0.069095267130895394,
)
_INFINITY: Final = float("inf")
_NAN: Final = float("nan")


def pow_float32(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """x^y as the C standard has it: 1 when x is 1 or y is 0, NaN for negative finite x and fractional y."""
    body = Body()
    a = body.let("a", magnitude(x))
    size = body.let("size", _power(body, a, y))
    # From 2^24 on every float is an even integer; so are the infinities.
    whole = body.let("whole", intrinsics.trunc(y) == y)
    half = body.let("half", y * 0.5)
    odd = body.let("odd", whole & (intrinsics.trunc(half) != half))
    sign = select(odd, x, 1.0)
    fractional = (x < 0.0) & (a < _INFINITY) & ~whole
    value = select(fractional, _NAN, copysign(size, sign))
    return body.result(select((x == 1.0) | (y == 0.0), 1.0, value))


def _power(body: Body, a: ir.Expr, y: ir.Expr) -> ir.Expr:
    """a^y for a ≥ 0."""
    e, f = split_exponent(body, a)
    wide = typed("float64", a)
    f = body.let("f", f.astype(wide))
    logarithm = e.astype(wide) + f * polynomial(f, _LOG2)
    ends = select(a == 0.0, ir.const(-_INFINITY, wide), _INFINITY)
    logarithm = select((a > 0.0) & (a < _INFINITY), logarithm, select(a == a, ends, _NAN))
    # An infinite y counts as a huge one: 1^∞ is 1.
    exponent = at_least(at_most(y.astype(wide), 1e300), -1e300)
    product = body.let("product", at_least(at_most(logarithm * exponent, 129.0), -151.0))
    n = body.let("n", (product + ROUND_FLOAT64) - ROUND_FLOAT64)
    r = body.let("r", (product - n).astype(a.dtype))
    rounded = body.let("rounded", n.astype(a.dtype) + ROUND)
    return scale(body, polynomial(r, EXP2), rounded)
