"""Small steps: what several rules do to loops and blocks, and ask about them, in one word each."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import BlockFacts, const
from loopwright.ir import Buffer, Expr, Var, uses_var
from loopwright.schedule import BlockRV, LoopRV, Schedule


def vectors(sch: Schedule, loop: LoopRV, lanes: int, unrolled: bool = False) -> None:
    """A loop as a loop over vectors, written out if so wanted."""
    outer, lane = sch.split(loop, [None, lanes])
    if unrolled:
        sch.unroll(outer)
    sch.vectorize(lane)


def fused(sch: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """Loops directly in one another as one; a single one stays as it is."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def sink_result(sch: Schedule, block: BlockRV) -> None:
    """Allocate what a block writes as far in as its values allow."""
    sch.sink_alloc(block, sch.get(block).writes[0].buffer.name)


def extent_of(sch: Schedule, loop: LoopRV) -> int | None:
    """How many iterations a loop has; None where that is known only when the program runs."""
    return const(sch.get(loop).extent)


def loops_by_axis(sch: Schedule, block: BlockRV, facts: BlockFacts) -> dict[Var, LoopRV]:
    """The loops of a plain block that nothing was done to yet, by the axes that they are."""
    return dict(zip([axis.var for axis in facts.axes], sch.get_loops(block), strict=True))


def loops_below(sch: Schedule, block: BlockRV, location: LoopRV) -> list[LoopRV]:
    """The loops around a block that are inside `location`."""
    loops = sch.get_loops(block)
    return loops[[loop.var for loop in loops].index(location.var) + 1 :]


def loop_of_axis(sch: Schedule, block: BlockRV, axis: int, among: Sequence[LoopRV]) -> LoopRV | None:
    """The innermost of these loops that moves the block's axis of that number; None when none does."""
    value = sch.view().realize(block.key).iter_values[axis]
    for loop in reversed(among):
        if uses_var(value, lambda var, own=loop.var: var is own):  # type: ignore[misc]
            return loop
    return None


def operand_of(sch: Schedule, block: BlockRV, buffer: Buffer) -> int:
    """Which of the buffers that a block reads this one is."""
    return [region.buffer for region in sch.get(block).reads].index(buffer)


def join_dimensions(sch: Schedule, block: BlockRV, count: int) -> None:
    """The last dimensions of what the block writes become one.

    A tile of several dimensions taken as one is no box, and memory is as large as the box around what is used.
    """
    sizes = sch.get(block).writes[0].buffer.shape[-count:]

    def joined(*indices: Expr) -> list[Expr]:
        result = indices[-count]
        for index, size in zip(indices[len(indices) - count + 1 :], sizes[1:], strict=True):
            result = result * size + index
        return [*indices[:-count], result]

    sch.transform_layout(block, ("write", 0), joined)
