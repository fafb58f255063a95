"""size_arrays: small arrays of sizes, of which some are expressions of size variables and some nobody knows.

    computed("multiply", n, 12)                             n * 12
    elementwise("maximum", array_of([n, 3], (2,)), 1)       [max(n, 1), 3]
    elementwise("equal", array_of([n, 3], (2,)), -1)        [False, False]: a size is not negative

An array is one of numbers where all its elements are, else of objects: numbers, expressions, and None for an element
that nobody knows. Graphs and models compute shapes with such arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.arith import Analyzer
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.operators import floordiv, floormod, truncdiv, truncmod
from loopwright.relay.types import as_dim, is_any

# A number of Python's or numpy's, or an expression; None where nobody knows it.
Element: TypeAlias = float | PrimExpr | None

_Arithmetic: TypeAlias = Callable[[int | PrimExpr, int | PrimExpr], int | PrimExpr | None]


def _rounds(down: _Arithmetic, to_zero: _Arithmetic) -> _Arithmetic:
    """A division that rounds towards zero, of numbers or sizes by what is positive.

    Of sizes, which are not negative, both roundings are the same; a difference of sizes may be negative.
    """

    def divide(one: int | PrimExpr, other: int | PrimExpr) -> int | PrimExpr | None:
        if isinstance(other, (int, float)) and other <= 0:
            return None
        is_size = one >= 0 if isinstance(one, int) else Analyzer().can_prove(one >= 0)
        return (down if is_size else to_zero)(one, other)

    return divide


# Of two elements of which at least one is no number.
_ARITHMETIC: Final[dict[str, _Arithmetic]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "divide": _rounds(floordiv, truncdiv),
    "floor_divide": _rounds(floordiv, floordiv),
    "trunc_divide": _rounds(floordiv, truncdiv),
    "mod": _rounds(floormod, truncmod),
    "floor_mod": _rounds(floormod, floormod),
    "trunc_mod": _rounds(floormod, truncmod),
    "maximum": maximum,
    "minimum": minimum,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], PrimExpr]]] = {
    "equal": lambda one, other: one.equal(other) if isinstance(one, PrimExpr) else other.equal(one),
    "less": lambda one, other: one < other,
    "less_equal": lambda one, other: one <= other,
    "greater": lambda one, other: one > other,
    "greater_equal": lambda one, other: one >= other,
}
_OF_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "equal": operator.eq,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_OPPOSITE: Final = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}
ELEMENTWISE: Final = frozenset({*_ARITHMETIC, *_COMPARISONS, "where"})


def array_of(elements: Sequence[Element] | np.ndarray | Element, shape: tuple[int, ...]) -> np.ndarray:
    """Elements as an array: of numbers where they all are."""
    result = np.empty(shape, dtype=object)
    listed = np.asarray(elements, dtype=object).reshape(-1) if not isinstance(elements, list) else elements
    for index in range(result.size):
        result.reshape(-1)[index] = listed[index]
    if all(isinstance(element, (bool, np.bool_)) for element in result.flat) and result.size:
        return result.astype(bool)
    if all(isinstance(element, (int, np.integer)) for element in result.flat):
        return result.astype("int64")
    if all(isinstance(element, (int, float, np.integer, np.floating)) for element in result.flat):
        return result.astype("float64")
    return result


def elementwise(name: str, *arrays: np.ndarray) -> np.ndarray:
    """One of ELEMENTWISE, on arrays that are broadcast."""
    repeated = np.broadcast_arrays(*[np.asarray(array, dtype=object) for array in arrays])
    shape, size = repeated[0].shape, repeated[0].size
    function = _chosen if name == "where" else partial(_compared if name in _COMPARISONS else computed, name)
    return array_of([function(*[array.flat[index] for array in repeated]) for index in range(size)], shape)


def accumulated(name: str, elements: np.ndarray, start: int) -> Element:
    """All elements of a vector by one of arithmetic: their sum or their product."""
    total: Element = start
    for element in elements.flat:
        total = computed(name, total, element)
    return total


def computed(name: str, left: Element, right: Element) -> int | PrimExpr | None:
    """Arithmetic on two elements; None where nobody knows the result."""
    one, other = _plain(left), _plain(right)
    if name == "multiply" and (_is_number(one, 0) or _is_number(other, 0)):
        return 0
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int) and name in ("divide", "trunc_divide", "mod", "trunc_mod"):
        if other == 0:
            return None
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        return quotient if "divide" in name else one - quotient * other
    if isinstance(one, int) and isinstance(other, int) and name in ("maximum", "minimum"):
        return max(one, other) if name == "maximum" else min(one, other)
    result = _ARITHMETIC[name](one, other)
    size = None if result is None else as_dim(result)
    return None if is_any(size) else size


def _compared(name: str, left: Element, right: Element) -> bool | None:
    """Whether a comparison holds, where that can be shown."""
    one, other = _plain(left), _plain(right)
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return _OF_NUMBERS[name](one, other)
    analyzer = Analyzer()
    if analyzer.can_prove(_COMPARISONS[name](one, other)):
        return True
    opposite = ("less", "greater") if name == "equal" else (_OPPOSITE[name],)
    return False if any(analyzer.can_prove(_COMPARISONS[each](one, other)) for each in opposite) else None


def _chosen(choice: Element, one: Element, other: Element) -> Element:
    return None if choice is None else (one if choice else other)


def _plain(element: Element) -> int | PrimExpr | None:
    """A number as Python has it; a whole one as an int."""
    if isinstance(element, (float, np.floating)):
        return int(element) if float(element).is_integer() else None
    return int(element) if isinstance(element, (int, np.integer)) else element


def _is_number(element: int | PrimExpr | None, value: int) -> bool:
    return isinstance(element, int) and element == value
