"""Quotients and remainders of vectors of integers, by the division of floats that hold the operands exactly.

Let n be an integer that a / b falls short of: n - a / b ≥ 1 / b, which is more than n / 2^p where |a| < 2^p. A float of
more than p digits tells n - 1 / b from n; and rounding is monotone. So the floor of the rounded quotient is that of the
exact one, and so is its whole part: 16 bits fit float32, 32 bits float64. 64-bit integers below 2^51 do too; vectors
with greater ones are divided lane by lane.

By 0 is divided as by 1, and the quotient by -1 wraps around: it is exact as a float, and its last bits are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    ROUND,
    ROUND_FLOAT64,
    ROUND_FLOAT64_BITS,
    Body,
    bits_of,
    fma,
    from_bits,
    select,
    typed,
    where_all,
)
from loopwright.ir import intrinsics

_NODES: Final[dict[str, type[ir.Div | ir.Mod | ir.FloorDiv | ir.FloorMod]]] = {
    "truncdiv": ir.Div,
    "truncmod": ir.Mod,
    "floordiv": ir.FloorDiv,
    "floormod": ir.FloorMod,
}
NAMES: Final[dict[type[ir.BinaryExpr], str]] = {node: name for name, node in _NODES.items()}
WIDTHS: Final = (8, 16, 32, 64)  # of the integers that have bodies: narrower ones are divided as they are


def division_bodies() -> dict[tuple[str, str], Callable[..., ir.Expr]]:
    """A body for each operation and type."""
    return {
        (name, f"{kind}{bits}"): _body(name, bits) for name in _NODES for kind in ("int", "uint") for bits in WIDTHS
    }


def _body(name: str, bits: int) -> Callable[..., ir.Expr]:
    def narrow(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        body = Body()
        wide = typed("float32" if bits < 32 else "float64", a)
        divisor = body.let("divisor", select(b == 0, ir.const(1, b.dtype), b))
        value = _divided(body, name, body.let("x", a.astype(wide)), body.let("y", divisor.astype(wide)))
        # The integer is in the last bits of the sum, below bits that narrowing drops.
        sum_bits = bits_of(value + (ROUND if bits < 32 else ROUND_FLOAT64), "int32" if bits < 32 else "int64")
        return body.result(sum_bits.astype(a.dtype))

    def of_64_bits(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        body = Body()
        shift = 0 if a.dtype.is_unsigned else 1 << 51
        unsigned, signed = typed("uint64", a), typed("int64", a)
        size = (a.astype(unsigned) + shift) | (b.astype(unsigned) + shift)
        small = body.let("small", ((size >> (52 if shift else 51)) == 0) & (b != 0))
        x, y = (body.let("held", from_bits(one.astype(signed) + ROUND_FLOAT64_BITS) - ROUND_FLOAT64) for one in (a, b))
        value = _divided(body, name, x, y)
        near = body.let("near", (bits_of(value + ROUND_FLOAT64, "int64") - ROUND_FLOAT64_BITS).astype(a.dtype))
        return body.result(where_all(small, near, _NODES[name](a, b)))  # its own name: lane by lane

    return of_64_bits if bits == 64 else narrow


def _divided(body: Body, name: str, x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """The quotient or remainder of integers in floats."""
    rounded = intrinsics.floor if name.startswith("floor") else intrinsics.trunc
    quotient = body.let("quotient", rounded(x / y))
    return quotient if name.endswith("div") else fma(quotient * -1.0, y, x)
