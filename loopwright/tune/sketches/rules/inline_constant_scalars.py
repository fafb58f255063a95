"""inline_constant_scalars: a number of the program that has a buffer of its own goes where it is read."""

from __future__ import annotations

from loopwright.ir import BufferStore, FloatImm, IntImm
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import is_output
from loopwright.tune.sketches.rules.rule import ScheduleRule


class InlineConstantScalars(ScheduleRule):
    """Blocks that store one constant."""

    name = "inline_constant_scalars"

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        body = sch.get(block).body
        is_number = isinstance(body, BufferStore) and isinstance(body.value, (FloatImm, IntImm))
        if not is_number or sch.get(block).iter_vars or is_output(sch, block) or not sch.get_consumers(block):
            return [sch]
        done = sch.copy()
        try:
            done.compute_inline(block)
        except ScheduleError:
            return [sch]
        return [done]
