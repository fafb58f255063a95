"""WindowRule: what the rules for windows do; they differ in whether a window has weights."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.sliding_window.fused_blocks import MatchedBlocks, match_with_fused
from loopwright.autosched.rules.sliding_window.plan import plan_window
from loopwright.schedule import Schedule


class WindowRule:
    """Takes a window, the padding before it, and the element-wise blocks after it."""

    name: str
    has_weights: bool

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        result = self._found(pending, program)
        return result.count if result is not None else 0

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        result = self._found(entries, program)
        assert result is not None
        plan_window(sch, result, program, machine, decision)

    def _found(self, pending: Sequence[Entry], program: Program) -> MatchedBlocks | None:
        result = match_with_fused(pending, program)
        return result if result is not None and bool(result.window.weights) is self.has_weights else None
