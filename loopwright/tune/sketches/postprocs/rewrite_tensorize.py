"""rewrite_tensorize: blocks that rules marked for a tensor intrinsic are replaced by it."""

from __future__ import annotations

from typing import Final

from loopwright.ir import StringImm
from loopwright.schedule import Schedule
from loopwright.tune.sketches.postprocs.postproc import Postproc

AUTO_TENSORIZE: Final = "meta_schedule.auto_tensorize"  # the intrinsic's name


class RewriteTensorize(Postproc):
    """`vectorize_init_loop` makes vectors of the innermost loop of such a block's init."""

    name = "rewrite_tensorize"

    def __init__(self, vectorize_init_loop: bool = True) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        view = sch.view()
        blocks = [view.realize(key).block for key in view.index.blocks]
        marked = [block for block in blocks if AUTO_TENSORIZE in block.annotations]
        for block in marked:
            name = block.annotations[AUTO_TENSORIZE]
            handle = sch.get_block(block.name_hint)
            sch.unannotate(handle, AUTO_TENSORIZE)
            if block.init is not None:
                self._init_apart(sch, block.name_hint)
            sch.tensorize(handle, str(name.value if isinstance(name, StringImm) else name))
        return True

    def _init_apart(self, sch: Schedule, name: str) -> None:
        handle = sch.get_block(name)
        loops = sch.get_loops(handle)
        if not loops:
            return
        init = sch.decompose_reduction(handle, loops[0])
        inner = sch.get_loops(init)
        if self.vectorize_init_loop and inner:
            sch.vectorize(inner[-1])
