"""AutoInline and InlineConstantScalars: blocks that go into the expressions that read them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.ir import BufferStore, FloatImm, IntImm
from loopwright.meta_schedule.block_questions import (
    access_pattern,
    extent_of,
    has_condition,
    has_operator,
    is_output,
    is_root,
    is_spatial,
    is_spatial_function,
    realize_of,
    works,
)
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches import rules as sketch


class AutoInline(ScheduleRule):
    """What may be inlined, where to, and what disallows it."""

    def __init__(
        self,
        into_producer: bool,
        into_consumer: bool,
        inline_const_tensor: bool,
        disallow_if_then_else: bool,
        require_injective: bool,
        require_ordered: bool,
        disallow_op: Sequence[str] | None = None,
    ) -> None:
        self.into_producer, self.into_consumer = into_producer, into_consumer
        self.inline_const_tensor, self.disallow_if_then_else = inline_const_tensor, disallow_if_then_else
        self.require_injective, self.require_ordered = require_injective, require_ordered
        self.disallow_op = [str(getattr(name, "name", name)) for name in disallow_op or ()]

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        settings = (self.into_producer, self.into_consumer, self.inline_const_tensor, self.disallow_if_then_else)
        return [sketch.AutoInline(*settings, self.require_injective, self.require_ordered, tuple(self.disallow_op))]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block):
            return [sch]
        where = self._where(sch, block)
        if where == "consumer":
            sch.compute_inline(block)
        elif where == "producer":
            sch.reverse_compute_inline(block)
        return [sch]

    def _where(self, sch: Schedule, block: BlockRV) -> str:
        realize = realize_of(sch, block)
        body = realize.block
        if len(body.writes) != 1:
            return ""
        if self.inline_const_tensor and not body.reads:
            if sch.get_consumers(block) and works(sch, "compute_inline", block):
                return "consumer"
        if not is_spatial_function(sch, block):
            if self.disallow_op and has_operator(realize, self.disallow_op):
                return ""
            if self.disallow_if_then_else and has_condition(realize):
                return ""
            if not self._may_be_read_so(sch, block):
                return ""
        if str(body.annotations.get("meta_schedule.inline_rule", "")).strip('"') == "disable":
            return ""
        if self.into_consumer and sch.get_consumers(block) and works(sch, "compute_inline", block):
            return "consumer"
        if self.into_producer:
            producers = sch.get_producers(block)
            if len(producers) == 1 and "meta_schedule.auto_tensorize" not in sch.get(producers[0]).annotations:
                if works(sch, "reverse_compute_inline", block):
                    return "producer"
        return ""

    def _may_be_read_so(self, sch: Schedule, block: BlockRV) -> bool:
        body = realize_of(sch, block).block
        patterns = [access_pattern(read, body.writes[0]) for read in body.reads]
        if self.require_injective and not all(one.injective for one in patterns):
            return False
        return not self.require_ordered or all(one.ordered for one in patterns)


class InlineConstantScalars(ScheduleRule):
    """A single number in a buffer of its own goes into the expressions that read it."""

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        return [sketch.InlineConstantScalars()]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        body = realize_of(sch, block).block
        if is_root(sch, block) or is_output(sch, block) or not is_spatial(body) or body.reads or len(body.writes) != 1:
            return [sch]
        store = body.body
        if not isinstance(store, BufferStore) or not isinstance(store.value, (IntImm, FloatImm)):
            return [sch]
        if prod([extent_of(size) or 2 for size in store.buffer.shape]) == 1 and sch.get_consumers(block):
            sch.compute_inline(block)
        return [sch]
