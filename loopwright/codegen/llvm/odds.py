"""odds_of: which side of a choice is nearly always taken.

    for k in range(n):
        best[i] = T.Select(best[i] > A[i, k], best[i], A[i, k])        a new best is rare: the old one stays

An argmax as selects is a chain: each iteration waits for the comparisons of the one before. As a branch that is nearly
always predicted it waits for nothing, and runs five times as fast.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from loopwright import ir

KEPT: Final = (2000, 1)
REPLACED: Final = (1, 2000)


def odds_of(
    condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr, carried: Collection[ir.Var]
) -> tuple[int, int] | None:
    """How often the first and the second value are taken; None where nothing is known.

    `carried` is the memory that the loop around updates in place. A running extremum compares a cell of it, and keeps
    that cell or another one of the same record.
    """
    if not carried or condition.dtype.lanes != 1 or not _compares(condition, carried):
        return None
    keeps = _is_carried(then, carried)
    if keeps == _is_carried(otherwise, carried):
        return None
    return KEPT if keeps else REPLACED


def _compares(condition: ir.Expr, carried: Collection[ir.Var]) -> bool:
    """Whether the condition orders a carried cell against a value that is none."""
    if isinstance(condition, (ir.And, ir.Or)):
        return _compares(condition.a, carried) or _compares(condition.b, carried)
    if not isinstance(condition, (ir.LT, ir.LE, ir.GT, ir.GE)):
        return False
    return _is_carried(condition.a, carried) != _is_carried(condition.b, carried)


def _is_carried(expr: ir.Expr, carried: Collection[ir.Var]) -> bool:
    return isinstance(expr, ir.BufferLoad) and expr.buffer.data in carried
