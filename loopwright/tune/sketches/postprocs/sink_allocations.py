"""sink_allocations: a buffer whose values one iteration makes and uses is allocated inside it."""

from __future__ import annotations

from loopwright.autosched.lanes import sink
from loopwright.schedule import Schedule, ScheduleError
from loopwright.tune.sketches.blocks import is_output, is_root_child, leaf_blocks
from loopwright.tune.sketches.postprocs.postproc import Postproc


class SinkAllocations(Postproc):
    """For blocks that were moved next to their consumers."""

    name = "sink_allocations"

    def apply(self, sch: Schedule) -> bool:
        roots = set(sch.view().root.block.alloc_buffers)
        for block in leaf_blocks(sch):
            view = sch.view()
            loops = view.loops_of(block.key)
            moved = bool(loops) and len(view.blocks_below(loops[0])) > 1
            written = sch.get(block).writes
            if not moved or is_output(sch, block) or not is_root_child(sch, block) or written[0].buffer not in roots:
                continue
            try:
                sink(sch, sch.get_block(block.name), written[0].buffer)
            except ScheduleError:
                continue  # another nest reads it, too, or it is there already
        return True
