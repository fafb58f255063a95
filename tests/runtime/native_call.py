"""Hand-made compiled functions for the tests: a Python callable behind the address that a JIT would give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from loopwright.runtime import ffi

SAFE_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)


class Value(ctypes.Structure):
    """`TVMFFIAny`."""

    _fields_ = [("type_index", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint64)]


def native(body: Callable[[list[Value]], int | None]) -> Any:
    """A native function that runs `body` on its raw arguments; what `body` returns is the status."""

    @SAFE_CALL
    def entry(_handle: Any, args: int, count: int, _result: Any) -> int:
        values = (Value * count).from_address(args) if count else []
        return body(list(values)) or 0

    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address
    return ffi.function_from_address(address, keep_alive=entry)


def raising(kind: str, message: str) -> Any:
    """A native function that fails the way compiled code does."""
    raise_error = ffi.load().LIB.TVMFFIErrorSetRaisedFromCStr

    def body(_values: list[Value]) -> int:
        raise_error(ctypes.c_char_p(kind.encode()), ctypes.c_char_p(message.encode()))
        return -1

    return native(body)
