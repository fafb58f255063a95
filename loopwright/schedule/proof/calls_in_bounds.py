"""Calls in bounds: a loop's bound, a block's binding or guard, a condition that calls something with an effect.

    for i in range(T.call_packed("next")):        called once, when the loop is reached
        with T.block("C"):
            T.where(T.call_packed("more") > 0)    called for each i, and once more for the init

They are no part of what a block computes, so the proof of values does not count them. A step keeps them where they are.
"""

from __future__ import annotations

from collections import Counter

from loopwright.analysis.effects import called_name
from loopwright.analysis.steering_calls import steering_calls
from loopwright.ir import Call, For, Var
from loopwright.schedule.errors import NotProved
from loopwright.schedule.step import Step
from loopwright.schedule.view import Path, View


def check_calls_kept(method: str, view: View, after: View, step: Step) -> None:
    """Refuse a step that makes calls of bounds, bindings and conditions more or less often, or in other loops."""
    before, now = _calls(view), _calls(after)
    for call, _ in (before - now) or (now - before):
        problem = f"{called_name(call)} is called in a bound, a binding or a condition, and would be called elsewhere"
        hint = "bind what it gives to a name before the loops (a let), and use that"
        raise NotProved(method, problem, step.at, hint=hint)


def _calls(view: View) -> Counter[tuple[Call, tuple[Var, ...]]]:
    """The calls with an effect that say what runs around blocks and in loops, each with the loops around it."""
    result: Counter[tuple[Call, tuple[Var, ...]]] = Counter()
    for path in view.index.calling:
        for call in steering_calls(path[-1]):
            result[call, _loops(path[:-1])] += 1
    return result


def _loops(path: Path) -> tuple[Var, ...]:
    return tuple([statement.loop_var for statement in path if isinstance(statement, For)])
