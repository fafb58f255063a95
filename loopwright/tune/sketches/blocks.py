"""Questions that several rules ask about a block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.facts import BlockFacts, const, facts_of, innermost_blocks
from loopwright.ir import Buffer, Call, Var
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.schedule.handles import block_key


def own_facts(sch: Schedule, block: BlockRV) -> BlockFacts | None:
    """The facts of a plain block, None for any other."""
    view = sch.view()
    return facts_of(view, view.realize(block.key))


def leaf_blocks(sch: Schedule) -> list[BlockRV]:
    """The blocks that hold no others, in the order of the program; to look at, as no trace knows these handles."""
    view = sch.view()
    realizes = innermost_blocks(view)
    return [BlockRV(block_key(realize.block), realize.block.name_hint) for realize in realizes]


def only_reader(sch: Schedule, block: BlockRV) -> BlockRV | None:
    """The one block that reads what the block writes, where the caller does not see that."""
    view = sch.view()
    written = sch.get(block).writes[0].buffer
    if written in view.function.buffer_map.values():
        return None
    readers = sch.get_consumers(block)
    return readers[0] if len(readers) == 1 else None


def is_element_wise_reader(sch: Schedule, reader: BlockRV, buffer: Buffer) -> bool:
    """Whether each iteration of a plain block reads one cell of `buffer`, at its own axes."""
    facts = own_facts(sch, reader)
    if facts is None or not facts.is_injective:
        return False
    reads = [access for access in facts.reads if access.buffer is buffer]
    axes = {axis.var for axis in facts.axes if axis.extent != 1}
    return (
        len(reads) == 1
        and all(reads[0].own_dimension(var) is not None for var in axes if reads[0].uses(var))
        and all(reads[0].uses(var) for var in axes)
    )


def is_padding(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block copies a buffer into a larger one, for one block alone, with a constant around it."""
    facts = own_facts(sch, block)
    if facts is None or not facts.is_injective or not facts.writes_in_order or len(facts.reads) != 1:
        return False
    value = facts.store.value
    is_choice = isinstance(value, Call) and value.op.name.removeprefix("tir.") == "if_then_else"
    in_order = all(facts.reads[0].own_dimension(axis.var) == k for k, axis in enumerate(facts.spatial))
    return is_choice and in_order and only_reader(sch, block) is not None


def is_root_child(sch: Schedule, block: BlockRV) -> bool:
    """Whether the function's outermost block is the next around a block."""
    view = sch.view()
    path = view.block_path(block.key)
    return len(path) > 1 and view.scope_of(path) is view.function.body


def recorded_loops(sch: Schedule, block: BlockRV, wanted: Sequence[Var]) -> list[LoopRV]:
    """Handles of loops around a block that the trace knows: it asks for the block and its loops."""
    loops = sch.get_loops(sch.get_block(block.name))
    return [next(loop for loop in loops if loop.var is var) for var in wanted]


def work_of(sch: Schedule) -> int:
    """How many times blocks run, over the whole program; symbolic loops count once."""
    view = sch.view()
    total = 0
    for realize in innermost_blocks(view):
        loops = view.all_loops_above(view.block_path(block_key(realize.block)))
        total += prod([const(loop.extent) or 1 for loop in loops])
    return total


def is_output(sch: Schedule, block: BlockRV) -> bool:
    """Whether the caller sees what a block writes."""
    parameters = sch.view().function.buffer_map.values()
    return any(region.buffer in parameters for region in sch.get(block).writes)
