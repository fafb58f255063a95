"""Schedules by rule: fast code with no measurement, as a trace of ordinary proved steps.

Start with `schedule_program.py` (the walk over a program), then `rule.py` (what a rule is, and how rules are tried),
`rules/` (a file or folder each), `facts.py` and `streams.py` (what rules know about a block), `machine.py` and
`nest_cost.py` (the cost model). Rules are made of parts that they share: `small_steps.py`, `layouts.py`,
`parallelize.py` (threads), `lanes.py`, `column_reduction.py`, `row_nest.py` (reductions) and `prefetch.py`
(prefetching). Names load when first used: who asks what a Decision is needs no rules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loopwright.runtime.guesses import pointing as _pointing

if TYPE_CHECKING:
    from loopwright.autosched.decision import Choice, Decision, Roofline
    from loopwright.autosched.machine import Machine
    from loopwright.autosched.rule import Rule
    from loopwright.autosched.rules import RULES
    from loopwright.autosched.schedule_program import Plan, apply

# Public name → module that holds it.
_HOMES = {
    "loopwright.autosched.decision": "Choice Decision Roofline",
    "loopwright.autosched.machine": "Machine",
    "loopwright.autosched.rule": "Rule",
    "loopwright.autosched.rules": "RULES",
    "loopwright.autosched.schedule_program": "Plan apply",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["RULES", "Choice", "Decision", "Machine", "Plan", "Roofline", "Rule", "apply"]

_no_such_name = _pointing(
    __name__,
    {
        "explain": "write autosched.apply(function).explain()",
        "plan": "write autosched.apply(function), which gives a Plan",
        "schedule": "write autosched.apply(function).schedule",
        "tune": "write loopwright.tune(function, trials=64), which begins with what autosched.apply(function) does",
    },
)

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            return _no_such_name(name)
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
