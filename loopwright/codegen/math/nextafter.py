"""nextafter: the neighbour of x towards y in any float type: the patterns of neighbours differ by one."""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, bits_of, select, typed
from loopwright.ir import intrinsics

# The pattern, without sign, of the greatest value that is not NaN.
_GREATEST: Final = {
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F800000,
    "float64": 0x7FF0000000000000,
    "e5m2_float8": 0x7C,
    "e4m3_float8": 0x7E,
}


def nextafter(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """The float after x towards y; y itself where both are equal, NaN where one is."""
    body, width = Body(), x.dtype.bits
    sign_bit = 1 << (width - 1)
    greatest = _GREATEST[str(x.dtype.element)]
    pattern = [body.let(name, bits_of(value, f"uint{width}")) for name, value in (("x_bits", x), ("y_bits", y))]
    size = [body.let("size", bits & (sign_bit - 1)) for bits in pattern]
    # Integers in the order of the floats; both zeros are 0.
    rank = []
    for bits, magnitude in zip(pattern, size, strict=True):
        signed = body.let("signed", magnitude.astype(typed(f"int{width}", x)))
        rank.append(body.let("rank", select(bits >= sign_bit, -signed, signed)))
    upwards = body.let("upwards", rank[0] < rank[1])
    positive = body.let("positive", rank[0] > 0)
    # Away from zero the pattern grows, below the sign bit and into infinity; towards zero it shrinks.
    step = select(upwards == positive, pattern[0] + 1, pattern[0] - 1)
    least = (pattern[1] & sign_bit) | 1
    moved = select(size[0] == 0, least, step)
    result = select(rank[0] == rank[1], pattern[1], moved)
    is_nan = (size[0] > greatest) | (size[1] > greatest)
    nan = ir.const(sign_bit - 1, result.dtype)  # all ones is NaN in every format
    return body.result(intrinsics.reinterpret(x.dtype, select(is_nan, nan, result)))
