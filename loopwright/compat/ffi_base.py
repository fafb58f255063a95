"""What scripts take from the peer's `_ffi` beside functions: kinds of values, codes of types, where our library is."""

from __future__ import annotations

import importlib
from enum import IntEnum

import numpy as np

from loopwright.compat.paths import PEER_VERSION
from loopwright.runtime import ffi, thread_pool

string_types = (str,)
integer_types = (int, np.int32, np.int64)
numeric_types = (*integer_types, float, np.float16, np.float32, np.float64)

__version__ = PEER_VERSION
__all__ = [
    "DataTypeCode",
    "find_include_path",
    "find_lib_path",
    "integer_types",
    "numeric_types",
    "py_str",
    "string_types",
]


def __getattr__(name: str) -> object:
    if name == "_LIB":
        return thread_pool.library()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class DataTypeCode(IntEnum):
    """The kinds of element types, by the numbers of DLPack."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


def py_str(text: bytes) -> str:
    """The text of bytes that came from C."""
    return text.decode("utf-8")


def find_lib_path(name: object = None, search_path: object = None, optional: bool = False) -> list[str]:
    """The native libraries of the runtime; there is one, and none where it could not be built."""
    native = thread_pool.library()
    return [] if native is None else [str(native._name)]


def find_include_path(name: object = None, search_path: object = None) -> list[str]:
    """The directories whose headers a C program may include that calls an exported library by its packed interface."""
    libinfo = importlib.import_module(f"{ffi.load().__name__}.libinfo")
    return [str(libinfo.find_include_path()), str(libinfo.find_dlpack_include_path())]
