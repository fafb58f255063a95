"""fmod: the exact remainder of truncated division, from one division where the quotient has few enough digits.

With A = |a| and B = |b|, q = trunc(A / B) is the true quotient, or one more where A / B was rounded up to an integer:
rounding is monotone, so q is never too small. A - q B is between -B and B and a multiple of the last place of B, hence
a float, which one multiply-add finds exactly; where it is negative, q was one too large, and adding B is exact again.
Quotients with more digits than a float32 has are found in float64, those with more than that by the C library, lane by
lane.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, copysign, fma, magnitude, select, typed, where_all
from loopwright.ir import intrinsics

_INFINITY: Final = float("inf")
_MOST: Final = {32: 2.0**23, 64: 2.0**52}  # integers below are floats, and the halves between them


def fmod(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """The remainder, with the sign of a; NaN for an infinite a or a zero b."""
    body = Body()
    size, by = body.let("size", magnitude(a)), body.let("by", magnitude(b))
    quotient = body.let("quotient", size / by)
    rest = body.let("rest", fma(intrinsics.trunc(quotient) * -1.0, by, size))  # NaN where the quotient is infinite
    rest = body.let("rest", select(rest < 0.0, rest + by, rest))
    near = body.let("near", copysign(select(size < by, size, rest), a))  # an infinite b times 0 would be NaN
    few = body.let("few", ~((quotient >= _MOST[a.dtype.bits]) & (by > 0.0) & (size < _INFINITY)))
    if a.dtype.bits == 64:
        rest = intrinsics.fmod(a, b)  # within its own body, the C library's
    else:  # the remainder of two float32 is one too
        wide = typed("float64", a)
        rest = fmod(a.astype(wide), b.astype(wide)).astype(a.dtype)
    return body.result(where_all(few, near, select(few, near, rest)))
