"""The functions of `tir` that bodies of computes use, under the names scripts know them by."""

from __future__ import annotations

from typing import Any

from loopwright.ir import Expr
from loopwright.ir.intrinsics import (
    abs,
    acos,
    acosh,
    all,
    any,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    fmod,
    if_then_else,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from loopwright.ir.operators import add, div, floordiv, floormod, truncdiv, truncmod
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract
from loopwright.runtime.errors import NotBuilt

# Indices are not negative, and there rounding down is the cheap and natural division.
indexdiv = floordiv
indexmod = floormod


def trace(args: Any, trace_action: str = "tvm.default_trace_action") -> Expr:
    """Show values while the program runs."""
    raise NotBuilt("te.trace", "run the function in loopwright.evaluator, whose step hook shows every value")


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "div",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "max_value",
    "min_value",
    "multiply",
    "nearbyint",
    "popcount",
    "power",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
]  # fmt: skip
