"""Steering calls: those with an effect in what says whether and how often a statement runs.

    for i in range(T.call_packed("next")):        a bound
        with T.block("C"):
            T.where(T.call_packed("more") > 0)    a guard, or a binding

They are no part of what a block computes, and are made where the loop or the block is reached.
"""

from __future__ import annotations

from functools import lru_cache

from loopwright.analysis.effects import is_pure_call
from loopwright.ir import BlockRealize, Call, Expr, For, IfThenElse, IntImm, Stmt, Var, While, collect


def steering_calls(statement: Stmt) -> tuple[Call, ...]:
    """The calls with an effect in the bounds of a loop, the bindings and the guard of a block, or a condition."""
    if isinstance(statement, For):
        parts: tuple[Expr, ...] = (statement.min, statement.extent)
    elif isinstance(statement, BlockRealize):
        parts = (*statement.iter_values, statement.predicate)
    elif isinstance(statement, IfThenElse | While):
        parts = (statement.condition,)
    else:
        return ()
    return tuple([call for part in parts if not isinstance(part, IntImm | Var) for call in _calls_in(part)])


@lru_cache(maxsize=8192)  # most steps change few of them
def _calls_in(expr: Expr) -> tuple[Call, ...]:
    return tuple([call for call in collect(expr, Call) if not is_pure_call(call)])
