"""Loops by where they are: those inside a place, the one that moves an axis; and a loop as vectors."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import uses_var
from loopwright.schedule import BlockRV, LoopRV, Schedule


def vectors(sch: Schedule, loop: LoopRV, lanes: int, unrolled: bool = False) -> None:
    """A loop as a loop over vectors, written out if so wanted."""
    outer, lane = sch.split(loop, [None, lanes])
    if unrolled:
        sch.unroll(outer)
    sch.vectorize(lane)


def loops_below(sch: Schedule, block: BlockRV, place: LoopRV) -> list[LoopRV]:
    """The loops around a block that are inside `place`."""
    loops = sch.get_loops(block)
    return loops[[loop.var for loop in loops].index(place.var) + 1 :]


def loop_of_axis(sch: Schedule, block: BlockRV, axis: int, among: Sequence[LoopRV]) -> LoopRV | None:
    """The innermost of these loops that moves the block's axis of that number; None when none does."""
    value = sch.view().realize(block.key).iter_values[axis]
    for loop in reversed(among):
        if uses_var(value, lambda var, own=loop.var: var is own):  # type: ignore[misc]
            return loop
    return None
