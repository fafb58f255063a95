"""Conditions taken apart: what `logical_and` puts together, and the literal that always holds."""

from __future__ import annotations

from loopwright.ir.expr import And, Expr, IntImm
from loopwright.runtime.dtype import BOOL


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that must all hold for `condition` to hold, in order; none when it is the literal true."""
    result, pending = [], [condition]
    while pending:
        item = pending.pop()
        if isinstance(item, And):
            pending += [item.b, item.a]
        elif not (isinstance(item, IntImm) and item.value):
            result.append(item)
    return result


def is_true(condition: Expr) -> bool:
    """Whether the condition is the literal true."""
    return isinstance(condition, IntImm) and condition.value == 1 and condition.dtype is BOOL
