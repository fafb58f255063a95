"""rewrite_reduction_block: a reduction's init becomes a nest of its own, which can be vectorized as it likes."""

from __future__ import annotations

from loopwright.ir import IterType, uses_var
from loopwright.schedule import Schedule
from loopwright.tune.sketches.blocks import leaf_blocks
from loopwright.tune.sketches.notes import LANES
from loopwright.tune.sketches.postprocs.postproc import Postproc


class RewriteReductionBlock(Postproc):
    """Before the outermost loop that the block reduces over; partial results in registers keep theirs."""

    name = "rewrite_reduction_block"

    def apply(self, sch: Schedule) -> bool:
        for block in leaf_blocks(sch):
            view = sch.view()
            realize = view.realize(block.key)
            pairs = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
            reduced = [value for axis, value in pairs if axis.iter_type == IterType.CommReduce]
            kept = LANES in realize.block.annotations or any(r.buffer.scope() == "local" for r in realize.block.writes)
            if realize.block.init is None or not reduced or kept:
                continue
            handle = sch.get_block(block.name)
            for loop in sch.get_loops(handle):
                if any(uses_var(value, {loop.var}.__contains__) for value in reduced):
                    sch.decompose_reduction(handle, loop)
                    break
        return True
