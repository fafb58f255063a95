"""value_ranges: between which numbers the elements of an expression lie, as far as its own operators say.

    cast(add(multiply(clip(%row, 0, 6), 7), clip(%column, 0, 6)), "int64")    →    0 to 48

Importers clip what they compute indices from; such indices need no check. NaN is 0 once it is an integer, and 0 is the
index of an element. Bytes lie between 0 and 255, whatever they are computed from: a table of 256 rows has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, isfinite
from typing import Final

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr, Tuple
from loopwright.relay.op.registry import Op
from loopwright.relay.types import TensorType

Range = tuple[float, float]
_EXACT: Final = 1 << 24  # integers up to this are exact in float32
_NARROW: Final = (8, 16)  # bits of types that hold few numbers
# Operators whose elements are all elements of their first input.
_MOVES: Final = frozenset(
    "reshape transpose broadcast_to expand_dims squeeze strided_slice tile repeat reverse copy take gather".split()
)


def _corners(function: Callable[[float, float], float]) -> Callable[..., Range]:
    def both(one: Range, other: Range) -> Range:
        result = [function(a, b) for a in one for b in other]
        return min(result), max(result)

    return both


_PAIRS: Final[dict[str, Callable[[Range, Range], Range]]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _corners(lambda a, b: a * b),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
_ROUNDED: Final[dict[str, Callable[[float], float]]] = {"floor": floor, "ceil": ceil}


def value_range(expression: Expr) -> Range | None:
    """The least and the greatest number that an element can be; None where nobody knows."""
    result = _range(expression, {})
    return result if result is not None and all(abs(end) < _EXACT for end in result) else None


def _range(expression: Expr, known: dict[Expr, Range | None]) -> Range | None:
    if expression not in known:
        known[expression] = _found(expression, known) or _of_type(expression)
    return known[expression]


def _of_type(expression: Expr) -> Range | None:
    """What a narrow type holds."""
    of = getattr(expression, "checked_type", None)
    if not isinstance(of, TensorType) or not of.dtype.is_int or of.dtype.bits not in _NARROW:
        return None
    return float(of.dtype.min_value()), float(of.dtype.max_value())


def _found(expression: Expr, known: dict[Expr, Range | None]) -> Range | None:
    if isinstance(expression, Constant):
        data = np.asarray(expression.data)
        ends = (float(data.min()), float(data.max())) if data.size and data.dtype.kind in "iuf" else None
        return ends if ends is not None and all(map(isfinite, ends)) else None
    if not isinstance(expression, Call) or not isinstance(expression.op, Op):
        return None
    name, args = expression.op.name, expression.args
    if name == "clip":
        low, high = float(expression.attrs.a_min), float(expression.attrs.a_max)
        return (low, high) if low <= 0 <= high else None  # NaN stays NaN, which becomes 0
    if name in ("argmax", "argmin"):
        return _of_place(expression)
    if name in _MOVES or name == "cast":
        inner = _range(args[0], known)
        return _as_type(expression, inner)
    if name in _ROUNDED:
        inner = _range(args[0], known)
        return None if inner is None else (_ROUNDED[name](inner[0]), _ROUNDED[name](inner[1]))
    if name in _PAIRS:
        pair = [_range(arg, known) for arg in args]
        one, other = pair
        return None if one is None or other is None else _as_type(expression, _PAIRS[name](one, other))
    if name == "where":
        return _union([_range(arg, known) for arg in args[1:]])
    if name == "concatenate" and isinstance(args[0], Tuple):
        return _union([_range(part, known) for part in args[0].fields])
    return None


def _union(ranges: Sequence[Range | None]) -> Range | None:
    if any(each is None for each in ranges):
        return None
    held = [each for each in ranges if each is not None]
    return min(low for low, _ in held), max(high for _, high in held)


def _of_place(call: Call) -> Range | None:
    of, axis = call.args[0].checked_type, call.attrs.axis
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not isinstance(of, TensorType) or not isinstance(axis, int) or call.attrs.exclude:
        return None
    size = of.shape[axis]
    return (0, size - 1) if isinstance(size, int) and size > 0 else None


def _as_type(call: Call, inner: Range | None) -> Range | None:
    """A range that the type of the result holds, where nothing wraps around or is rounded."""
    of = call.checked_type
    if inner is None or not isinstance(of, TensorType):
        return None
    if of.dtype.is_float:
        return inner if of.dtype.bits >= 32 else None
    if not of.dtype.is_int or inner[0] < of.dtype.min_value() or inner[1] > of.dtype.max_value():
        return None
    return inner
