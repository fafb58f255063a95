"""Schedules by rule: fast code with no measurement, as a trace of ordinary proved steps.

Start with `apply.py` (the walk over a program), then `rule.py` (what a rule is, and how rules are tried), `rules/` (a
file or folder each), `facts.py` and `streams.py` (what rules know about a block), `machine.py` and `nest_cost.py` (the
cost model). Rules are made of parts that they share: `small_steps.py`, `layouts.py`, `parallelize.py` (threads),
`lanes.py`, `column_reduction.py`, `row_nest.py` (reductions) and `prefetch.py` (prefetching).
"""

from typing import TYPE_CHECKING

from loopwright.autosched.apply import Plan, apply
from loopwright.autosched.decision import Choice, Decision, Roofline
from loopwright.autosched.machine import Machine
from loopwright.autosched.rule import Rule
from loopwright.autosched.rules import RULES
from loopwright.runtime.guesses import pointing as _pointing

__all__ = ["RULES", "Choice", "Decision", "Machine", "Plan", "Roofline", "Rule", "apply"]

if not TYPE_CHECKING:  # mypy would believe in every name
    __getattr__ = _pointing(
        __name__,
        {
            "explain": "write autosched.apply(function).explain()",
            "plan": "write autosched.apply(function), which gives a Plan",
            "schedule": "write autosched.apply(function).schedule",
            "tune": "write loopwright.tune(function, trials=64), which begins with what autosched.apply(function) does",
        },
    )
