"""The intrinsics that map values to a value: what each call computes, one lane at a time.

Mathematical functions are computed in float64 and rounded to their type: the reference that native code approaches
within a stated number of units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from loopwright.evaluator.arithmetic import fused_multiply_add, rounding, wrapping
from loopwright.evaluator.values import Value
from loopwright.runtime.dtype import DataType

Function = Callable[..., Value]


def _sigmoid(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    small = math.exp(x)
    return small / (1.0 + small)


def _rsqrt(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return 1.0 / math.sqrt(x)


def _round_half_away(x: float) -> float:
    if not math.isfinite(x):
        return x
    whole = math.floor(abs(x))
    return math.copysign(float(whole + (abs(x) - whole >= 0.5)), x)


def _keep_sign(to_int: Callable[[float], int]) -> Function:
    return lambda x: math.copysign(float(to_int(x)), x) if math.isfinite(x) else x


# name → (what Python's math offers, what numpy answers where math raises: poles, overflow, outside the domain)
_FLOAT64: Final[dict[str, tuple[Function, Function]]] = {
    "acos": (math.acos, np.arccos),
    "acosh": (math.acosh, np.arccosh),
    "asin": (math.asin, np.arcsin),
    "asinh": (math.asinh, np.arcsinh),
    "atan": (math.atan, np.arctan),
    "atanh": (math.atanh, np.arctanh),
    "cos": (math.cos, np.cos),
    "cosh": (math.cosh, np.cosh),
    "erf": (math.erf, math.erf),
    "exp": (math.exp, np.exp),
    "exp2": (math.exp2, np.exp2),
    "exp2_approx": (math.exp2, np.exp2),
    "exp10": (lambda x: math.pow(10.0, x), lambda x: np.power(10.0, x)),
    "log": (math.log, np.log),
    "log2": (math.log2, np.log2),
    "log10": (math.log10, np.log10),
    "log1p": (math.log1p, np.log1p),
    "rsqrt": (_rsqrt, lambda x: math.nan),
    "sigmoid": (_sigmoid, lambda x: 0.0),
    "sin": (math.sin, np.sin),
    "sinh": (math.sinh, np.sinh),
    "sqrt": (math.sqrt, np.sqrt),
    "tan": (math.tan, np.tan),
    "tanh": (math.tanh, np.tanh),
    "atan2": (math.atan2, np.arctan2),
    "copysign": (math.copysign, np.copysign),
    "fmod": (math.fmod, np.fmod),
    "hypot": (math.hypot, np.hypot),
    "pow": (math.pow, np.power),
    "ldexp": (math.ldexp, lambda x, e: math.copysign(math.inf, x)),
    "ceil": (_keep_sign(math.ceil), np.ceil),
    "floor": (_keep_sign(math.floor), np.floor),
    "trunc": (_keep_sign(math.trunc), np.trunc),
    "nearbyint": (_keep_sign(round), np.rint),
    "round": (_round_half_away, _round_half_away),
}


def _float_function(name: str, dtype: DataType) -> Function:
    plain, outside = _FLOAT64[name]
    rounded = rounding(dtype)

    def compute(*arguments: float) -> Value:
        try:
            value = plain(*arguments)
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                value = float(outside(*arguments))
        return rounded(value)

    return compute


def _nextafter(dtype: DataType) -> Function:
    number = dtype.numpy().type
    return lambda x, y: y if x == y else float(np.nextafter(number(x), number(y)))


def _shift_left(dtype: DataType) -> Function:
    wrap, mask = wrapping(dtype), dtype.bits - 1
    return lambda x, by: wrap(x << (by & mask))


def _shift_right(dtype: DataType) -> Function:
    mask = dtype.bits - 1
    return lambda x, by: x >> (by & mask)


def _abs(dtype: DataType) -> Function:
    if dtype.is_float:
        return abs
    wrap = wrapping(dtype)
    return lambda x: wrap(abs(x))


def _bits(dtype: DataType, count: Callable[[int, int], int]) -> Function:
    mask, bits = (1 << dtype.bits) - 1, dtype.bits
    return lambda x: count(x & mask, bits)


def _popcount(dtype: DataType) -> Function:
    wrap = wrapping(dtype)  # the count is a value of the type itself, which two bits need not hold
    return _bits(dtype, lambda x, bits: int(wrap(x.bit_count())))


def _fixed_point(dtype: DataType) -> Function:
    """x * y * 2^(s - q), rounded half up: x and y are integers, y with q fraction bits."""
    wrap = wrapping(dtype)

    def compute(x: int, y: int, q: int, s: int) -> int:
        right = q + max(-s, 0)
        product = (x << max(s, 0)) * y
        return wrap((product + (1 << (right - 1))) >> right if right > 0 else product)

    return compute


def _fixed_point_per_axis(dtype: DataType) -> Function:
    compute = _fixed_point(dtype)

    def per_axis(x: int, y: int, left: int, right: int, q: int, shifts_left: int, shifts_right: int) -> int:
        product = x << left if shifts_left else x
        return int(compute(product, y, q + (right if shifts_right else 0), 0))

    return per_axis


# name → a function of the type of the first argument that gives the function on values.
FUNCTIONS: Final[dict[str, Callable[[DataType], Function]]] = {
    **{name: (lambda dtype, name=name: _float_function(name, dtype)) for name in _FLOAT64},  # type: ignore[misc]
    "nextafter": _nextafter,
    "isnan": lambda dtype: lambda x: x != x,
    "isinf": lambda dtype: math.isinf,
    "isfinite": lambda dtype: math.isfinite,
    "abs": _abs,
    "fma": fused_multiply_add,
    "clz": lambda dtype: _bits(dtype, lambda x, bits: bits - x.bit_length()),
    "popcount": _popcount,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_and": lambda dtype: lambda x, y: x & y,
    "bitwise_or": lambda dtype: lambda x, y: x | y,
    "bitwise_xor": lambda dtype: lambda x, y: x ^ y,
    "bitwise_not": lambda dtype: (lambda x: ~x) if not dtype.is_unsigned else (lambda x: x ^ ((1 << dtype.bits) - 1)),
    "q_multiply_shift": _fixed_point,
    "q_multiply_shift_per_axis": _fixed_point_per_axis,
    "large_uint_imm": lambda dtype: lambda low, high: low | (high << 32),
    "likely": lambda dtype: lambda x: x,
    "in_bounds": lambda dtype: lambda index, extent: 0 <= index < extent,
}
