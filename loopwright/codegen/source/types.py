"""How data types and literals look in C-like sources.

A value of type float16, bfloat16 or float8 travels as its bits; types of fewer than 8 bits travel in a byte, always in
range. In memory a bool is a byte.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

from loopwright.codegen.small_floats import is_small_float
from loopwright.codegen.source.code import PRIMARY, UNARY, Code
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError

_FLOATS: Final = {32: "float", 64: "double"}
_SHORT: Final = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf", "e4m3_float": "e4m3f", "e5m2_float": "e5m2f"}


def value_type(dtype: DataType) -> str:
    """The type of a scalar in a variable."""
    if dtype.lanes > 1:
        raise InternalError(f"a vector of type {dtype} reached code generation: scalarize_vectors did not run")
    if dtype.is_bool:
        return "bool"
    if dtype.kind == "handle":
        return "void *"
    if dtype.kind == "void":
        return "void"
    if dtype.kind == "float" and dtype.bits in _FLOATS:
        return _FLOATS[dtype.bits]
    signed = dtype.kind == "int"
    return f"{'' if signed else 'u'}int{max(8, dtype.bits)}_t"


def memory_type(dtype: DataType) -> str:
    """The type of one lane in memory."""
    return "uint8_t" if dtype.is_bool else value_type(dtype.element)


def suffix(dtype: DataType) -> str:
    """A short name of the type, for the names of functions."""
    return "bool" if dtype.is_bool else f"{_SHORT[dtype.kind]}{dtype.bits}"


def unsigned_type(dtype: DataType) -> str:
    """An unsigned type that holds the type's bits, in which arithmetic wraps around: narrower ones would become int."""
    return "uint64_t" if dtype.bits > 32 else "uint32_t"


def literal(dtype: DataType, value: float) -> Code:
    """A number of the type."""
    if dtype.is_bool:
        return Code("true" if value else "false")
    if is_small_float(dtype):
        bits = int(dtype.numpy().type(value).view({8: "u1", 16: "u2"}[dtype.bits]))
        return Code(f"0x{bits:0{dtype.bits // 4}x}")
    if dtype.is_float:
        return _float_literal(dtype.bits, float(value))
    return _int_literal(dtype, int(value))


def _int_literal(dtype: DataType, value: int) -> Code:
    signed = not dtype.is_unsigned
    half = 1 << (dtype.bits - 1)
    value = ((value + half) & (2 * half - 1)) - half if signed else value & (2 * half - 1)
    if dtype.bits < 32:
        text = str(value)
    elif not signed:
        text = f"{value}u" if dtype.bits == 32 else f"UINT64_C({value})"
    elif value == -half:
        return Code(f"INT{dtype.bits}_MIN")
    elif dtype.bits == 64 and not -(1 << 15) < value < 1 << 15:
        text = f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    else:
        return Code(str(value), UNARY if value < 0 else PRIMARY, typed=dtype.bits == 32)
    return Code(text, UNARY if value < 0 else PRIMARY)


def _float_literal(bits: int, value: float) -> Code:
    if bits == 32:
        try:
            (value,) = struct.unpack("<f", struct.pack("<f", value))
        except OverflowError:
            value = math.copysign(math.inf, value)
    if math.isnan(value):
        return Code("NAN") if bits == 32 else Code("(double)NAN", UNARY)
    size, sign = abs(value), "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return Code(f"{sign}INFINITY" if bits == 32 else f"{sign}(double)INFINITY", UNARY)
    # A short decimal is exact and reads well; anything else is written in hexadecimal, which no compiler rounds.
    exact = Decimal(size)
    is_short = len(exact.as_tuple().digits) <= 8 and 1e-5 < size < 1e16
    text = repr(size) if is_short or size == 0 else re.sub(r"\.?0*p", "p", size.hex())
    return Code(f"{sign}{text}{'f' if bits == 32 else ''}", UNARY if sign else PRIMARY)
