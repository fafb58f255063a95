"""fast_exp, fast_tanh, fast_erf: shorter formulas for float32, some units in the last place less exact.

They never overflow: arguments beyond the range of the formula count as its ends. Other types get the exact function.
The polynomials were fitted to the least relative error on their interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, overload

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import floor, maximum, minimum, reinterpret
from loopwright.te.whole_tensors import each_element
from loopwright.topi.math import elementwise
from loopwright.topi.registry import Sample, operator, ulps
from loopwright.topi.testing.elementwise import erf_python, wide
from loopwright.topi.types import Operand

# 2^f for |f| <= 1/2, off by 7.5e-8; lowest power first.
_EXP2: Final = (1.00000007, 0.693146967, 0.240221197, 0.055507133, 0.00967554212, 0.00132764654)
# tanh x = x · P(x²) / Q(x²) for |x| <= 9, off by 6e-8.
_TANH_P: Final = (0.999999942, 0.129192377, 0.00292076831, 9.26742217e-06, -1.27802516e-08, 1.82543167e-11)
_TANH_Q: Final = (1.0, 0.462525219, 0.0237632041, 0.000228100688)
# erf x = x · P(x²) / Q(x²) for |x| <= 4, off by 2.5e-8.
_ERF_P: Final = (1.12837914, 0.193521, 0.053098048, 0.00388216938, 0.000284516501, 1.98667236e-06)
_ERF_Q: Final = (1.0, 0.504836083, 0.115339589, 0.0152049177, 0.00118524317, 3.74164321e-05)
# Where exp is a normal number of float32, and the exponent of 2 fits its field.
_EXP_RANGE: Final = (-87.33, 88.37)


def _samples(limit: float, off: float) -> Callable[[], Iterable[Sample]]:
    def samples() -> Iterable[Sample]:
        for dtype, bound in (("float32", ulps(off, "float32")), ("float16", ulps(3, "float32"))):
            yield Sample((np.linspace(-limit, limit, 53).astype(dtype),), {}, bound)
        yield Sample((np.linspace(-limit, limit, 7),), {}, ulps(3, "float64"))
        yield Sample((np.array([[np.nan]], "float32"),), {}, ulps(off, "float32"))
        yield Sample((np.zeros((0, 3), "float32"),), {}, ulps(off, "float32"))

    return samples


@overload
def fast_exp(x: te.Tensor) -> te.Tensor: ...
@overload
def fast_exp(x: Expr | float) -> Expr: ...
# 0.6 units for the polynomial, 1.5 for its sum (the terms after the first add up to less than half of it).
@operator(reference=wide(np.exp), samples=_samples(9.0, 2.5))
def fast_exp(x: Operand) -> te.Tensor | Expr:
    """exp of every element; between e^-87.33 and e^88.37 whatever `x` is."""
    return _approximated("fast_exp", _exp, elementwise.exp, x)


@overload
def fast_tanh(x: te.Tensor) -> te.Tensor: ...
@overload
def fast_tanh(x: Expr | float) -> Expr: ...
# 0.5 units for the quotient of polynomials; each of the two sums, the product and the division round by up to one.
@operator(reference=wide(np.tanh), samples=_samples(9.0, 4.5))
def fast_tanh(x: Operand) -> te.Tensor | Expr:
    """tanh of every element."""
    return _approximated("fast_tanh", lambda v: _odd_quotient(v, 9.0, _TANH_P, _TANH_Q), elementwise.tanh, x)


@overload
def fast_erf(x: te.Tensor) -> te.Tensor: ...
@overload
def fast_erf(x: Expr | float) -> Expr: ...
@operator(reference=erf_python, samples=_samples(4.0, 4.5))
def fast_erf(x: Operand) -> te.Tensor | Expr:
    """erf of every element."""
    return _approximated("fast_erf", lambda v: _odd_quotient(v, 4.0, _ERF_P, _ERF_Q), elementwise.erf, x)


def _approximated(name: str, formula: Callable[[Expr], Expr], exact: elementwise.Unary, x: Operand) -> te.Tensor | Expr:
    if not isinstance(x, te.Tensor):
        value = as_expr(x)
        return formula(value) if value.dtype == "float32" else exact(value)
    return each_element(f"T_{name}", formula, x) if x.dtype == "float32" else exact(x)


def _exp(x: Expr) -> Expr:
    within = maximum(minimum(x, const(_EXP_RANGE[1], x.dtype)), const(_EXP_RANGE[0], x.dtype))
    power = floor(within * const(1.44269504, x.dtype) + const(0.5, x.dtype))
    # ln 2 in two parts: the product with the first, which has few bits, is exact.
    rest = within - power * const(0.693359375, x.dtype) - power * const(-2.12194440e-4, x.dtype)
    part = _polynomial(rest * const(1.44269504, x.dtype), _EXP2)
    return part * reinterpret("float32", (power.astype("int32") + 127) << 23)


def _odd_quotient(x: Expr, limit: float, above: Sequence[float], below: Sequence[float]) -> Expr:
    within = maximum(minimum(x, const(limit, x.dtype)), const(-limit, x.dtype))
    square = within * within
    return within * _polynomial(square, above) / _polynomial(square, below)


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    total = const(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + const(coefficient, x.dtype)
    return total
