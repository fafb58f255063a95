"""Functions and errors known by name across languages: `register_func`, `get_global_func`, `register_error`, `convert`.

A Python exception that crosses compiled code on its way to the caller arrives there as the same object, for functions
that were registered or converted here.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loopwright.runtime import ffi
from loopwright.runtime.call_errors import SEPARATOR
from loopwright.runtime.errors import LoopwrightError, with_article
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.upper_layers import from_upper_layer

if TYPE_CHECKING:
    from loopwright.runtime.ffi import core

_CROSSING: Final = "loopwright.PythonException"
_KEPT: Final = 64  # exceptions on their way; native code that swallows one leaves it here until it is pushed out
_crossing: OrderedDict[str, BaseException] = OrderedDict()
_tokens: Final = itertools.count()
_CONVERTIBLE: Final = (type(None), bool, int, float, str, bytes, bytearray, list, tuple, Mapping)


class FunctionNameTaken(LoopwrightError, ValueError):
    """A function is registered under that name already; `override=True` replaces it.

    For example:

        from loopwright.runtime import register_func
        register_func("mine", print)
        register_func("mine", print)
    """

    code = "LW0124"


class UnknownGlobalFunction(LoopwrightError, ValueError):
    """No function is registered under that name.

    For example:

        from loopwright.runtime import get_global_func
        get_global_func("nobody.registered.this")
    """

    code = "LW0125"


class NotConvertible(LoopwrightError, ValueError):
    """A value that has no counterpart outside Python.

    Numbers, texts, bytes, lists, dictionaries, functions, tensors, devices and nodes of programs have one.

    For example:

        from loopwright.runtime import convert
        convert({1, 2, 3})
    """

    code = "LW0126"


def register_func(
    name_or_f: str | PackedFunction, f: PackedFunction | None = None, override: bool = False
) -> PackedFunction:
    """Register a function under a name, or under its own; also a decorator. Gives back the registered function."""
    if not isinstance(name_or_f, str):
        return register_func(name_or_f.__name__, name_or_f, override)
    name = name_or_f

    def register(function: PackedFunction) -> PackedFunction:
        tvm_ffi = ffi.load()
        if not override and tvm_ffi.get_global_func(name, allow_missing=True) is not None:
            raise FunctionNameTaken(
                f"a function is already registered as {name!r}", hint="pass override=True to replace it"
            )
        tvm_ffi.register_global_func(name, _carrying_exceptions(function), override=override)
        return tvm_ffi.get_global_func(name)

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The function registered as `name`; without one, None where `allow_missing`, else an error."""
    result = ffi.load().get_global_func(name, allow_missing=True)
    if result is None and not allow_missing:
        import difflib

        near = difflib.get_close_matches(name, list_global_func_names(), 3)
        hint = f"did you mean {', '.join(near)}?" if near else "register it with register_func"
        raise UnknownGlobalFunction(f"no function is registered as {name!r}", hint=hint, fields={"name": name})
    return result


def list_global_func_names() -> list[str]:
    """The names of all registered functions, in order."""
    from tvm_ffi import registry

    return sorted(str(name) for name in registry.list_global_func_names())


def remove_global_func(name: str) -> None:
    """Forget the function registered as `name`."""
    get_global_func(name)
    ffi.load().remove_global_func(name)


def convert(value: object) -> Any:
    """`value` as it is seen outside Python: lists as arrays, dicts as maps, callables as functions.

    Numbers become literals of programs, in lists and dicts the integers; nodes of programs (any object of this package)
    stay themselves, and so does a dict that has some as keys: they are found by identity, which is Python's.
    """
    tvm_ffi = ffi.load()
    from loopwright.runtime import containers  # noqa: F401 (it says how they are pickled, and loads tvm-ffi)

    if isinstance(value, (float, np.generic)) and not isinstance(value, np.void):
        return from_upper_layer("literal")(value)
    value = from_upper_layer("literals")(value)
    if isinstance(value, tvm_ffi.core.CObject) or _is_ours(value):
        return value
    if isinstance(value, Mapping) and any([_is_ours(key) for key in value]):
        return {key: convert(item) for key, item in value.items()}
    if callable(value):
        value = _carrying_exceptions(value)
    elif not (isinstance(value, _CONVERTIBLE) or hasattr(value, "__dlpack__")):
        raise NotConvertible(
            f"{with_article(type(value).__name__)} cannot be converted",
            hint="convert numbers, texts, bytes, lists, dictionaries, functions or tensors",
        )
    return tvm_ffi.convert(value)


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("loopwright.")


def register_error(name_or_class: str | type, cls: type | None = None) -> type | Callable[[type], type]:
    """Let native errors of that kind arrive as this class, made from one text; also a decorator."""
    if isinstance(name_or_class, type):
        return register_error(name_or_class.__name__, name_or_class)

    def register(error_class: type) -> type:
        ffi.load().register_error(name_or_class, error_class)
        return error_class

    return register if cls is None else register(cls)


def _carrying_exceptions(function: PackedFunction) -> PackedFunction:
    """`function`, whose exceptions come out of native code as themselves.

    tvm_ffi sends an exception's kind and text, and rebuilds it from them. So the exception is kept here under a token
    and the token sent behind the text; the "class" registered for the kind looks it up again.
    """
    from loopwright.runtime.module import Module

    tvm_ffi = ffi.load()
    core = tvm_ffi.core
    if isinstance(function, core.Function):
        return function
    core.ERROR_NAME_TO_TYPE.setdefault(_CROSSING, _Arrived)

    @functools.wraps(function)
    def carried(*args: object) -> object:
        try:
            result = function(*[_owned(arg) if isinstance(arg, core.Tensor) else arg for arg in args])
            # A module can be called, and would be taken for a function.
            return core._convert_to_opaque_object(result) if isinstance(result, Module) else result
        except Exception as error:
            token = str(next(_tokens))
            _crossing[token] = error
            while len(_crossing) > _KEPT:
                _crossing.popitem(last=False)
            error.__tvm_ffi_error__ = core.Error(_CROSSING, f"{error}{SEPARATOR}{token}", "")  # type: ignore[attr-defined]
            raise

    return carried


def _owned(tensor: core.Tensor) -> core.Tensor:
    """A tensor argument that may be shared on; compiled code passes views of memory that it only lends."""
    from loopwright.runtime.tensor import NDArray, lent

    return tensor if isinstance(tensor, NDArray) and tensor.__chandle__() else lent(tensor)


class _Arrived(Exception):
    """Looks like the class of the exception that crossed; making one gives back the exception itself."""

    def __new__(cls, message: str) -> BaseException:  # type: ignore[misc]
        text, _, token = message.rpartition(SEPARATOR)
        return _crossing.pop(token, None) or LoopwrightError(text)
