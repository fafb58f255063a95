"""sin, cos, tan: x = n π/2 + r with |r| ≤ π/4; the quadrant n mod 4 says which polynomial and sign.

Up to 2^16 the reduction subtracts n times π/2 in three float32 parts: with multiply-adds the first step is exact and
the others round relative to the result, so even an x next to a multiple of π/2 keeps its digits. Beyond, x times 2/π is
formed in float64 from seven 29-bit pieces of 2/π, each product exact, dropping whole turns as they appear: right up to
the largest float32. Vectors without a large lane skip that part, where the backend branches on `likely`; the choice is
made lane by lane all the same, so a value does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    ROUND,
    Body,
    bits_of,
    copysign,
    fma,
    from_bits,
    magnitude,
    polynomial,
    select,
    typed,
    where_all,
)
from loopwright.ir import intrinsics

_SIN: Final = (-0.166666538, 0.0083321128, -0.000195087472)
_COS: Final = (0.0416666456, -0.00138872513, 2.44256917e-05)
# Their sum is π/2. All are positive, so that -0.0 comes through with its sign.
_HALF_PI: Final = (1.57079625, 7.54978942e-08, 5.39030253e-15)
_HALF_PI_FLOAT64: Final = 1.5707963267948966
_TWO_BY_PI: Final = 0.6366197723675814
# The first 203 bits of 2/π, 29 at a time.
_DIGITS: Final = (0x145F306D, 0x19391054, 0x14FE13AB, 0x1D1F534D, 0x1B81B6C5, 0x05664F10, 0x1C820FF2)
_PIECES: Final = tuple(digits * 2.0 ** (-29 * (index + 1)) for index, digits in enumerate(_DIGITS))
_LARGE: Final = 65536.0


def sin_float32(x: ir.Expr) -> ir.Expr:
    """sin x; NaN at infinity."""
    return _by_quadrant(x, rotated)


def cos_float32(x: ir.Expr) -> ir.Expr:
    """cos x; NaN at infinity."""
    return _by_quadrant(x, lambda sine, cosine, quadrant: rotated(sine, cosine, quadrant + 1))


def tan_float32(x: ir.Expr) -> ir.Expr:
    """tan x; NaN at infinity."""
    return _by_quadrant(x, tangent)


def rotated(sine: ir.Expr, cosine: ir.Expr, quadrant: ir.Expr) -> ir.Expr:
    """sin(r + quadrant · π/2)."""
    value = select((quadrant & 1) == 0, sine, cosine)
    bits = quadrant.dtype.bits
    return from_bits(bits_of(value, f"int{bits}") ^ ((quadrant & 2) << (bits - 2)))


def tangent(sine: ir.Expr, cosine: ir.Expr, quadrant: ir.Expr) -> ir.Expr:
    """tan(r + quadrant · π/2)."""
    even = (quadrant & 1) == 0
    return select(even, sine, cosine * -1.0) / select(even, cosine, sine)


def _by_quadrant(x: ir.Expr, finish: Callable[[ir.Expr, ir.Expr, ir.Expr], ir.Expr]) -> ir.Expr:
    """`finish` on sin r, cos r and the quadrant of x."""
    body = Body()
    near = body.let("near", finish(*_sine_and_cosine(body, *_reduce(body, x))))
    small = body.let("small", magnitude(x) < _LARGE)
    distant = Body()
    far = distant.let("far", finish(*_sine_and_cosine(distant, *_reduce_large(distant, x))))
    return body.result(where_all(small, near, distant.result(select(small, near, far))))


def _reduce(body: Body, x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """r, and n in the last bits of an integer, for |x| < 2^16."""
    rounded = body.let("rounded", fma(x, _TWO_BY_PI, ROUND))
    n = body.let("n", rounded - ROUND)
    r = x
    for part in _HALF_PI:
        r = fma(n, -part, r)
    return body.let("r", r), body.let("quadrant", bits_of(rounded))


def _reduce_large(body: Body, x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """r, and n mod 4 in the last bits of an integer, for any finite x; NaN for infinities."""
    wide = body.let("wide", x.astype(typed("float64", x)))
    transposed = ir.const(0.0, wide.dtype)  # x · 2/π less what went into `quarters`
    quarters = ir.const(0.0, wide.dtype)
    for piece in _PIECES:
        product = body.let("product", wide * piece)
        product = body.let("product", fma(intrinsics.nearbyint(product * 0.25), -4.0, product))
        total = body.let("total", transposed + product)
        whole = body.let("whole", intrinsics.nearbyint(total))
        # Exact; and once x · 2/π turns out close to an integer, only the small difference is left to add to.
        transposed = body.let("turned", total - whole)
        quarters = body.let("quarters", quarters + whole)
    r = body.let("r", (transposed * _HALF_PI_FLOAT64).astype(x.dtype))
    return r, body.let("quadrant", bits_of(quarters.astype(x.dtype) + ROUND))


def _sine_and_cosine(body: Body, r: ir.Expr, quadrant: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    """sin r, cos r, and the quadrant as it came."""
    square = body.let("square", r * r)
    sine = body.let("sine", copysign(fma(r * square, polynomial(square, _SIN), r), r))  # the sum would lose -0.0
    cosine = body.let("cosine", fma(square * square, polynomial(square, _COS), fma(square, -0.5, 1.0)))
    return sine, cosine, quadrant
