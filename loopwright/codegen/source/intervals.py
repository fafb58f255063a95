"""Intervals: which values an integer expression can take, where that is plain from literals and loop bounds.

C leaves signed overflow undefined, so arithmetic that may wrap around is written with functions that wrap. Where the
interval shows that nothing wraps, `i * 16 + j` is written as it stands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.ir.visitor import Visitor
from loopwright.runtime.dtype import DataType

Interval = tuple[int, int]

_MONOTONE: Final[dict[type, Callable[[int, int], int]]] = {
    ir.Add: operator.add,
    ir.Sub: operator.sub,
    ir.Mul: operator.mul,
    ir.Min: min,
    ir.Max: max,
}


class Intervals(Visitor):
    """The interval of every integer expression, as far as it is known; found once an object until `forget`."""

    def __init__(self) -> None:
        self._ranges: dict[ir.Var, Interval] = {}
        self._known: dict[ir.Expr, Interval] = {}

    def bind(self, var: ir.Var, interval: Interval) -> None:
        """`var` has values of that interval from here on."""
        if var in self._ranges:
            self._known = {}
        self._ranges[var] = interval

    def forget(self) -> None:
        """Drop what was computed, not what was bound."""
        self._known = {}

    def of(self, expr: ir.Expr) -> Interval:
        """The values `expr` can take: all of its type where nothing else is known."""
        result = self._known.get(expr)
        if result is None:
            interval = self.raw(expr)
            whole = _whole(expr.dtype)
            if interval is None or interval[0] < whole[0] or interval[1] > whole[1]:
                interval = whole
            result = self._known[expr] = interval
        return result

    def fits(self, expr: ir.Expr) -> bool:
        """Whether the operation gives its exact result, without wrapping around."""
        interval, whole = self.raw(expr), _whole(expr.dtype)
        return interval is not None and interval[0] >= whole[0] and interval[1] <= whole[1]

    def raw(self, expr: ir.Expr) -> Interval | None:
        """The exact results of the operation on operands of their intervals; None when unknown."""
        result: Interval | None = self._table[type(expr)](self, expr)
        return result

    def visit_children(self, node: ir.Node) -> Interval | None:
        return None

    def visit_IntImm(self, imm: ir.IntImm) -> Interval:
        return imm.value, imm.value

    def visit_Var(self, var: ir.Var) -> Interval | None:
        return self._ranges.get(var)

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> Interval | None:
        if not node.dtype.is_int:
            return None
        a, b = self.of(node.a), self.of(node.b)
        combine = _MONOTONE.get(type(node))
        if combine is not None:
            ends = [combine(x, y) for x in a for y in b]
            return min(ends), max(ends)
        if b[0] <= 0:
            return None
        if isinstance(node, ir.FloorDiv) or (isinstance(node, ir.Div) and a[0] >= 0):
            ends = [x // y for x in a for y in b]
            return min(ends), max(ends)
        if isinstance(node, ir.FloorMod) or (isinstance(node, ir.Mod) and a[0] >= 0):
            return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1
        return None

    def visit_Cast(self, node: ir.Cast) -> Interval | None:
        source = node.value.dtype
        return self.of(node.value) if (source.is_int or source.is_bool) and node.dtype.is_int else None

    def visit_Select(self, node: ir.Select) -> Interval | None:
        return self._either(node.true_value, node.false_value)

    def visit_Call(self, call: ir.Call) -> Interval | None:
        name = call.op.name
        if name == "tir.if_then_else":
            return self._either(call.args[1], call.args[2])
        if name == "tir.bitwise_and" and call.dtype.is_int:
            masks = [high for low, high in map(self.of, call.args) if low >= 0]
            return (0, min(masks)) if masks else None
        return None

    def _either(self, a: ir.Expr, b: ir.Expr) -> Interval | None:
        if not a.dtype.is_int:
            return None
        (low_a, high_a), (low_b, high_b) = self.of(a), self.of(b)
        return min(low_a, low_b), max(high_a, high_b)


def _whole(dtype: DataType) -> Interval:
    return dtype.lowest, dtype.highest
