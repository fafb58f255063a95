"""Rule: what a scheduling rule is.

A rule looks at the blocks that are still to be scheduled, takes as many of the first ones as it can do together (a
product and the element-wise work after it; the five blocks of a softmax), and schedules them with ordinary steps. A
step that the engine refuses ends the rule for these blocks, and all it did to them is undone; the next rule is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.schedule import Schedule


class Rule(Protocol):
    """How blocks of some kind are scheduled."""

    name: str

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        """How many of the first pending blocks this rule schedules together; 0 when the first is not for it."""

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        """Schedule them, and note in `decision` what was chosen and why."""
