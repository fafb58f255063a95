"""depthwise: convolutions of each channel by windows of its own, with the padding before and the work after them.

    out[n, c, y, x] += data[n, c, y * s + i, x * s + j] * weight[c, i, j]

There is no sum over channels, so few operations for each number that is read: what counts is that a number which is
loaded serves all windows that see it. How windows are scheduled is in `sliding_window/`.

A convolution of one input channel is such a window too, and also one for vectors of output channels: where windows
move by several cells or lines are short these take less time (`convolution/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.convolution import direct_cycles
from loopwright.autosched.rules.sliding_window import WindowRule, sliding_cycles
from loopwright.schedule import Schedule

CLEARLY: Final = 0.85  # of the time: what is counted is not so sure


class Depthwise(WindowRule):
    """Takes a window with weights, the padding before it, and the element-wise blocks after it."""

    name = "depthwise convolution"
    has_weights = True

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        found = self._found(entries, program)
        assert found is not None
        direct = direct_cycles(found.window.facts, machine, pads=found.padding is not None)
        if direct is not None and direct < CLEARLY * sliding_cycles(found, machine):
            raise NotWorthIt("vectors of output channels take less time than vectors along the movement")
        super().schedule(sch, entries, program, machine, decision)
