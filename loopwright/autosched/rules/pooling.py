"""pooling: the greatest value or the sum of each window, with the padding before and the work after it.

    out[n, c, y, x] = max(out[n, c, y, x], data[n, c, y * s + i, x * s + j])

A window that covers all of its data (global pooling) is a reduction, and left to that rule. How windows are scheduled
is in `windows/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.windows import Taken, plan_window, taken_with
from loopwright.schedule import Schedule


class Pooling:
    """Takes a window without weights, the padding before it, and the element-wise blocks after it."""

    name = "pooling"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        found = _found(pending, program)
        return found.count if found is not None else 0

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        found = _found(taken, program)
        assert found is not None
        plan_window(sch, found, program, machine, decision)


def _found(pending: Sequence[Entry], program: Program) -> Taken | None:
    found = taken_with(pending, program)
    return found if found is not None and not found.window.weights else None
