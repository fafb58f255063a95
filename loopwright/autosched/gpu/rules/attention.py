"""attention: what `topi.nn.attention` writes, by tensor cores. `gpu/idiom_kernels.py` writes the kernel.

The loops stay as they are until all blocks are scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.attention import ATTENTION
from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.idiom_kernels import attention_in
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.program import Entry, Program
from loopwright.schedule import Schedule


class FusedAttention:
    """Takes one block that is nothing but attention."""

    name = "attention"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return int(ATTENTION in (pending[0].realize.block.annotations or {}))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        found = attention_in(entries[0].realize.block, machine)
        if found is None:
            raise NotWorthIt("there is no kernel for such attention, or not on this GPU")
        _, plan = found
        why = "scores and weights stay in registers, tensor cores multiply, other warps load"
        decision.chose("a kernel of its own", why, ChoiceKind.NO_STEPS)
        tiles = f"{plan.queries} queries × {plan.keys} keys"
        count = f"{plan.groups} warpgroups of 64 queries, {plan.stages} tiles of keys and of values in shared memory"
        decision.chose(f"tiles of {tiles}", count, ChoiceKind.TILES)
