"""Hybrid functions as plain Python: the words of hybrid script for numpy arrays and numbers.

Loops are ranges, tensors are numpy arrays, and the functions compute what the compiled function computes.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loopwright.evaluator.functions import FUNCTIONS
from loopwright.runtime.dtype import DataType

# Words for functions of the IR that bear another name there.
RENAMED: Final = {"power": "pow"}
MATH: Final = (
    "sqrt rsqrt log exp tanh sigmoid power popcount round erf sin cos tan floor ceil trunc log2 log10 isnan isinf"
).split()
CASTS: Final = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


def _function(name: str) -> Callable[..., np.generic | bool]:
    table = FUNCTIONS[RENAMED.get(name, name)]

    def call(*values: object) -> np.generic | bool:
        numbers: list[Any] = [np.asarray(value)[()] for value in values]
        dtype = np.result_type(*[_kind(value) for value in values])
        if dtype.kind in "iub" and name in ("floor", "ceil", "trunc", "round"):
            return numbers[0]
        if dtype.kind in "iub" and name != "popcount":
            dtype = np.dtype("float32")
        result = table(DataType(dtype))(*[dtype.type(number).item() for number in numbers])
        return result if isinstance(result, bool) else dtype.type(result)

    call.__name__ = call.__qualname__ = name
    return call


def _kind(value: object) -> np.dtype:
    """The type hybrid script gives a number: a plain int is int32, a plain float float32."""
    if isinstance(value, (bool, int)):
        return np.dtype("int32")
    return np.dtype("float32") if isinstance(value, float) else np.asarray(value).dtype


def _new_array(shape: object, dtype: object = "float32", scope: str = "global") -> np.ndarray:
    return np.zeros(shape if isinstance(shape, (tuple, list)) else (shape,), np.dtype(str(dtype)))


def _bind(tag: str, extent: int) -> range:
    return range(extent)


def _max_num_threads(allow_none: bool = True) -> int:
    from loopwright.target import Target

    target = Target.current(allow_none=True)
    return int(getattr(target, "max_num_threads", 1) or 1) if target is not None else 1


def _infinity(dtype: object = "float32") -> np.floating:
    return np.dtype(str(dtype)).type(np.inf)


WORDS: Final[dict[str, Any]] = {
    **{name: _function(name) for name in MATH},
    **{name: getattr(np, name) for name in CASTS},
    **dict.fromkeys(("unroll", "parallel", "vectorize", "const_range"), range),
    "allocate": _new_array,
    "output_tensor": _new_array,
    "bind": _bind,
    "likely": lambda condition: condition,
    "ceil_div": lambda a, b: -(-a // b),
    "max_num_threads": _max_num_threads,
    "inf": _infinity,
    "ninf": lambda dtype="float32": -_infinity(dtype),
}

HYBRID_GLOBALS: Final = WORDS  # the name scripts know


def run_as_python(function: types.FunctionType, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
    """Call `function` with the words of hybrid script among its globals."""
    constants = {name: value for name, value in function.__globals__.items() if _is_constant(value)}
    scope = {**function.__globals__, **WORDS, **constants}  # imported functions do not change what the words mean
    built = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    built.__kwdefaults__ = function.__kwdefaults__
    return built(*arguments, **keywords)


def _is_constant(value: object) -> bool:
    return isinstance(value, (bool, int, float, str, tuple, list, np.generic))
