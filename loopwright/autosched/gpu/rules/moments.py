"""moments: a mean and the sum of squared distances from it, of more than L2 holds, in one pass over memory.

The statistics of a batch are such. `gpu/idiom_kernels.py` writes the kernels, once all blocks are scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.idiom_kernels import moments_in
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.moments import moments_of
from loopwright.autosched.gpu.nests import nest_of
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.gpu.row_threads import LONGEST_KEPT
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_blocks import row_run
from loopwright.schedule import Schedule


class MeanAndSquares:
    """Takes a sum, the mean that it is divided into, and the sum of squared distances from it."""

    name = "moments"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        first = pending[:3]
        moments = moments_of([entry.realize for entry in first]) if len(first) == 3 else None
        if moments is None:
            return 0
        # A row that a block keeps is normalised by the same block.
        return 0 if moments.members <= LONGEST_KEPT and row_run(first) == 3 else 3

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        nests = [nest_of(program.function, entry) for entry in entries]
        if moments_in([nest for nest in nests if nest is not None], machine) is None:
            raise NotWorthIt("two passes over what L2 holds take no longer")
        why = "parts are in registers for their mean and their squares, so memory is read once"
        decision.chose("kernels of their own", why, ChoiceKind.NO_STEPS)
        note_roofline(decision, [entry.facts for entry in entries if entry.facts is not None], machine)
