"""What is known about the values of atoms at one point of a program, with cheap scopes.

Every change is written to a log, so that leaving a scope costs as much as entering it did and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from loopwright.arith.linear import Terms
from loopwright.ir import Expr, Var

_ABSENT: Final = object()

Interval = tuple[int, int]
Mark = tuple[int, list[tuple[Terms, int]], int]


class Facts:
    """Intervals, substitutions, remainders, linear inequalities and truths that hold here."""

    __slots__ = ("_log", "linear", "modular", "ranges", "truths", "values")

    def __init__(self) -> None:
        self.ranges: dict[Expr, Interval] = {}  # atom → least and greatest value
        self.values: dict[Var, Expr] = {}  # variable → what stands for it
        self.modular: dict[Expr, tuple[int, int]] = {}  # atom → (m, b): atom ≡ b modulo m
        self.linear: list[tuple[Terms, int]] = []  # (terms, bound): the sum of the terms is at most bound
        self.truths: dict[Hashable, bool] = {}  # structural key of a condition → whether it holds
        self._log: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[Any, Any], key: object, value: object) -> None:
        """`table[key] = value`, until the scope ends."""
        self._log.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def narrow(self, atom: Expr, low: int, high: int) -> None:
        """Intersect what is known of `atom`; a contradiction (code that never runs) teaches nothing."""
        known = self.ranges.get(atom)
        if known is not None:
            low, high = max(low, known[0]), min(high, known[1])
        if low <= high and known != (low, high):
            self.put(self.ranges, atom, (low, high))

    def drop(self, var: Var) -> None:
        """Forget what is known about `var`, until the scope ends."""
        tables: tuple[dict[Any, Any], ...] = (self.ranges, self.values, self.modular)
        for table in tables:
            if var in table:
                self._log.append((table, var, table.pop(var)))
        if any(var in terms for terms, _ in self.linear):
            self.linear = [(terms, bound) for terms, bound in self.linear if var not in terms]

    def mark(self) -> Mark:
        """Where we are; give it to `undo` to forget all that was learnt since."""
        return len(self._log), self.linear, len(self.linear)

    def undo(self, mark: Mark) -> None:
        log = self._log
        size, self.linear, count = mark
        del self.linear[count:]
        while len(log) > size:
            table, key, old = log.pop()
            if old is _ABSENT:
                del table[key]
            else:
                table[key] = old
