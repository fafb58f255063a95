"""rewrite_lanes: partial results in lanes (`add_rfactor`) live in registers, next to the result they combine to."""

from __future__ import annotations

from loopwright.autosched.facts import innermost_blocks
from loopwright.autosched.small_steps import loop_of_axis, loops_below
from loopwright.ir import IterType, uses_var
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.schedule.handles import block_key
from loopwright.tune.sketches.blocks import leaf_blocks
from loopwright.tune.sketches.notes import LANES, number_of
from loopwright.tune.sketches.postprocs.postproc import Postproc


class RewriteLanes(Postproc):
    """Works from the result back to the first partial results."""

    name = "rewrite_lanes"

    def apply(self, sch: Schedule) -> bool:
        names = [block.name for block in leaf_blocks(sch) if LANES in sch.get(block).annotations]
        for name in reversed(names):
            partial = sch.get_block(name)
            (consumer,) = sch.get_consumers(partial)
            where = _innermost_data_loop(sch, consumer)
            if where is not None and all(loop.var is not where.var for loop in sch.get_loops(partial)):
                sch.compute_at(partial, where)
            loops = sch.get_loops(partial) if where is None else loops_below(sch, partial, where)
            lanes = loop_of_axis(sch, partial, 0, loops)
            over = [loop for loop in loops if loop is not lanes]
            if lanes is not None and over and loops[-1] is not lanes:
                sch.reorder(*over, lanes)
            if lanes is not None:
                sch.vectorize(lanes)
            if number_of(sch.get(partial).annotations[LANES]):
                for loop in over[-1:]:
                    sch.unroll(loop)
            sch.set_scope(partial, 0, "local")
            sch.unannotate(partial, LANES)
            if consumer.name not in names:
                inner = sch.get_loops(consumer) if where is None else loops_below(sch, consumer, where)
                for loop in inner:  # the last of the combining steps
                    sch.unroll(loop)
        return True


def _innermost_data_loop(sch: Schedule, block: BlockRV) -> LoopRV | None:
    """The last loop around a block before those it reduces over."""
    realize = next(one for one in innermost_blocks(sch.view()) if block_key(one.block) == sch.view().current(block.key))
    pairs = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
    result = None
    for loop in sch.get_loops(block):
        own = {loop.var}.__contains__
        if any(axis.iter_type == IterType.CommReduce and uses_var(value, own) for axis, value in pairs):
            return result
        result = loop
    return result
