"""What numpy's functions do with expressions: its operators work, and the others are refused with the name to use here.

numpy asks `__array_ufunc__` wherever an expression meets one of its functions, also in `np.float32(2) * x`.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from loopwright.runtime.errors import LoopwrightError

# numpy's functions of numbers, and what does the same to an expression; those of the same name on both sides first.
_INSTEAD: Final = {
    name: f"te.{name}"
    for name in "exp log log2 log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh floor ceil trunc "
    "isnan isinf isfinite fmod power".split()
} | {
    **{name: f"tir.{name}" for name in "exp2 log1p hypot ldexp copysign nextafter".split()},
    **{f"arc{name}": f"te.a{name}" for name in "sin cos tan sinh cosh tanh".split()},
    "arctan2": "tir.atan2",
    "bitwise_count": "te.popcount",
    "clip": "te.min(te.max(x, low), high)",
    "expm1": "te.exp(x) - 1",
    "fmax": "te.max",
    "fmin": "te.min",
    "logical_and": "te.all",
    "logical_not": "tir.Not",
    "logical_or": "te.any",
    "maximum": "te.max",
    "minimum": "te.min",
    "reciprocal": "1 / x",
    "rint": "te.nearbyint",
    "square": "x * x",
}
_REDUCTIONS: Final = {"add": "te.sum(x, axis=k)", "maximum": "te.max(x, axis=k)", "minimum": "te.min(x, axis=k)"}
# numpy would ask the result of a comparison whether it is true. The second operator takes the operands the other way.
_COMPARISONS: Final = {
    "less": (operator.lt, operator.gt),
    "less_equal": (operator.le, operator.ge),
    "greater": (operator.gt, operator.lt),
    "greater_equal": (operator.ge, operator.le),
    "equal": (operator.eq, operator.eq),
    "not_equal": (operator.ne, operator.ne),
}
_NEED_TRUTH: Final = frozenset("maximum minimum fmax fmin clip sign logical_and logical_or logical_not".split())


class NumpyFunction(LoopwrightError, TypeError):
    """A function of numpy was applied to an expression, whose value is known only when the program runs.

    numpy's functions compute at once. `te.exp(x)` is an expression, computed when the program runs.

    For example:

        import numpy as np
        from loopwright import te

        A = te.placeholder((4,), name="A")
        te.compute((4,), lambda i: np.exp(A[i]), name="B")
    """

    code = "LW0516"

    def __init__(self, name: str, operand: object, instead: str | None) -> None:
        value = getattr(operand, "var", operand)  # of an axis
        super().__init__(
            lambda: f"np.{name} cannot compute with {value!r}: its value is known only when the program runs",
            hint=f"use {instead}" if instead else "use a function of te or tir, such as te.exp",
            fields={"function": name},
        )


def answer_numpy(self: object, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """`__array_ufunc__`: what Python's operators can do is done element by element; the rest is refused."""
    name = ufunc.__name__
    if method != "__call__":
        whole = {"add": "sum", "multiply": "prod"}.get(name, name) if method == "reduce" else f"{name}.{method}"
        reduction = _REDUCTIONS.get(name, "a reducer made by te.comm_reducer")
        raise NumpyFunction(whole, self, f"{reduction}, over a te.reduce_axis k")
    if name in _COMPARISONS and all([np.ndim(value) == 0 for value in inputs if _is_numpys(value)]):
        compare, the_other_way = _COMPARISONS[name]
        left, right = [value.item() if _is_numpys(value) else value for value in inputs]
        return the_other_way(right, left) if _is_numpys(left) else compare(left, right)  # longdouble stays numpy's
    if name not in _NEED_TRUTH:
        try:
            return ufunc(*[_in_array(value) for value in inputs], **options)
        except LoopwrightError:
            raise
        except TypeError:  # there is no such operator in Python
            pass
    raise NumpyFunction(name, self, _INSTEAD.get(name)) from None


def _in_array(value: object) -> object:
    """An expression in an array of objects, which numpy's operators take element by element."""
    if _is_numpys(value) or not hasattr(value, "__array_ufunc__"):
        return value
    box = np.empty((), object)
    box[()] = value
    return box


def _is_numpys(value: object) -> bool:
    """Whether it is a number or an array of numpy."""
    return isinstance(value, (np.ndarray, np.generic))
