"""RewriteTensorize: blocks that rules marked for a tensor intrinsic are replaced by it."""

from __future__ import annotations

from loopwright.meta_schedule.postproc.postproc import Postproc
from loopwright.meta_schedule.postproc.reduction_block import AUTO_TENSORIZE
from loopwright.schedule import BlockRV, Schedule, ScheduleError


class RewriteTensorize(Postproc):
    """`vectorize_init_loop` makes a vector of the loop of such a block's init."""

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        marked: list[tuple[BlockRV, str]] = []
        for function, view in list(sch.views().items()):
            for key in view.index.blocks:
                block = view.realize(key).block
                if AUTO_TENSORIZE in block.annotations:
                    named = block.annotations[AUTO_TENSORIZE]
                    handle = sch.get_block(block.name_hint, function)
                    marked.append((handle, str(getattr(named, "value", named))))
        try:
            for handle, intrinsic in marked:
                sch.unannotate(handle, AUTO_TENSORIZE)
                if intrinsic:
                    sch.tensorize(handle, intrinsic)
                elif self.vectorize_init_loop:
                    for child in sch.get_child_blocks(handle):
                        sch.vectorize(sch.get_loops(child)[-1])
        except ScheduleError:
            return False
        return True
