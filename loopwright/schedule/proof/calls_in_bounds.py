"""Calls in bounds: a loop's bound, a block's binding or guard, a condition that calls something with an effect.

    for i in range(T.call_packed("next")):        called once, when the loop is reached
        with T.block("C"):
            T.where(T.call_packed("more") > 0)    called for each i, and once more for the init

They are no part of what a block computes, so the proof of values does not count them. A step keeps them where they are.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from loopwright.analysis.effects import called_name, is_pure_call
from loopwright.ir import (
    BlockRealize,
    Call,
    Expr,
    For,
    IfThenElse,
    IntImm,
    PrimFunc,
    Var,
    Visitor,
    While,
    collect,
    deep,
)
from loopwright.schedule.errors import NotProved
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def check_calls_kept(method: str, view: View, step: Step) -> None:
    """Refuse a step that makes calls of bounds, bindings and conditions more or less often, or in other loops."""
    before, after = _calls(view.function), _calls(step.after)
    changed = (before - after) or (after - before)
    for call, _ in changed:
        problem = f"{called_name(call)} is called in a bound, a binding or a condition, and would be called elsewhere"
        raise NotProved(method, problem, step.at)


@lru_cache(maxsize=64)
@deep
def _calls(function: PrimFunc) -> Counter[tuple[Call, tuple[Var, ...]]]:
    walk = _Walk()
    walk.visit(function.body)
    return walk.found


class _Walk(Visitor):
    """The calls with an effect that say what runs, each with the loops around it."""

    def __init__(self) -> None:
        self.around: list[Var] = []
        self.found: Counter[tuple[Call, tuple[Var, ...]]] = Counter()

    def _look(self, expr: Expr) -> None:
        if not isinstance(expr, IntImm | Var):
            for call in collect(expr, Call):
                if not is_pure_call(call):
                    self.found[call, tuple(self.around)] += 1

    def visit_For(self, loop: For) -> None:
        self._look(loop.min)
        self._look(loop.extent)
        self.around.append(loop.loop_var)
        self.visit(loop.body)
        self.around.pop()

    def visit_While(self, loop: While) -> None:
        self._look(loop.condition)
        self.visit(loop.body)

    def visit_IfThenElse(self, choice: IfThenElse) -> None:
        self._look(choice.condition)
        self.visit(choice.then_case)
        if choice.else_case is not None:
            self.visit(choice.else_case)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        for expr in (*realize.iter_values, realize.predicate):
            self._look(expr)
        self.visit(realize.block.body)

    def visit_Expr(self, expr: Expr) -> None:
        """What a block computes is compared by its values, and by what it calls."""
