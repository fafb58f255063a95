"""RewriteReductionBlock: a reduction's init becomes a nest of its own, before the first loop that is reduced over."""

from __future__ import annotations

from loopwright.ir import IterType
from loopwright.meta_schedule.block_questions import loop_kinds
from loopwright.meta_schedule.postproc.postproc import Postproc
from loopwright.schedule import BlockRV, Schedule

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"


class RewriteReductionBlock(Postproc):
    """Every block with an init whose loops allow it."""

    def apply(self, sch: Schedule) -> bool:
        for name in list(sch.views()):
            view = sch.views()[name]
            blocks = [view.realize(key).block for key in view.index.blocks]
            for block in [one.name_hint for one in blocks if one.init is not None]:
                _decompose(sch, sch.get_block(block, name))
        return True


def _decompose(sch: Schedule, block: BlockRV) -> None:
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    place = next((number for number, kind in enumerate(kinds) if kind != IterType.DataPar), None)
    if place is None:
        return
    init = sch.decompose_reduction(block, loops[place])
    if AUTO_TENSORIZE in sch.get(block).annotations:
        named = sch.get(block).annotations.get(f"{AUTO_TENSORIZE}_init")
        if AUTO_TENSORIZE in sch.get(init).annotations:
            sch.unannotate(init, AUTO_TENSORIZE)
        sch.annotate(init, AUTO_TENSORIZE, "" if named is None else named)
        if named is not None:
            sch.unannotate(block, f"{AUTO_TENSORIZE}_init")
