"""How data types and literals look in LLVM text, in registers and in memory."""

from __future__ import annotations

import struct
from typing import Final

from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError

BODY_PREFIX: Final = "lw."  # of the symbols of function bodies, which are internal

_FLOATS: Final = {16: "half", 32: "float", 64: "double"}


def register_type(dtype: DataType) -> str:
    """The type of a value in a register. bfloat16 and float8 travel as bits: few targets can convert them."""
    kind, bits = dtype.kind, dtype.bits
    if kind == "float":
        element = _FLOATS[bits]
    elif kind == "handle":
        element = "ptr"
    elif kind == "void":
        element = "void"
    else:
        element = f"i{bits}"
    return element if dtype.lanes == 1 else f"<{dtype.lanes} x {element}>"


def memory_type(dtype: DataType) -> str:
    """The type of a value in memory: a bool takes a byte."""
    if dtype.is_bool:
        return "i8" if dtype.lanes == 1 else f"<{dtype.lanes} x i8>"
    return register_type(dtype)


def travels_as_bits(dtype: DataType) -> bool:
    """Whether values of this type are kept as integers of the same width."""
    return dtype.kind in ("bfloat", "e4m3_float", "e5m2_float")


def int_literal(dtype: DataType, value: int) -> str:
    """An integer or truth value."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.kind == "uint" and value >> (dtype.bits - 1):
        return str(value - (1 << dtype.bits))
    return str(value)


def float_literal(dtype: DataType, value: float) -> str:
    """A float in LLVM's exact hexadecimal form; bit patterns for types that travel as bits."""
    if travels_as_bits(dtype):
        bits = int(dtype.numpy().type(value).view({8: "u1", 16: "u2"}[dtype.bits]))
        return str(bits)
    if dtype.kind == "float" and dtype.bits == 16:
        (half,) = struct.unpack("<H", struct.pack("<e", value))
        return f"0xH{half:04X}"
    if dtype.kind == "float":
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{bits:016X}"  # LLVM writes a float32 literal as the double of the same value
    raise InternalError(f"no literal of type {dtype}")


def splat(dtype: DataType, literal: str) -> str:
    """A literal of one lane repeated over all lanes."""
    if dtype.lanes == 1:
        return literal
    return f"splat ({register_type(dtype.element)} {literal})"


def zero(dtype: DataType) -> str:
    """The zero of a type."""
    if dtype.lanes > 1:
        return "zeroinitializer"
    return "null" if dtype.kind == "handle" else float_literal(dtype, 0.0) if dtype.kind == "float" else "0"


def mangled(dtype: DataType) -> str:
    """The suffix LLVM gives overloaded intrinsics, e.g. `v8f32`."""
    element = f"f{dtype.bits}" if dtype.kind == "float" else f"i{dtype.bits}"
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


def c_string(text: str) -> str:
    """The bytes of `text` with a final zero as an LLVM string constant."""
    data = text.encode() + b"\0"
    body = "".join(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{body}"'


def quoted(symbol: str) -> str:
    """A symbol as LLVM text; names outside the plain alphabet need quotes."""
    plain = all(letter.isalnum() or letter in "._$-" for letter in symbol) and symbol.isascii()
    return symbol if plain else f'"{symbol}"'
