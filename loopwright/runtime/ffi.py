"""The one door to `tvm_ffi`: loads it when it is first needed, and makes callables of machine addresses.

`import tvm_ffi` imports torch when torch is installed, which costs seconds nobody asked for. So torch is hidden for
the moment of that import; torch tensors still pass to functions, through DLPack. Where torch is already loaded,
it stays as it is.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    from tvm_ffi import Function
    from tvm_ffi import core as core

# A function of compiled code, or one registered for it: what it takes and gives is known when it runs.
PackedFunction: TypeAlias = Callable[..., Any]

_lock = threading.Lock()


class FFIUnavailable(LoopwrightError, ImportError):
    """The package that carries calls and tensors could not be loaded.

    Loopwright calls compiled functions through `apache-tvm-ffi`. Without it programs can still be built, printed,
    scheduled and evaluated in Python, but no tensor can be made and no compiled function can be called.

    For example:

        # needs a process of its own
        import sys
        sys.modules["tvm_ffi"] = None  # as if it were not installed
        from loopwright.runtime import ffi
        ffi.load()
    """

    code = "LW0104"

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the package apache-tvm-ffi could not be loaded",
            why=reason,
            hint="install it: pip install apache-tvm-ffi",
            fields={"reason": reason},
        )


@functools.cache
def load() -> ModuleType:
    """The module `tvm_ffi`, with Loopwright's errors known to it."""
    with _lock:
        tvm_ffi = sys.modules.get("tvm_ffi") or _import_without_torch()
    from loopwright.runtime import call_errors

    call_errors.register(tvm_ffi)
    return tvm_ffi


def _import_without_torch() -> ModuleType:
    # `None` in sys.modules makes `import torch` raise ImportError, which tvm_ffi takes as "not installed".
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import tvm_ffi
    except (ImportError, OSError) as error:
        raise FFIUnavailable(f"{type(error).__name__}: {error}") from error
    finally:
        if hide and sys.modules.get("torch", ...) is None:
            del sys.modules["torch"]
    return tvm_ffi


def function_from_address(address: int, keep_alive: object = None) -> Function:
    """A callable for the machine code at `address`, which lives at least as long as the callable does.

    The code has the type `int (void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)` and returns
    0, or -1 after setting an error. `keep_alive` (the JIT engine that owns the code) is released with the callable.
    Calls go straight from the interpreter to the code, the GIL released; there is no Python function in between.
    """
    if not address:
        raise ValueError("function_from_address: the address is null, so there is nothing to call")
    return load().Function.__from_extern_c__(address, keep_alive_object=keep_alive)


def address_of(function: CFuncPtr | ctypes.c_void_p) -> int:
    """The machine address of a ctypes function, or 0."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def __getattr__(name: str) -> ModuleType:
    """`from loopwright.runtime.ffi import core`: tvm_ffi's base classes, for modules that derive from them."""
    if name != "core":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load().core


def symbols() -> dict[str, int]:
    """The addresses of the tvm_ffi C functions that generated code may call, by name."""
    library = load().LIB
    names = (
        "TVMFFIErrorSetRaisedFromCStr",
        "TVMFFIErrorSetRaisedFromCStrParts",
        "TVMFFIErrorSetRaised",
        "TVMFFIErrorMoveFromRaised",
        "TVMFFIFunctionGetGlobal",
        "TVMFFIFunctionCall",
        "TVMFFIObjectIncRef",
        "TVMFFIObjectDecRef",
    )
    return {name: address_of(getattr(library, name)) for name in names}
