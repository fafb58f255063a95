"""Functions of CUDA that programs call by their C names: what they mean, on numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright.runtime.dtype import DataType


def _dot_of_bytes(dtype: DataType, values: Sequence[int]) -> int:
    """`__dp4a`: the products of the four bytes of two words, added to a third one, modulo 2³²."""
    first, second, total = values
    if dtype.kind == "uint":
        products = [(first >> shift & 255) * (second >> shift & 255) for shift in (0, 8, 16, 24)]
        return (sum(products) + total) & 0xFFFFFFFF
    products = [_signed(first >> shift, 8) * _signed(second >> shift, 8) for shift in (0, 8, 16, 24)]
    return _signed(sum(products) + total, 32)


def word(value: object) -> int:
    """A word as CUDA passes it: four bytes in a vector have the first one lowest."""
    if isinstance(value, list):
        return sum([(int(byte) & 255) << (8 * place) for place, byte in enumerate(value)])
    return int(value)  # type: ignore[call-overload]


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# By name: the result, from its type and the arguments.
DEVICE_FUNCTIONS: Final[dict[str, Callable[[DataType, Sequence[int]], int]]] = {"__dp4a": _dot_of_bytes}
