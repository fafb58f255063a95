"""`contrib.random`: tensors of random numbers in te programs, drawn by numpy when compiled code calls for them.

Every run of the program draws again. `tvm.contrib.random.seed`, a registered function, makes what follows repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopwright.ir.intrinsics import call_packed
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.registry import get_global_func, register_func
from loopwright.te import Tensor, extern

__all__ = ["normal", "randint", "uniform"]

_PREFIX = "tvm.contrib.random."
_source = [np.random.default_rng()]


class BadRandomRange(LoopwrightError, ValueError):
    """Random numbers were asked for from an empty range, or in a type that cannot hold them.

    For example:

        from loopwright.contrib import random

        random.randint(5, 5, (3,))
    """

    code = "LW0057"


def randint(low: int, high: int, size: object, dtype: str = "int32") -> Tensor:
    """Integers from `low` on, below `high`."""
    if not str(dtype).lstrip("u").startswith("int") or int(low) >= int(high):
        raise BadRandomRange(f"randint: integers from {low} below {high} in {dtype}")
    return _drawn("randint", int(low), int(high), size, dtype)


def uniform(low: float, high: float, size: object) -> Tensor:
    """float32 numbers, all of `[low, high)` alike."""
    return _drawn("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: object) -> Tensor:
    """float32 numbers around `loc`, with the standard deviation `scale`."""
    return _drawn("normal", float(loc), float(scale), size, "float32")


def _drawn(name: str, first: float, second: float, size: object, dtype: str) -> Tensor:
    def body(ins: Any, outs: Any) -> Any:
        return call_packed(_PREFIX + name, first, second, outs[0])

    result: Tensor = extern(size, [], body, name=name, dtype=dtype)
    return result


def _randint(low: int, high: int, out: Any) -> None:
    out.copyfrom(_source[0].integers(low, high, out.shape, np.dtype(str(out.dtype))))


def _uniform(low: float, high: float, out: Any) -> None:
    out.copyfrom(_source[0].uniform(low, high, out.shape))


def _normal(loc: float, scale: float, out: Any) -> None:
    out.copyfrom(_source[0].normal(loc, scale, out.shape))


def _random_fill(out: Any) -> None:
    """Numbers of any element type that no computation minds: small, positive, not zero."""
    kind = str(out.dtype)
    is_whole = kind.startswith(("int", "uint", "bool"))
    out.copyfrom(_source[0].integers(1, 2 if kind == "bool" else 8, out.shape) if is_whole else (
        _source[0].uniform(1.0, 10.0, out.shape)
    ))


def _seed(number: int) -> None:
    _source[0] = np.random.default_rng(number)


_FUNCTIONS: Mapping[str, Callable[..., None]] = {
    "randint": _randint,
    "uniform": _uniform,
    "normal": _normal,
    "random_fill": _random_fill,
    "seed": _seed,
}
for _name, _function in _FUNCTIONS.items():
    if get_global_func(_PREFIX + _name, allow_missing=True) is None:
        register_func(_PREFIX + _name, _function)
