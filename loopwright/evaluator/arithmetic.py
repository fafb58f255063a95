"""The meaning of every scalar operation, per data type: docs/semantics.md as code.

Integers and truth values are Python's; floats are Python floats that are exactly representable in their type. An
operation computes in float64, whose 53 bits make the later rounding to float32 exact (for + - * / and sqrt), or in
float32 for the narrower types, and rounds. Everything here works on single values; vectors are lists of them.
"""

from __future__ import annotations

import math
import operator
import struct
from array import array
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from loopwright.evaluator.errors import IndexTooLarge, IntegerDivisionByZero
from loopwright.evaluator.values import Value
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    Sub,
)
from loopwright.runtime.dtype import FLOAT32, INT64, DataType
from loopwright.runtime.errors import NotBuilt

Unary = Callable[[Value], Value]
Binary = Callable[[Value, Value], Value]

COMPARISONS: Final[dict[type[Expr], Binary]] = {
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}


# --- rounding and wrapping ----------------------------------------------------------------------------------------


def rounding(dtype: DataType) -> Unary:
    """Round a Python float to the nearest value of a float type, ties to even.

    Each call gives a function with a cell of its own: a store to an array of C floats rounds, in half the time of
    any other way, but the cell must not be shared between threads.
    """
    if dtype.kind == "float" and dtype.bits == 64:
        return float
    cell = array("f", [0.0])

    def to_float32(x: float) -> float:
        cell[0] = x
        return cell[0]

    if dtype.kind == "float" and dtype.bits == 32:
        return to_float32
    narrow = _NARROW[dtype.kind]

    def to_narrow(x: float) -> float:
        cell[0] = x
        return narrow(cell[0])

    return to_narrow


def _to_float16(x: float) -> float:
    try:
        result: float = struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return result


def _to_bfloat16(x: float) -> float:
    if x != x:
        return x
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)  # half of the last kept place, less one where that makes the tie even
    result: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
    return result


def _to_float8(name: str) -> Unary:
    def convert(x: float) -> float:
        import ml_dtypes

        return float(getattr(ml_dtypes, name)(x))

    return convert


_NARROW: Final[dict[str, Unary]] = {
    "float": _to_float16,
    "bfloat": _to_bfloat16,
    "e4m3_float": _to_float8("float8_e4m3fn"),
    "e5m2_float": _to_float8("float8_e5m2"),
}


def wrapping(dtype: DataType) -> Unary:
    """The value of an integer type that has the low bits of a Python integer."""
    mask = (1 << dtype.bits) - 1
    if dtype.is_unsigned:
        return lambda x: x & mask
    half = 1 << (dtype.bits - 1)
    return lambda x: x if -half <= x < half else ((x + half) & mask) - half


# --- binary operators ---------------------------------------------------------------------------------------------


def binary(cls: type[Expr], dtype: DataType) -> Binary:
    """The function of an operator on two values of `dtype` (one lane)."""
    if cls in COMPARISONS:
        return COMPARISONS[cls]
    if dtype.is_float:
        return _float_binary(cls, dtype)
    if cls is And:
        return lambda a, b: a and b
    if cls is Or:
        return lambda a, b: a or b
    if dtype.is_int or dtype.is_bool:
        return _int_binary(cls, dtype)
    raise NotBuilt(f"evaluation of {cls.__name__} on {dtype}")


def _int_binary(cls: type[Expr], dtype: DataType) -> Binary:
    if cls is Min:
        return lambda a, b: a if a <= b else b
    if cls is Max:
        return lambda a, b: a if a >= b else b
    if cls in (Div, Mod, FloorDiv, FloorMod):
        return _int_division(cls, dtype)
    wrap = wrapping(dtype)
    if cls is Add:
        return lambda a, b: wrap(a + b)
    if cls is Sub:
        return lambda a, b: wrap(a - b)
    return lambda a, b: wrap(a * b)


def exact(cls: type[Expr], is_small: bool) -> Binary:
    """The function of an operator in index arithmetic, which does not wrap.

    Sums and products may be as large as they like: their low bits are right in any width. What needs the number itself
    needs it within 64 bits; `is_small` says that it is.
    """
    if cls in _SUMS:
        return _SUMS[cls]
    operation = binary(cls, INT64)
    if is_small:
        return operation
    low, high = INT64.lowest, INT64.highest

    def within_64_bits(a: int, b: int) -> Value:
        if low <= a <= high and low <= b <= high:
            return operation(a, b)
        raise IndexTooLarge(cls.__name__, a, b)

    return within_64_bits


_SUMS: Final[dict[type[Expr], Binary]] = {Add: operator.add, Sub: operator.sub, Mul: operator.mul}


def _int_division(cls: type[Expr], dtype: DataType) -> Binary:
    least = None if dtype.is_unsigned else dtype.min_value()
    floors = cls in (FloorDiv, FloorMod)
    quotient = cls in (Div, FloorDiv)

    def divide(a: int, b: int) -> int:
        if b == 0 or (b == -1 and a == least):
            raise IntegerDivisionByZero(a, b, dtype)
        q = a // b if floors or (a < 0) == (b < 0) else -(-a // b)
        return q if quotient else a - q * b

    return divide


def _float_binary(cls: type[Expr], dtype: DataType) -> Binary:
    if cls is Min:
        return _minimum
    if cls is Max:
        return _maximum
    rounded = rounding(dtype)
    if cls is Add:
        return lambda a, b: rounded(a + b)
    if cls is Sub:
        return lambda a, b: rounded(a - b)
    if cls is Mul:
        return lambda a, b: rounded(a * b)
    if cls is Div:
        return lambda a, b: rounded(_divide(a, b))
    if cls is Mod:
        return lambda a, b: rounded(_remainder(a, b))
    if cls is FloorDiv:
        computed = rounding(FLOAT32) if dtype.bits < 32 else rounded
        return lambda a, b: rounded(_floor(computed(_divide(a, b))))
    return lambda a, b: rounded(_floor_remainder(a, b))


def _minimum(a: float, b: float) -> float:
    if a < b:
        return a
    if b < a:
        return b
    if a == b:
        return a if math.copysign(1.0, a) < 0 else b  # of two zeros, the negative one
    return math.nan


def _maximum(a: float, b: float) -> float:
    if a > b:
        return a
    if b > a:
        return b
    if a == b:
        return b if math.copysign(1.0, a) < 0 else a
    return math.nan


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _remainder(a: float, b: float) -> float:
    if b == 0 or math.isinf(a) or a != a or b != b:
        return math.nan
    return math.fmod(a, b)


def _floor_remainder(a: float, b: float) -> float:
    """The exact remainder, moved to the divisor's side of zero; a zero keeps the sign of the dividend."""
    remainder = _remainder(a, b)
    return remainder + b if remainder != 0 and (remainder < 0) != (b < 0) else remainder


def _floor(x: float) -> float:
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


# --- conversions --------------------------------------------------------------------------------------------------


def cast(source: DataType, target: DataType) -> Unary:
    """The conversion of one value from `source` to `target`."""
    if target.is_bool:
        return lambda x: x != 0
    if target.is_int:
        if source.is_float:
            return _float_to_int(target)
        wrap = wrapping(target)
        return lambda x: wrap(int(x))
    if target.is_float and (source.is_float or source.is_int or source.is_bool):
        rounded = rounding(target)
        if source.is_float:
            return rounded
        return lambda x: rounded(_int_to_float(int(x), target.bits < 64))
    if source is target or (source.kind == target.kind == "handle"):
        return lambda x: x
    raise NotBuilt(f"evaluation of a cast from {source} to {target}")


def _float_to_int(target: DataType) -> Unary:
    low, high = int(target.min_value()), int(target.max_value())

    def convert(x: float) -> int:
        if x != x:
            return 0
        if x <= low:
            return low
        return high if x >= high else int(x)

    return convert


def _int_to_float(x: int, rounds_again: bool) -> float:
    """`x` as a float64. What is rounded again must not be rounded here: it keeps a last bit of 1 when inexact."""
    size = abs(x).bit_length()
    if size <= 53 or not rounds_again:
        return float(x)
    shift = size - 53
    kept = abs(x) >> shift
    if kept << shift != abs(x):
        kept |= 1
    return math.copysign(math.ldexp(kept, shift), x)


_BITS: Final = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def to_bytes(value: Value, dtype: DataType) -> bytes:
    """The little-endian bytes of one value."""
    if dtype.kind == "bfloat":
        return struct.pack("<f", value)[2:]
    if dtype.is_bool:
        return bytes([bool(value)])
    if dtype.kind in ("e4m3_float", "e5m2_float"):
        import numpy as np

        return np.array(value, dtype.numpy()).tobytes()
    if dtype.bits < 8:  # an integer of half a byte has the whole byte
        return bytes([value & 0xFF])
    return struct.pack("<" + _BITS[dtype.element], value)


def from_bytes(data: bytes, dtype: DataType) -> Value:
    """The value that little-endian bytes hold."""
    if dtype.kind == "bfloat":
        return struct.unpack("<f", b"\0\0" + data)[0]
    if dtype.is_bool:
        return data[0] != 0
    if dtype.kind in ("e4m3_float", "e5m2_float"):
        import numpy as np

        return float(np.frombuffer(data, dtype.numpy())[0])
    if dtype.bits < 8:
        return wrapping(dtype)(data[0])
    return struct.unpack("<" + _BITS[dtype.element], data)[0]


# --- fused multiply-add -------------------------------------------------------------------------------------------


def fused_multiply_add(dtype: DataType) -> Callable[[Value, Value, Value], Value]:
    """x * y + z rounded once (for the narrow types: once to float32, then to the type)."""
    if dtype.is_int:
        wrap = wrapping(dtype)
        return lambda x, y, z: wrap(x * y + z)
    rounded = rounding(dtype)
    if dtype.bits < 64:
        return lambda x, y, z: rounded(_sum_to_odd(x * y, z))  # the product of two float32 is exact in float64
    return _fma_float64


def _sum_to_odd(p: float, z: float) -> float:
    """p + z in float64, an inexact result moved to the neighbour with an odd last bit: rounding it again is exact."""
    total = p + z
    if not math.isfinite(total):
        return total
    back = total - p
    error = (p - (total - back)) + (z - back)
    if error != 0 and struct.unpack("<q", struct.pack("<d", total))[0] % 2 == 0:
        total = math.nextafter(total, math.copysign(math.inf, error))
    return total


def _fma_float64(x: float, y: float, z: float) -> float:
    if not math.isfinite(z) and math.isfinite(x) and math.isfinite(y):
        return z  # whatever the product: it is finite, though float64 may not hold it
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
