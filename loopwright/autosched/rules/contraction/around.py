"""What stands around a product: element-wise blocks that make its column operand, and those that read its result.

    W2[k, j] = cast(W[k, j]) * scale[j]      is computed on the way into the packed panels
    C[i, j] += A[i, k] * W2[k, j]
    D[i, j] = exp(C[i, j] + bias[j])         runs tile by tile, while C's tile is still in registers or the first cache
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, BlockFacts, const
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.ir import Expr, structural_equal


def prologue_length(pending: Sequence[Entry], program: Program) -> int:
    """How many of the first blocks do nothing but make the column operand of the product after them."""
    for length, entry in enumerate(pending):
        if entry.facts is None:
            return 0
        product = product_of(entry.facts, of_any_size=True)
        if product is not None:
            operand = product.column_operand.buffer
            made = [before.facts.write.buffer for before in pending[:length] if before.facts is not None]
            return length if length and made[-1] is operand and product.column_dimension is not None else 0
        if not _is_step_of_a_chain(entry, pending[length + 1 :], program):
            return 0
    return 0


def _is_step_of_a_chain(entry: Entry, after: Sequence[Entry], program: Program) -> bool:
    """Whether the block is element-wise, and only the next one reads what it makes."""
    facts = entry.facts
    if facts is None or not after or not facts.is_injective or len(facts.stores) != 1:
        return False
    buffer = facts.write.buffer
    if program.is_output(buffer) or len(program.writers(buffer)) != 1:
        return False
    return facts.writes_in_order and [reader.name for reader in program.readers(buffer)] == [after[0].name]


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
    if [reader.name for reader in program.readers(buffer)] != [after.name]:
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
