"""Functions that scripts call to see how values and errors cross the boundary between languages.

Here they are Python's, so that what crosses is the object itself, and an exception arrives as it was raised.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from loopwright.frontends import op_errors
from loopwright.runtime.errors import InternalError, LoopwrightError
from loopwright.runtime.module import Module

__all__ = [
    "ErrorTest",
    "FrontendTestModule",
    "echo",
    "identity_cpp",
    "nop",
    "object_use_count",
    "test_check_eq_callback",
    "test_raise_error_callback",
    "test_wrap_callback",
]


def echo(value: Any) -> Any:
    """What was given."""
    return value


identity_cpp = echo


def nop(*args: object) -> None:
    """Nothing."""


def object_use_count(value: object) -> int:
    """How many hold the object, the caller among them."""
    return sys.getrefcount(value) - 2


class FrontendTestModule(Module):
    """A module of Python functions, put in one by one; `entry_name` is what calling it calls."""

    def __init__(self, entry_name: str | None = None) -> None:
        super().__init__({}, entry_name, type_key="frontend_test")

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Have a function under that name."""
        self.set_functions({**self._functions, name: func})

    __setitem__ = add_function


def test_raise_error_callback(message: str) -> Callable[[], None]:
    """A function that raises the error which the text begins with: `"OpNotImplemented: myop"`."""

    def callback() -> None:
        raise _error(message)

    return callback


def test_check_eq_callback(message: str) -> Callable[[int, int], None]:
    """A function that raises the error which the text begins with, where its two arguments differ."""

    def callback(a: int, b: int) -> None:
        if a != b:
            raise _error(message)

    return callback


def test_wrap_callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another."""

    def callback(*args: Any) -> Any:
        return function(*args)

    return callback


def ErrorTest(a: int, b: int) -> int:
    """The first number; a ValueError where the two differ."""
    if a != b:
        raise ValueError(f"ValueError: expected {b} and got {a}")
    return a


# pytest collects functions of these names from modules that import them.
_function: Any
for _function in (test_raise_error_callback, test_check_eq_callback, test_wrap_callback):
    _function.__test__ = False


def _error(message: str) -> Exception:
    kind = message.partition(":")[0].strip()
    result = getattr(op_errors, kind, None) or getattr(builtins, kind, None)
    if isinstance(result, type) and issubclass(result, Exception):
        return result(message)
    return InternalError(message) if kind == "InternalError" else LoopwrightError(message)
