"""The vocabulary of the bodies: let-chains, multiply-adds, polynomials and bit patterns for any lane count.

Bodies use `fma` freely: every CPU we generate code for has the instruction, except x86-64 without extensions, where it
is a (slow, still exact) call of the C library. Clamps are selections, not Min and Max: `x > high ? high : x` is one
instruction on x86 and lets NaN through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright import ir
from loopwright.ir import intrinsics
from loopwright.runtime.dtype import DataType

# Adding 1.5 · 2^(digits - 1) to a small number rounds it to an integer, which the sum then holds in its last bits. It
# is cheaper than rounding and converting: a conversion to an integer that saturates takes four instructions on x86.
ROUND: Final = 1.5 * 2.0**23
ROUND_BITS: Final = 0x4B400000
ROUND_FLOAT64: Final = 1.5 * 2.0**52
ROUND_FLOAT64_BITS: Final = 0x4338000000000000


class Body:
    """Values computed in order; each is computed once, however often it is used."""

    def __init__(self) -> None:
        self._bindings: list[tuple[ir.Var, ir.Expr]] = []

    def let(self, name: str, value: ir.Expr) -> ir.Expr:
        """`value` under a name."""
        var = ir.Var(name, value.dtype)
        self._bindings.append((var, value))
        return var

    def result(self, value: ir.Expr) -> ir.Expr:
        """`value` with all that was named so far bound around it."""
        for var, bound in reversed(self._bindings):
            value = ir.Let(var, bound, value)
        return value


def typed(dtype: str, like: ir.Expr) -> DataType:
    """The type with the element `dtype` and as many lanes as `like` has."""
    return DataType(dtype).with_lanes(like.dtype.lanes)


def fma(x: ir.Expr, y: ir.Expr | float, z: ir.Expr | float) -> ir.Expr:
    """x * y + z, rounded once; numbers take the type of `x`."""
    return intrinsics.fma(x, _like(x, y), _like(x, z))


def polynomial(x: ir.Expr, coefficients: Sequence[float]) -> ir.Expr:
    """c0 + c1 x + c2 x² + …, by Horner's rule."""
    value = ir.const(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        value = fma(value, x, coefficient)
    return value


def polynomial_by_pairs(
    body: Body, x: ir.Expr, coefficients: Sequence[float], square: ir.Expr | None = None
) -> ir.Expr:
    """The same polynomial by Estrin's scheme, one square at a time: a chain half as long, for a few more products.

    For long bodies, of which a core has no second one in flight to fill the gaps.
    """
    terms: list[ir.Expr] = [ir.const(c, x.dtype) for c in coefficients]
    while len(terms) > 1:
        pairs = [fma(high, x, low) for low, high in zip(terms[::2], terms[1::2])]
        terms = [body.let("pair", pair) for pair in pairs] + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            x = body.let("square", x * x) if square is None else square
            square = None
    return terms[0]


def select(condition: ir.Expr, a: ir.Expr | float, b: ir.Expr | float) -> ir.Expr:
    """`a` where `condition` holds, else `b`; at least one of them is an expression."""
    return intrinsics.select(condition, a, b)


def at_most(x: ir.Expr, high: float) -> ir.Expr:
    """x, or `high` where x is greater; NaN stays NaN."""
    return select(x > high, high, x)


def at_least(x: ir.Expr, low: float) -> ir.Expr:
    """x, or `low` where x is less; NaN stays NaN."""
    return select(x < low, low, x)


def where_all(condition: ir.Expr, usual: ir.Expr, mixed: ir.Expr) -> ir.Expr:
    """`usual` when `condition` holds in all lanes, else `mixed`, which no vector pays for that does not need it."""
    lanes = condition.dtype.lanes
    if lanes == 1:
        return intrinsics.if_then_else(intrinsics.likely(condition), usual, mixed)
    if lanes == 2:  # no integer type holds two bits
        halves = select(condition, ir.const(-1, typed("int32", condition)), ir.const(0, typed("int32", condition)))
        holds = intrinsics.reinterpret(DataType("int64"), halves) == -1
    elif lanes in (4, 8, 16, 32, 64):
        holds = intrinsics.reinterpret(DataType(f"uint{lanes}"), condition) == (1 << lanes) - 1
    else:  # no integer type holds one bit a lane
        return mixed
    return intrinsics.if_then_else(intrinsics.likely(holds), usual, mixed)


def copysign(magnitude: ir.Expr, sign: ir.Expr) -> ir.Expr:
    """`magnitude` with the sign of `sign`."""
    return intrinsics.copysign(magnitude, sign)


def magnitude(x: ir.Expr) -> ir.Expr:
    """|x|."""
    return intrinsics.abs(x)


def bits_of(x: ir.Expr, dtype: str = "int32") -> ir.Expr:
    """The bit pattern of floats as integers of the same width."""
    return intrinsics.reinterpret(typed(dtype, x), x)


def from_bits(bits: ir.Expr) -> ir.Expr:
    """The float with this bit pattern."""
    return intrinsics.reinterpret(typed(f"float{bits.dtype.bits}", bits), bits)


def _like(x: ir.Expr, value: ir.Expr | float) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else ir.const(value, x.dtype)
