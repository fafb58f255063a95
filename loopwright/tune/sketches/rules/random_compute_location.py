"""random_compute_location: a block that has no tiles of its own is computed where its consumer needs it.

The loop is sampled: from the block's own nest to the innermost loop of the consumer. Search for it is part of the
sampled instruction; a place where the block cannot be is replaced by the next one outwards.
"""

from __future__ import annotations

from loopwright.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.tune.sketches.blocks import is_output, is_root_child, leaf_blocks, work_of
from loopwright.tune.sketches.notes import LANES, PLACES
from loopwright.tune.sketches.rules.rule import ScheduleRule
from loopwright.tune.sketches.tiling import TILED

_MOST_WORK = 1.5  # of what there was before


class RandomComputeLocation(ScheduleRule):
    """For what stands in a nest of its own and is read by others."""

    name = "random_compute_location"

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        notes = sch.get(block).annotations
        if (
            any(note in notes for note in (TILED, LANES, PLACES))
            or is_output(sch, block)
            or not is_root_child(sch, block)
        ):
            return [sch]
        if not sch.get_consumers(block) or not _is_alone(sch, block):
            return [sch]
        places = _places(sch, block)
        if places == 0:
            return [sch]
        sch.annotate(block, PLACES, places)
        where = sch.sample_compute_location(block, decision=-1)
        sch.compute_at(block, where, preserve_unit_loops=True)
        for partial in _partials(sch, block):
            sch.compute_at(partial, where, preserve_unit_loops=True)
        return [sch]


def _places(sch: Schedule, block: BlockRV) -> int:
    """Under how many loops of its first consumer a block may be computed without much of it being computed again."""
    before = work_of(sch)
    consumer = sch.view().realize(sch.copy().get_consumers(block)[0].key)
    loops = sch.view().loops_of(block_key(consumer.block))
    if TILED in consumer.block.annotations:
        return len(loops)  # it depends on the sizes of tiles
    for depth, loop in enumerate(loops):
        trial = sch.copy()
        try:
            trial.compute_at(block, LoopRV(loop.loop_var))
        except ScheduleError:
            return depth
        if work_of(trial) > _MOST_WORK * before:
            return depth
    return len(loops)


def _partials(sch: Schedule, block: BlockRV) -> list[BlockRV]:
    """The blocks that make partial results for a block, the last one first."""
    result: list[BlockRV] = []
    while True:
        producers = [one for one in sch.get_producers(block) if LANES in sch.get(one).annotations]
        if not producers:
            return result
        block = producers[-1]
        result.append(block)


def _is_alone(sch: Schedule, block: BlockRV) -> bool:
    """Whether no other block stands in the nest, and the block is no packed copy, which has its place."""
    view = sch.view()
    loops = view.loops_of(block.key)
    if not loops or len(view.blocks_below(loops[0])) > 1:
        return False
    body = sch.get(block).body
    readers = [one for one in leaf_blocks(sch) if TILED in sch.get(one).annotations]
    reads = {region.buffer for one in readers for region in sch.get(one).reads}
    is_packed = type(body).__name__ == "BufferStore" and type(body.value).__name__ == "BufferLoad"  # type: ignore[attr-defined]
    return not (is_packed and any(region.buffer in reads for region in sch.get(block).writes))
