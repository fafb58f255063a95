"""Renaming: an operand of a block and its result with other axes, which are other names for the same numbers.

The operand is copied for it, and so is the result where nothing else is done to it: rules write these copies into the
blocks that use them, or make more of them than a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.program import Entry
from loopwright.autosched.small_steps import operand_of
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule


class Renamed(NamedTuple):
    """The block that copies the operand, and those after the block."""

    operand: BlockRV
    after: Sequence[BlockRV]


def rename(
    sch: Schedule, block: BlockRV, operand: Buffer, as_operand: str, epilogue: Sequence[Entry], as_result: str
) -> Renamed:
    """Give both their layouts; the block's own axes stay as they are, and so does what the caller sees."""
    copy = sch.cache_read(block, operand_of(sch, block, operand), "global", [block])
    sch.transform_layout(copy, ("write", 0), as_operand)
    sch.transform_block_layout(copy, as_operand)
    after = [sch.get_block(entry.name) for entry in epilogue] or [sch.cache_write(block, 0, "global")]
    sch.transform_layout(block, ("write", 0), as_result)
    for step in after:
        if step is not after[-1]:
            sch.transform_layout(step, ("write", 0), as_result)
        sch.transform_block_layout(step, as_result)
    return Renamed(copy, after)
