"""Schedules by rule: fast code with no measurement, as a trace of ordinary proved steps.

Start with `apply.py` (the walk over a program), then `rule.py` (what a rule is), `rules/` (one file each), `facts.py`
(what rules know about a block) and `machine.py` (the numbers of the cost model).
"""

from loopwright.autosched.apply import Plan, apply
from loopwright.autosched.decision import Choice, Decision, Roofline
from loopwright.autosched.machine import Machine
from loopwright.autosched.rule import Rule
from loopwright.autosched.rules import RULES

__all__ = ["RULES", "Choice", "Decision", "Machine", "Plan", "Roofline", "Rule", "apply"]
