"""What stands around a block of a rule: the element-wise block that makes its data, and those that read its result.

P[y, x] = if_then_else(…, X[y - 1, x - 1], 0)      is made for the next block alone: scheduled inside its loops
C[y, x] += P[y + i, x + j] * W[i, j]
D[y, x] = exp(C[y, x] + bias[x])                   runs tile by tile, while C's tile is still in registers or near
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, BlockFacts, const
from loopwright.autosched.program import Entry, Program
from loopwright.ir import Expr, structural_equal


def is_made_for(entry: Entry, reader: Entry, program: Program) -> bool:
    """Whether a block is element-wise, and nothing but `reader` sees what it makes."""
    facts = entry.facts
    if facts is None or not facts.is_injective or len(facts.stores) != 1:
        return False
    buffer = facts.write.buffer
    if program.is_output(buffer) or len(program.writers(buffer)) != 1:
        return False
    return program.is_read_by(buffer, reader)


def epilogue_length(pending: Sequence[Entry], program: Program) -> int:
    """How many blocks after the first are its epilogue: each reads what the one before it wrote, cell by cell."""
    length = 0
    while length + 1 < len(pending) and _follows(pending[length], pending[length + 1], program):
        length += 1
    return length


def _follows(entry: Entry, after: Entry, program: Program) -> bool:
    producer, consumer = entry.facts, after.facts
    if producer is None or consumer is None or not consumer.is_injective or len(consumer.stores) != 1:
        return False
    buffer = producer.write.buffer
    if not program.is_read_by(buffer, after):
        return False
    reads = [access for access in consumer.reads if access.buffer is buffer]
    return bool(reads) and all(
        _is_cell_by_cell(producer, consumer) and _is_own_cell(access, consumer) for access in reads
    )


def _is_own_cell(access: Access, consumer: BlockFacts) -> bool:
    """Whether a read is of the cell that the block writes; an axis of one value may stand there as the number 0."""
    pairs = zip(access.indices, consumer.axes, strict=True)
    return all(index is axis.var or (axis.extent == 1 and const(index) == 0) for index, axis in pairs)


def _is_cell_by_cell(producer: BlockFacts, consumer: BlockFacts) -> bool:
    """Whether both write whole buffers of one shape with one axis for each dimension, in order."""
    mine = [axis.var for axis in consumer.axes]
    theirs = [axis.var for axis in producer.spatial]
    return (
        list(consumer.write.indices) == mine
        and list(producer.write.indices) == theirs
        and len(mine) == len(theirs)
        and all(map(structural_equal, _extents(consumer), _extents(producer)))
    )


def _extents(facts: BlockFacts) -> list[Expr]:
    """How far the spatial axes run."""
    return [loop.extent for axis, loop in zip(facts.axes, facts.loops, strict=True) if not axis.is_reduce]
