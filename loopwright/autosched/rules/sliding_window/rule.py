"""WindowRule: what the rules for windows do; they differ in whether a window has weights."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.sliding_window.fused_blocks import Taken, taken_with
from loopwright.autosched.rules.sliding_window.plan import plan_window
from loopwright.schedule import Schedule


class WindowRule:
    """Takes a window, the padding before it, and the element-wise blocks after it."""

    name: str
    has_weights: bool

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        found = self._found(pending, program)
        return found.count if found is not None else 0

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        found = self._found(taken, program)
        assert found is not None
        plan_window(sch, found, program, machine, decision)

    def _found(self, pending: Sequence[Entry], program: Program) -> Taken | None:
        found = taken_with(pending, program)
        return found if found is not None and bool(found.window.weights) is self.has_weights else None
