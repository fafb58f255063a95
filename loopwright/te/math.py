"""The functions of `tir` that bodies of computes use, under the names scripts know them by.

Those of one number also take a whole tensor, and give the tensor of their values: `te.exp(A)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from loopwright.ir import Expr, intrinsics
from loopwright.ir.intrinsics import all, any, fmod, if_then_else, max_value, min_value, power
from loopwright.ir.operators import add, div, floordiv, floormod, truncdiv, truncmod
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract
from loopwright.runtime.errors import NotBuilt
from loopwright.te.tensor import Tensor
from loopwright.te.whole_tensors import each_element

# Indices are not negative, and there rounding down is the cheap and natural division.
indexdiv = floordiv
indexmod = floormod


def _of_tensors_too(function: Callable[[object], Expr]) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def of_either(x: object) -> Tensor | Expr:
        if isinstance(x, Tensor) and x.shape:
            return each_element(f"T_{function.__name__}", function, x)
        return function(x)

    return of_either


abs, popcount = map(_of_tensors_too, (intrinsics.abs, intrinsics.popcount))
acos, acosh, asin = map(_of_tensors_too, (intrinsics.acos, intrinsics.acosh, intrinsics.asin))
asinh, atan, atanh = map(_of_tensors_too, (intrinsics.asinh, intrinsics.atan, intrinsics.atanh))
cos, cosh, erf = map(_of_tensors_too, (intrinsics.cos, intrinsics.cosh, intrinsics.erf))
exp, sigmoid, rsqrt = map(_of_tensors_too, (intrinsics.exp, intrinsics.sigmoid, intrinsics.rsqrt))
log, log2, log10 = map(_of_tensors_too, (intrinsics.log, intrinsics.log2, intrinsics.log10))
sin, sinh, sqrt = map(_of_tensors_too, (intrinsics.sin, intrinsics.sinh, intrinsics.sqrt))
tan, tanh = map(_of_tensors_too, (intrinsics.tan, intrinsics.tanh))
ceil, floor, nearbyint = map(_of_tensors_too, (intrinsics.ceil, intrinsics.floor, intrinsics.nearbyint))
round, trunc = map(_of_tensors_too, (intrinsics.round, intrinsics.trunc))
isfinite, isinf, isnan = map(_of_tensors_too, (intrinsics.isfinite, intrinsics.isinf, intrinsics.isnan))


def trace(args: object, trace_action: str = "tvm.default_trace_action") -> Expr:
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
