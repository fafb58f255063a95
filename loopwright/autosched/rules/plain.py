"""plain: a block that no other rule knows stays as it is written."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.schedule import Schedule


class Plain:
    """Takes every block, and changes nothing."""

    name = "left as written"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return 1

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        if taken[0].facts is None:
            decision.chose("no steps", "its loops are not the block's axes one by one, or its body is no single store")
        else:
            decision.chose("no steps", "no rule is made for what it computes")
