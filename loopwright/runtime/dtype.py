"""DataType: the type of one scalar or one vector of lanes, written as text.

A `DataType` *is* its text (`DataType("float32x4") == "float32x4"`), so scripts compare it with strings, and it is
interned, so the compiler compares it with `is`.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

import numpy as np

from loopwright.runtime.errors import LoopwrightError

# DLPack's type codes; the two codes for float8 are those of DLPack 1.1.
TYPE_CODES: Final = {
    "int": 0,
    "uint": 1,
    "float": 2,
    "handle": 3,
    "bfloat": 4,
    "bool": 6,
    "e4m3_float": 10,
    "e5m2_float": 12,
}

_WIDTHS: Final = {
    "int": (1, 2, 4, 8, 16, 32, 64),
    "uint": (1, 2, 4, 8, 16, 32, 64),
    "float": (16, 32, 64),
    "bfloat": (16,),
    "e4m3_float": (8,),
    "e5m2_float": (8,),
}
_ALIASES: Final = {
    "float8_e4m3fn": "e4m3_float8",
    "float8_e4m3": "e4m3_float8",
    "float8_e5m2": "e5m2_float8",
    "int": "int32",
    "uint": "uint32",
    "float": "float32",
    "uint1": "bool",
    "boolean": "bool",
    "": "void",
}
_PATTERN: Final = re.compile(r"(e4m3_float|e5m2_float|bfloat|float|uint|int)(\d+)")
_CUSTOM: Final = re.compile(r"custom\[(\w+)\](8|16|32|64)")

CUSTOM_CODES: Final[dict[str, int]] = {}  # the user's own types (`target.datatype.register`): name → type code


class UnknownDataType(LoopwrightError, ValueError):
    """A text that names no data type.

    A data type is a kind and a width, and a lane count for vectors: `int8`, `float32x4`. Integers have 1, 2, 4, 8, 16,
    32 or 64 bits; floats are float16, bfloat16, float32, float64 and the two 8-bit ones. A type of one's own,
    `custom[name]32`, is registered first: `target.datatype.register(name, code)`.

    For example:

        from loopwright import te

        te.placeholder((4,), dtype="flaot32")
    """

    code = "LW0101"

    def __init__(self, text: object) -> None:
        super().__init__(
            f"unknown data type {text!r}",
            why="a data type is a kind and a width, such as int8, uint16, float32 or bfloat16, "
            "and a lane count for vectors, such as float32x4",
            hint="use one of bool, int8 to int64, uint8 to uint64, float16, float32, float64, bfloat16, "
            "e4m3_float8, e5m2_float8, handle",
            fields={"text": str(text)},
        )


class DataType(str):
    """An interned data type: `bits` wide, `lanes` of them."""

    _known: ClassVar[dict[str, DataType]] = {}

    kind: str  # "int", "uint", "float", "bfloat", "e4m3_float", "e5m2_float", "bool", "handle" or "void"
    bits: int  # of one lane
    lanes: int
    type_code: int
    element: DataType  # the type of one lane
    custom: str  # the name in custom[name]bits; empty for every other type
    is_int: bool  # signed or unsigned integer; bool is not one
    is_unsigned: bool
    is_float: bool  # of any width, bfloat16 and float8 included
    is_bool: bool
    is_vector: bool
    lowest: int  # the range of one lane, for integers and bool
    highest: int

    def __new__(cls, text: object) -> DataType:
        if type(text) is DataType:
            return text
        if not isinstance(text, str):
            text = _numpy_name(text)
        result = cls._known.get(text)
        return result if result is not None else cls._make(text)

    @classmethod
    def _make(cls, text: str) -> DataType:
        start = text.rfind("]") + 1  # the name of a custom type may hold an x
        name, x, lane_text = text[start:].partition("x")
        scalar, lane_text = text[:start] + name, lane_text if x else "1"
        scalar = _ALIASES.get(scalar, scalar)
        if not lane_text.isdecimal() or int(lane_text) < 1:
            raise UnknownDataType(text)
        lanes = int(lane_text)
        if scalar == "void" and lanes > 1:
            raise UnknownDataType(text)
        own = _CUSTOM.fullmatch(scalar)
        if scalar in ("bool", "handle", "void"):
            kind, bits = scalar, {"bool": 1, "handle": 64, "void": 0}[scalar]
        elif own is not None and own[1] in CUSTOM_CODES:
            kind, bits = f"custom[{own[1]}]", int(own[2])
        else:
            match = _PATTERN.fullmatch(scalar)
            if match is None or int(match[2]) not in _WIDTHS[match[1]]:
                raise UnknownDataType(text)
            kind, bits = match[1], int(match[2])
        canonical = scalar if lanes == 1 else f"{scalar}x{lanes}"
        result = cls._known.get(canonical)
        if result is None:
            result = str.__new__(cls, canonical)
            result.kind, result.bits, result.lanes = kind, bits, lanes
            result.custom = own[1] if own is not None else ""
            result.type_code = CUSTOM_CODES[own[1]] if own is not None else TYPE_CODES.get(kind, TYPE_CODES["handle"])
            result.is_int = kind in ("int", "uint")
            result.is_unsigned = kind in ("uint", "bool")
            result.is_float = "float" in kind and own is None
            result.is_bool = kind == "bool"
            result.is_vector = lanes > 1
            signed = kind == "int"
            result.lowest = -(1 << (bits - 1)) if signed else 0
            result.highest = (1 << (bits - signed)) - 1 if bits else 0
            cls._known[canonical] = result
            result.element = result if lanes == 1 else cls(scalar)
        cls._known[text] = result
        return result

    def with_lanes(self, lanes: int) -> DataType:
        """The same element type with another lane count."""
        return self if lanes == self.lanes else DataType(f"{self.element!s}x{lanes}" if lanes > 1 else self.element)

    @property
    def nbytes(self) -> int:
        """Bytes one lane takes in memory; a bool takes a whole byte."""
        return (self.bits + 7) // 8

    def numpy(self) -> np.dtype:
        """The numpy type of one lane (from `ml_dtypes` for the types numpy lacks)."""
        if self.kind in ("bfloat", "e4m3_float", "e5m2_float"):
            import ml_dtypes

            name = {"bfloat": "bfloat16", "e4m3_float": "float8_e4m3fn", "e5m2_float": "float8_e5m2"}[self.kind]
            return np.dtype(getattr(ml_dtypes, name))
        if self.is_int and self.bits < 8:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, str(self.element)))
        if self.custom:
            return np.dtype(f"uint{self.bits}")
        if self.kind in ("handle", "void"):
            raise UnknownDataType(self)
        return np.dtype(str(self.element))

    def min_value(self) -> int | float:
        """The least finite value of one lane."""
        if self.is_float:
            return -float(self.max_value())
        return self.lowest

    def max_value(self) -> int | float:
        """The greatest finite value of one lane."""
        if self.kind == "float":
            return float(np.finfo(self.numpy()).max)
        if self.is_float:
            import ml_dtypes

            return float(ml_dtypes.finfo(self.numpy()).max)
        return self.highest

    def __reduce__(self) -> tuple[type[DataType], tuple[str]]:
        return DataType, (str(self),)


def register_custom(name: str, type_code: int) -> None:
    """Make `custom[name]8` to `custom[name]64` data types; see `target/datatype.py`."""
    CUSTOM_CODES[name] = type_code


def _numpy_name(value: object) -> str:
    """The text of a numpy (or ml_dtypes) type, or of anything numpy can make one from."""
    if isinstance(value, type) and issubclass(value, bool):
        return "bool"
    try:
        return np.dtype(value).name  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UnknownDataType(value) from None


BOOL: Final = DataType("bool")
INT32: Final = DataType("int32")
INT64: Final = DataType("int64")
FLOAT32: Final = DataType("float32")
FLOAT64: Final = DataType("float64")
HANDLE: Final = DataType("handle")
VOID: Final = DataType("void")
