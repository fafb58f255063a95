"""Terms: values that are not computed but written down. Two equal terms are one object.

    A[0, 1] * B[1, 2]                     an operation on two input cells
    reduce(0.0; □ + A[0], □ + A[1])       a start value and a *multiset* of updates: their order does not matter

A term that still has holes (□, the cell's value before the update) is *open*; it never leaves the evaluator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from loopwright.evaluator.values import Value
from loopwright.ir import deep
from loopwright.runtime.dtype import DataType


class Term:
    """An operation on terms, an input cell, a literal, a hole or a reduction; made by `make` only."""

    __slots__ = ("__weakref__", "args", "data", "dtype", "is_open", "number", "op")

    def __init__(self, op: str, dtype: DataType, args: tuple[Term, ...], data: Any, number: int) -> None:
        self.op, self.dtype, self.args, self.data, self.number = op, dtype, args, data, number
        # A reduction's updates have holes of their own, which it closes.
        self.is_open: bool = op == "hole" or (op != "reduce" and any(arg.is_open for arg in args))

    def __repr__(self) -> str:
        return text(self)


# Weak, so that terms live as long as someone holds them; the number orders them by age.
_table: Final[WeakValueDictionary[tuple[Hashable, ...], Term]] = WeakValueDictionary()
_numbers: Final = itertools.count()

# a op b and b op a are the same value, also for NaN and signed zeros (docs/semantics.md).
_COMMUTES: Final = frozenset({"Add", "Mul", "Min", "Max", "EQ", "NE", "bitwise_and", "bitwise_or", "bitwise_xor"})


def make(op: str, dtype: DataType, args: Sequence[Term] = (), data: Hashable = None) -> Term:
    """The one term with this operation, type, arguments and data."""
    numbers = [arg.number for arg in args]
    if op in _COMMUTES:
        numbers.sort()
    key = (op, dtype, data, *numbers)
    result = _table.get(key)
    if result is None:
        result = _table[key] = Term(op, dtype, tuple(args), data, next(_numbers))
    return result


def as_term(value: Value, dtype: DataType) -> Term:
    """A number as a literal of that type; a term as itself."""
    if type(value) is Term:
        return value
    if dtype.is_float:
        return make("literal", dtype, (), float(value).hex())  # unlike ==, tells -0.0 from 0.0 and NaN from nothing
    return make("literal", dtype, (), int(value))


def symbol(name: str, indices: tuple[int, ...], dtype: DataType) -> Term:
    """An input cell."""
    return make("cell", dtype, (), (name, indices))


def hole(cell: Hashable, dtype: DataType) -> Term:
    """The value of a cell before an update."""
    return make("hole", dtype, (), cell)


def fill(term: Term, value_of: Callable[[Any], Term], memo: dict[int, Term] | None = None) -> Term:
    """`term` with each hole replaced by `value_of(its cell)`."""
    if not term.is_open:
        return term
    if memo is None:
        memo = {}
    result = memo.get(term.number)
    if result is None:
        if term.op == "hole":
            result = value_of(term.data)
        else:
            result = make(term.op, term.dtype, [fill(arg, value_of, memo) for arg in term.args], term.data)
        memo[term.number] = result
    return result


def holes(term: Term) -> set[Any]:
    """The cells whose holes the term has."""
    result: set[Any] = set()
    seen: set[int] = set()
    pending = [term]
    while pending:
        item = pending.pop()
        if item.is_open and item.number not in seen:
            seen.add(item.number)
            if item.op == "hole":
                result.add(item.data)
            pending += item.args
    return result


_SIGNS: Final = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "FloorDiv": "//",
    "FloorMod": "%",
    "EQ": "==",
    "NE": "!=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "And": "and",
    "Or": "or",
}


@deep
def text(term: Term, limit: int = 400) -> str:
    """The term in words, cut at `limit` characters."""
    written = _text(term, [limit])
    return written if len(written) <= limit else written[: limit - 1] + "…"


def _text(term: Term, room: list[int]) -> str:
    room[0] -= 1
    if room[0] < 0:
        return "…"
    if term.op == "literal":
        return str(float.fromhex(term.data) if term.dtype.is_float else term.data)
    if term.op == "cell":
        name, indices = term.data
        return f"{name}[{', '.join([str(index) for index in indices])}]" if indices is not None else name
    if term.op == "hole":
        return "□" if not isinstance(term.data, int) or term.data == 0 else f"□{term.data}"
    parts = [_text(arg, room) for arg in term.args]
    if term.op == "reduce":
        field, width = term.data
        bases, updates = parts[:width], parts[width:]
        groups = [", ".join(updates[k : k + width]) for k in range(0, len(updates), width)]
        joined = ", ".join(sorted(groups) if width == 1 else [f"({group})" for group in sorted(groups)])
        return f"reduce({', '.join(bases)}; {joined})" + (f"[{field}]" if width > 1 else "")
    if term.op in _SIGNS:
        return f"({parts[0]} {_SIGNS[term.op]} {parts[1]})"
    if term.op == "Cast":
        return f"{term.dtype}({parts[0]})"
    return f"{term.op}({', '.join(parts)})"
