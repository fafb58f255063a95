"""remove_notes: takes away what rules noted at blocks for those that come after them."""

from __future__ import annotations

from loopwright.schedule import Schedule
from loopwright.tune.sketches.blocks import leaf_blocks
from loopwright.tune.sketches.notes import PLACES
from loopwright.tune.sketches.postprocs.postproc import Postproc
from loopwright.tune.sketches.tiling import TILED


class RemoveNotes(Postproc):
    """The last one."""

    name = "remove_notes"

    def apply(self, sch: Schedule) -> bool:
        for block in leaf_blocks(sch):
            for key in (TILED, PLACES):
                if key in sch.get(block).annotations:
                    sch.unannotate(sch.get_block(block.name), key)
        return True
