"""How data types and literals look in LLVM text, in registers and in memory."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Final

from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError, NotBuilt

# Of internal symbols. No two kinds share a prefix, so that no function's name can clash with another kind.
BODY_PREFIX: Final = "lw.body."
MATH_PREFIX: Final = "lw.math."

_FLOATS: Final = {16: "half", 32: "float", 64: "double"}

# LLVM cuts vectors into registers one by one. Its time grows faster than their length, and at 65,536 lanes it aborts.
LONGEST_VECTOR: Final = 1024


@cache  # asked for each instruction
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
    if dtype.lanes == 1:
        return element
    if dtype.lanes > LONGEST_VECTOR:
        raise NotBuilt(f"a vector of {dtype.lanes:,} lanes ({dtype})", "write a loop over its elements")
    return f"<{dtype.lanes} x {element}>"


@cache  # asked for each instruction
def memory_type(dtype: DataType) -> str:
    """The type as which a value is loaded and stored: what is smaller than a byte takes a byte."""
    if is_widened_in_memory(dtype):
        return "i8" if dtype.lanes == 1 else f"<{dtype.lanes} x i8>"
    return register_type(dtype)


@cache  # asked for each instruction
def storage_type(dtype: DataType) -> str:
    """The type of an element of an array. Not a vector: LLVM pads vectors of three in arrays."""
    element = memory_type(dtype.element)
    return element if dtype.lanes == 1 else f"[{dtype.lanes} x {element}]"


def is_widened_in_memory(dtype: DataType) -> bool:
    """Whether a value takes a whole byte in memory though it has fewer bits."""
    return dtype.bits < 8 and dtype.kind in ("int", "uint", "bool")


def travels_as_bits(dtype: DataType) -> bool:
    """Whether values of this type are kept as integers of the same width."""
    return dtype.kind in ("bfloat", "e4m3_float", "e5m2_float")


def int_literal(dtype: DataType, value: int) -> str:
    """An integer (its low bits, read as signed) or truth value."""
    if dtype.is_bool:
        return "true" if value else "false"
    half = 1 << (dtype.bits - 1)
    return str(((value + half) & (2 * half - 1)) - half)


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


_ODD: Final = re.compile(r"[^ !#-\[\]-~]")  # what text constants and names do not hold as it is
_ESCAPES: Final = {chr(byte): f"\\{byte:02X}" for byte in range(256)}


def _escaped(data: bytes) -> str:
    return _ODD.sub(lambda result: _ESCAPES[result[0]], data.decode("latin-1"))


def byte_string(data: bytes) -> str:
    """Bytes as an LLVM array constant."""
    return f'[{len(data)} x i8] c"{_escaped(data)}"'


def c_string(text: str) -> str:
    """The bytes of `text` with a final zero as an LLVM string constant."""
    return byte_string(text.encode("utf-8", "replace") + b"\0")


def quoted(symbol: str) -> str:
    """A symbol as LLVM text; names outside the plain alphabet need quotes."""
    plain = all(letter.isalnum() or letter in "._$-" for letter in symbol) and symbol.isascii()
    if plain and not symbol[:1].isdecimal():
        return symbol
    return f'"{_escaped(symbol.encode("utf-8", "replace"))}"'
