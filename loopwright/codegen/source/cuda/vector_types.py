"""vector_types: the types of wide accesses, those that CUDA has and those that the text defines.

*(float4 *)&B[i] = *(const float4 *)&A[j];      16 bytes at once; both addresses are multiples of 16
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from loopwright.analysis.wide_accesses import WIDEST_BYTES
from loopwright.codegen.source.types import memory_type
from loopwright.runtime.dtype import DataType

_OF_CUDA: Final = {"float": "float", "double": "double", "int32_t": "int", "uint32_t": "uint"}
_NUMBERS: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def vector_type(dtype: DataType, lanes: int) -> str:
    """The type of so many neighbours in memory."""
    text = memory_type(dtype)
    if text in _OF_CUDA and lanes * dtype.nbytes <= WIDEST_BYTES:
        return f"{_OF_CUDA[text]}{lanes}"
    return f"{text.removesuffix('_t')}x{lanes}"


def _definitions() -> dict[str, str]:
    result = {}
    for name in _NUMBERS:
        dtype = DataType(name)
        for lanes in (2, 4, 8, 16):
            size, kind = lanes * dtype.nbytes, vector_type(dtype, lanes)
            if size <= WIDEST_BYTES and "x" in kind:
                result[kind] = f"struct __align__({size}) {kind} {{ {memory_type(dtype)} lanes[{lanes}]; }};"
    return result


_DEFINITIONS: Final = _definitions()
NAMES: Final = (*_DEFINITIONS, *[f"{name}{lanes}" for name in ("float", "int", "uint", "double") for lanes in (2, 4)])


def definitions(texts: Iterable[str]) -> str:
    """The definitions that the texts need, one a line."""
    used = {word for text in texts for word in _WORD.findall(text)}
    return "\n".join([text for name, text in _DEFINITIONS.items() if name in used])
