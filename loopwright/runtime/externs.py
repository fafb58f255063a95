"""C functions that compiled code may call with `call_extern`: addresses given by name, and libraries loaded for them.

Code compiled in this process finds functions here first, then in the process itself. Libraries loaded with
`load_extern_library` are seen by exported libraries too; single addresses are not, since a library is linked by name.
"""

from __future__ import annotations

import ctypes
import os

from loopwright.runtime import ffi
from loopwright.runtime.errors import LoopwrightError, with_article

_given: dict[str, tuple[int, object]] = {}  # the second keeps a callback alive as long as compiled code may call it
_libraries: list[ctypes.CDLL] = []


class BadExtern(LoopwrightError, ValueError):
    """What was to be registered for `call_extern` is no C function, or a library of them could not be loaded.

    A C function is a ctypes function (`ctypes.CFUNCTYPE(...)(python_function)`, `library.function`) or an address.

    For example:

        from loopwright.runtime import register_extern
        register_extern("my_function", print)
    """

    code = "LW0145"


def register_extern(name: str, function: object) -> None:
    """Let `call_extern(…, name, …)` in programs built from now on call `function`: a ctypes function or an address."""
    if isinstance(function, int) and not isinstance(function, bool):
        address = function
    elif isinstance(function, (ctypes._CFuncPtr, ctypes.c_void_p)):  # type: ignore[attr-defined]
        address = ffi.address_of(function)
    else:
        raise BadExtern(
            f"register_extern({name!r}): {with_article(type(function).__name__)} is no C function",
            hint="make it one: ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(function)",
        )
    if address <= 0:
        raise BadExtern(f"register_extern({name!r}): the address is {address}")
    _given[name] = (address, function)


def load_extern_library(path: str | os.PathLike[str]) -> ctypes.CDLL:
    """Load a library of C functions for `call_extern`, also from exported modules loaded later."""
    try:
        library = ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise BadExtern(f"the library {os.fspath(path)!r} could not be loaded", why=str(error)) from None
    _libraries.append(library)
    return library


def extern_address(name: str) -> int | None:
    """The address registered for `name`, or of a function in a library loaded for it."""
    if name in _given:
        return _given[name][0]
    for library in _libraries:
        try:
            return ffi.address_of(library[name])
        except AttributeError:
            continue
    return None
