"""depthwise: convolutions of each channel by windows of its own, with the padding before and the work after them.

    out[n, c, y, x] += data[n, c, y * s + i, x * s + j] * weight[c, i, j]

There is no sum over channels, so few operations for each number that is read: what counts is that a number which is
loaded serves all windows that see it. How windows are scheduled is in `windows/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.windows import Taken, plan_window, taken_with
from loopwright.schedule import Schedule


class Depthwise:
    """Takes a window with weights, the padding before it, and the element-wise blocks after it."""

    name = "depthwise convolution"

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
    return found if found is not None and found.window.weights else None
