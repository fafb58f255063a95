"""commuting_terms: whether two updates of the same cells may change places, found out by trying small values.

    □ + x  and  □ + y            yes
    □ + x  and  □ + □ * y        no
    □ * 2 + x  and  □ * 2 + y    no

What does not depend on the cells is a variable here, so one answer holds for all updates of one shape. An operation
that small values do not show, between a cell and the result, makes the answer no. The proofs of schedules decide the
same question from programs (`analysis/commuting_updates.py`); this is what they are tested against, and shares nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.evaluator.term import Term
from loopwright.runtime.dtype import DataType

# The term of a field: ("cell", k, dtype), ("given", k, dtype), or (operation, dtype, arguments…).
Pattern: TypeAlias = tuple[Any, ...]
Shape: TypeAlias = tuple[Pattern, ...]  # one entry a field
Name: TypeAlias = tuple[str, int] | tuple[str, int, int]  # of a variable: ("cell", k), ("given", update, k)

_WHOLE: Final = (-2, -1, 0, 1, 3)  # tells polynomials of degree 4 apart, and orders of five
_FLOATS: Final = (float("nan"), -2.0, -1.0, -0.0, 0.0, 1.0, 3.0)
_POINTS: Final = 1 << 18


def _least(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _extreme(a, b, lambda x, y: (x < y) | ((x == y) & np.signbit(x)))


def _greatest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _extreme(a, b, lambda x, y: (x > y) | ((x == y) & ~np.signbit(x)))


def _extreme(a: np.ndarray, b: np.ndarray, better: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    result = np.where(better(a, b), a, b)
    return np.where(np.isnan(a) | np.isnan(b), np.nan, result) if result.dtype.kind == "f" else result


_ARITHMETIC: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "fma": lambda x, y, z: x * y + z,
}
_ORDER: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "Min": _least,
    "Max": _greatest,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "isnan": np.isnan,
}
_CHOICE: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "Select": np.where,
    "if_then_else": np.where,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Not": np.logical_not,
}
_BITS: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
}
_KNOWN: Final = {**_ARITHMETIC, **_ORDER, **_CHOICE, **_BITS}


def shape_of(update: Sequence[Term]) -> Shape | None:
    """The shape of an update, one term a field, its holes numbered; None where an operation is not known."""
    given: dict[int, int] = {}

    def look(term: Term) -> Pattern:
        if not term.is_open:
            return ("given", given.setdefault(term.number, len(given)), term.dtype)
        if term.op == "hole":
            return ("cell", term.data, term.dtype)
        args = [look(arg) for arg in term.args]
        if term.op not in _KNOWN and term.op != "Cast":
            raise _Unknown
        return (term.op, term.dtype, *args)

    try:
        shape = tuple([look(term) for term in update])
    except _Unknown:
        return None
    return shape if _is_tried_well(shape) else None


class _Unknown(Exception):
    """An operation that is not known stands between a cell and the result."""


def _is_tried_well(shape: Shape) -> bool:
    """Small values tell nothing about casts that wrap or round, other than under sums and products."""
    used: set[str] = set()
    casts: list[tuple[DataType, DataType]] = []
    cells: list[DataType] = []

    def look(item: Pattern) -> None:
        if item[0] == "cell":
            cells.append(item[2])
        elif item[0] == "Cast":
            casts.append((item[2][1] if item[2][0] not in ("cell", "given") else item[2][2], item[1]))
        elif item[0] != "given":
            used.add(item[0])
        if item[0] not in ("cell", "given"):
            for arg in item[2:]:
                look(arg)

    for item in shape:
        look(item)
    if not casts:
        return True
    if not used <= {*_ARITHMETIC, "Select", "if_then_else"}:
        return False
    bits = max([dtype.bits for dtype in cells])
    for pair in casts:
        if all([dtype.is_float for dtype in pair]):
            continue
        if not all([dtype.is_int and dtype.bits >= bits for dtype in pair]):
            return False
    return True


@lru_cache(maxsize=4096)
def commute(one: Shape, other: Shape) -> bool:
    """Whether updates of the two shapes give the same in either order, whatever is given to each."""
    cells, given = _variables(one, 0)
    more_cells, more = _variables(other, 1)
    cells |= more_cells
    dtypes = {**cells, **given, **more}
    counts = {name: len(_values(dtype)) for name, dtype in dtypes.items()}
    if np.prod([float(count) for count in counts.values()]) > _POINTS:
        return False
    known: dict[Name, np.ndarray] = {}
    for axis, (name, dtype) in enumerate(dtypes.items()):
        along = [1] * len(dtypes)
        along[axis] = -1
        known[name] = np.array(_values(dtype)).reshape(along)
    # Cells that neither touches are missing; those that only one reads keep their value.
    first = _applied(other, 1, {**known, **_applied(one, 0, known)})
    second = _applied(one, 0, {**known, **_applied(other, 1, known)})
    with np.errstate(all="ignore"):
        return all([_same(first[cell], second[cell]) for cell in first])


def _variables(shape: Shape, number: int) -> tuple[dict[Name, DataType], dict[Name, DataType]]:
    cells: dict[Name, DataType] = {}
    given: dict[Name, DataType] = {}

    def look(item: Pattern) -> None:
        if item[0] == "cell":
            cells["cell", item[1]] = item[2]
        elif item[0] == "given":
            given["given", number, item[1]] = item[2]
        else:
            for arg in item[2:]:
                look(arg)

    for item in shape:
        look(item)
    return cells, given


def _values(dtype: DataType) -> Sequence[float]:
    if dtype.is_bool:
        return (False, True)
    return _FLOATS if dtype.is_float else _WHOLE


def _applied(shape: Shape, number: int, known: Mapping[Name, np.ndarray]) -> dict[Name, np.ndarray]:
    """The cells after an update."""

    def value(item: Pattern) -> np.ndarray:
        if item[0] == "cell":
            return known["cell", item[1]]
        if item[0] == "given":
            return known["given", number, item[1]]
        args = [value(arg) for arg in item[2:]]
        return args[0] if item[0] == "Cast" else _KNOWN[item[0]](*args)

    with np.errstate(all="ignore"):
        return {("cell", k): value(item) for k, item in enumerate(shape)}


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.all(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))))
