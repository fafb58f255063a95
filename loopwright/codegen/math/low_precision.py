"""bfloat16, float16 and float8 as bit patterns, to and from float32, in integer arithmetic.

Encoding rounds to nearest, ties to even. NaN stays NaN, and becomes quiet. What is too large becomes infinity, or NaN
in e4m3, which has no infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, bits_of, from_bits, magnitude, select, typed
from loopwright.ir import intrinsics


@dataclass(frozen=True)
class Format:
    """A small float: a sign, exponent bits, and `digits` bits after the point."""

    bits: int
    digits: int
    bias: int
    above: int  # the pattern, without sign, of what is too large
    nan: int  # the pattern of a quiet NaN
    has_infinity: bool = True


FLOAT16: Final = Format(16, 10, 15, 0x7C00, 0x7E00)
E5M2: Final = Format(8, 2, 15, 0x7C, 0x7E)
E4M3: Final = Format(8, 3, 7, 0x7F, 0x7F, has_infinity=False)


def decode_bfloat16(bits: ir.Expr) -> ir.Expr:
    """bfloat16 is the upper half of a float32."""
    return from_bits(bits.astype(typed("uint32", bits)) << 16)


def encode_bfloat16(x: ir.Expr) -> ir.Expr:
    """The upper half, rounded; a carry out of the digits raises the exponent, up to infinity, as it should."""
    body = Body()
    bits = body.let("bits", bits_of(x, "uint32"))
    upper = body.let("upper", bits >> 16)
    rounded = (bits + ((upper & 1) + 0x7FFF)) >> 16
    return body.result(select(x != x, upper | 0x40, rounded).astype(typed("uint16", x)))


def decode_float16(bits: ir.Expr) -> ir.Expr:
    """The float32 equal to a float16."""
    return _decode(bits, FLOAT16)


def encode_float16(x: ir.Expr) -> ir.Expr:
    """The float16 nearest to a float32."""
    return _encode(x, FLOAT16)


def decode_e5m2(bits: ir.Expr) -> ir.Expr:
    """The float32 equal to an e5m2."""
    return _decode(bits, E5M2)


def encode_e5m2(x: ir.Expr) -> ir.Expr:
    """The e5m2 nearest to a float32."""
    return _encode(x, E5M2)


def decode_e4m3(bits: ir.Expr) -> ir.Expr:
    """The float32 equal to an e4m3."""
    return _decode(bits, E4M3)


def encode_e4m3(x: ir.Expr) -> ir.Expr:
    """The e4m3 nearest to a float32."""
    return _encode(x, E4M3)


def _decode(bits: ir.Expr, form: Format) -> ir.Expr:
    """Shifted into place, the pattern is that of the value divided by the difference of the biases; denormals too."""
    body = Body()
    wide = body.let("wide", bits.astype(typed("uint32", bits)))
    sign_bit = 1 << (form.bits - 1)
    size = body.let("size", wide & (sign_bit - 1))
    shifted = body.let("shifted", size << (23 - form.digits))
    finite = bits_of(from_bits(shifted) * 2.0 ** (127 - form.bias), "uint32")
    first_special = form.above if form.has_infinity else form.nan
    pattern = select(size >= first_special, shifted | 0x7F800000, finite)
    return body.result(from_bits(pattern | ((wide & sign_bit) << (32 - form.bits))))


def _encode(x: ir.Expr, form: Format) -> ir.Expr:
    body = Body()
    bits = body.let("bits", bits_of(x, "uint32"))
    size = body.let("size", bits & 0x7FFFFFFF)
    shift = 23 - form.digits
    # Normal: drop digits, round, change the bias; a carry raises the exponent.
    odd = (size >> shift) & 1
    normal = ((size + (odd + ((1 << (shift - 1)) - 1))) >> shift) - ((127 - form.bias) << form.digits)
    # Denormal: adding a number whose last place is the least denormal rounds to it.
    adder = 24 - form.bias - form.digits
    denormal = bits_of(magnitude(x) + 2.0**adder, "uint32") - ((adder + 127) << 23)
    rounded = select(size < (128 - form.bias) << 23, denormal, normal)
    finite = intrinsics.minimum(rounded, ir.const(form.above, bits.dtype))
    pattern = select(x != x, ir.const(form.nan, bits.dtype), finite)
    sign = (bits >> (32 - form.bits)) & (1 << (form.bits - 1))
    return body.result((pattern | sign).astype(typed(f"uint{form.bits}", x)))
