"""ONNX's element types and ours.

    of_proto(TensorProto.FLOAT).dtype     "float32"
    of_proto(TensorProto.INT4).dtype      "int8": the type that carries it

Types that have no operators of their own are *carried* by another one inside the graph: a 4-bit integer by an 8-bit one
of the same value, a float of 8 bits or less without hardware by its code in a uint8. `Cast` is what turns them into
others. Outside (inputs, outputs, initialisers) they have their own numpy types, of ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from loopwright.frontends.onnx.errors import UnsupportedType
from loopwright.runtime.dtype import DataType


@dataclass(frozen=True)
class ElementType:
    """One element type of ONNX."""

    code: int  # of TensorProto.DataType
    name: str  # as ONNX writes it, in small letters
    dtype: str  # of the tensor in the graph
    bits: int
    coded: bool = False  # the graph has codes (uint8), not values

    @property
    def carried(self) -> bool:
        """Whether the graph's type is another than that of the model."""
        return self.coded or self.name in ("int4", "uint4", "int2", "uint2")

    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type of such elements outside the graph."""
        if self.carried:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, _NUMPY_NAMES.get(self.name, self.name)))
        return DataType(self.dtype).numpy()

    def to_graph(self, array: np.ndarray) -> np.ndarray:
        """An array of the model as the graph has it."""
        if self.coded:
            return array if array.dtype == np.uint8 else np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)
        return array.astype(self.dtype) if self.carried else array

    def from_graph(self, array: np.ndarray) -> np.ndarray:
        """An array of the graph as the model has it."""
        if self.coded:
            return np.ascontiguousarray(array).view(self.numpy()).reshape(array.shape)
        return array.astype(self.numpy()) if self.carried else array


_NUMPY_NAMES: Final = {
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "float4_e2m1fn",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
}

_TYPES: Final = {
    kind.code: kind
    for kind in [
        ElementType(1, "float", "float32", 32),
        ElementType(2, "uint8", "uint8", 8),
        ElementType(3, "int8", "int8", 8),
        ElementType(4, "uint16", "uint16", 16),
        ElementType(5, "int16", "int16", 16),
        ElementType(6, "int32", "int32", 32),
        ElementType(7, "int64", "int64", 64),
        ElementType(9, "bool", "bool", 8),
        ElementType(10, "float16", "float16", 16),
        ElementType(11, "double", "float64", 64),
        ElementType(12, "uint32", "uint32", 32),
        ElementType(13, "uint64", "uint64", 64),
        ElementType(16, "bfloat16", "bfloat16", 16),
        ElementType(17, "float8e4m3fn", "e4m3_float8", 8),
        ElementType(18, "float8e4m3fnuz", "uint8", 8, coded=True),
        ElementType(19, "float8e5m2", "e5m2_float8", 8),
        ElementType(20, "float8e5m2fnuz", "uint8", 8, coded=True),
        ElementType(21, "uint4", "uint8", 4),
        ElementType(22, "int4", "int8", 4),
        ElementType(23, "float4e2m1", "uint8", 4, coded=True),
        ElementType(24, "float8e8m0", "uint8", 8, coded=True),
        ElementType(25, "uint2", "uint8", 2),
        ElementType(26, "int2", "int8", 2),
        ElementType(27, "float6e2m3", "uint8", 6, coded=True),
        ElementType(28, "float6e3m2", "uint8", 6, coded=True),
    ]
}

_REFUSED: Final = {
    0: ("undefined", None),
    8: ("string", "texts are not computed with: convert them to numbers before the model"),
    14: ("complex64", "complex numbers are not computed with: a last axis of two numbers stands for one"),
    15: ("complex128", "complex numbers are not computed with: a last axis of two numbers stands for one"),
}


def of_proto(code: int, what: str = "a tensor") -> ElementType:
    """The element type with that number; `what` has it, for the error."""
    result = _TYPES.get(code)
    if result is None:
        name, why = _REFUSED.get(code, (f"number {code}", None))
        raise UnsupportedType(what, name, why)
    return result


@cache
def of_dtype(dtype: str) -> ElementType:
    """The element type that is a data type of ours as it is."""
    for kind in _TYPES.values():
        if kind.dtype == dtype and not kind.carried:
            return kind
    raise UnsupportedType("a tensor", dtype)


@cache
def of_numpy(dtype: np.dtype[np.generic]) -> ElementType:
    """The element type of numpy arrays."""
    for kind in _TYPES.values():
        if kind.numpy() == dtype:
            return kind
    raise UnsupportedType("an array", str(dtype))


def all_types() -> list[ElementType]:
    return list(_TYPES.values())
