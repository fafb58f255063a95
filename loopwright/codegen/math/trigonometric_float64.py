"""sin, cos, tan of float64: as in `trigonometric.py`, but beyond 2^30 each lane is the C library's.

Up to there the reduction subtracts n times π/2 in three parts: the first step is exact, since the difference is a
multiple of the last place of π/2, and the others round relative to the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    ROUND_FLOAT64,
    Body,
    bits_of,
    copysign,
    fma,
    magnitude,
    polynomial,
    select,
    where_all,
)
from loopwright.codegen.math.trigonometric import rotated, tangent
from loopwright.ir import intrinsics

_SIN: Final = (
    -0.16666666666666627,
    0.0083333333333209404,
    -0.0001984126982861905,
    2.7557313276141988e-06,
    -2.5050692496873118e-08,
    1.5892963036303362e-10,
)
_COS: Final = (
    0.041666666666666581,
    -0.0013888888888871375,
    2.4801587287783057e-05,
    -2.7557313865541792e-07,
    2.0875657568509e-09,
    -1.1356266309198045e-11,
)
# Their sum is π/2. All are positive, so that -0.0 comes through with its sign.
_HALF_PI: Final = (1.5707963267948966, 6.123233995736765e-17, 1.082856673921914e-32)
_TWO_BY_PI: Final = 0.6366197723675814
_LARGE: Final = 2.0**30


def sin_float64(x: ir.Expr) -> ir.Expr:
    """sin x; NaN at infinity."""
    return _by_quadrant(x, rotated, intrinsics.sin)


def cos_float64(x: ir.Expr) -> ir.Expr:
    """cos x; NaN at infinity."""
    return _by_quadrant(x, lambda sine, cosine, quadrant: rotated(sine, cosine, quadrant + 1), intrinsics.cos)


def tan_float64(x: ir.Expr) -> ir.Expr:
    """tan x; NaN at infinity."""
    return _by_quadrant(x, tangent, intrinsics.tan)


def _by_quadrant(
    x: ir.Expr, finish: Callable[[ir.Expr, ir.Expr, ir.Expr], ir.Expr], in_c: Callable[[ir.Expr], ir.Expr]
) -> ir.Expr:
    """`finish` on sin r, cos r and the quadrant of x. Within its own body, a function's name means the C library's."""
    body = Body()
    rounded = body.let("rounded", fma(x, _TWO_BY_PI, ROUND_FLOAT64))
    n = body.let("n", rounded - ROUND_FLOAT64)
    r = x
    for part in _HALF_PI:
        r = fma(n, -part, r)
    r = body.let("r", r)
    square = body.let("square", r * r)
    sine = body.let("sine", copysign(fma(r * square, polynomial(square, _SIN), r), r))  # the sum would lose -0.0
    # 1 - square / 2 is rounded; what that lost is added to the small terms.
    half = body.let("half", square * 0.5)
    most = body.let("most", 1.0 - half)
    lost = (1.0 - most) - half
    cosine = body.let("cosine", most + fma(square * square, polynomial(square, _COS), lost))
    near = body.let("near", finish(sine, cosine, body.let("quadrant", bits_of(rounded, "int64"))))
    small = body.let("small", ~(magnitude(x) >= _LARGE))  # NaN too: it comes through
    return body.result(where_all(small, near, select(small, near, in_c(x))))
