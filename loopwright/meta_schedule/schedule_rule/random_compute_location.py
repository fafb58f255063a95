"""RandomComputeLocation: a block is computed where its consumer needs it; the place is sampled."""

from __future__ import annotations

from loopwright.meta_schedule.block_questions import is_below_root, is_root, view_of
from loopwright.meta_schedule.schedule_rule.add_rfactor import PRODUCER
from loopwright.meta_schedule.schedule_rule.multi_level_tiling import STRUCTURE
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches import rules as sketch


class RandomComputeLocation(ScheduleRule):
    """For blocks below the root that are not tiled and that others read."""

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        return [sketch.RandomComputeLocation()]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not self._is_movable(sch, block):
            return [sch]
        producers = []
        if PRODUCER in sch.get(block).annotations:
            producers = sch.get_producers(block)
            sch.unannotate(block, PRODUCER)
        for one in [block, *producers]:
            sch.compute_at(one, sch.sample_compute_location(one), preserve_unit_loops=True)
        return [sch]

    @staticmethod
    def _is_movable(sch: Schedule, block: BlockRV) -> bool:
        if is_root(sch, block) or not is_below_root(sch, block) or not view_of(sch, block).loops_of(block.key):
            return False
        return STRUCTURE not in sch.get(block).annotations and bool(sch.get_consumers(block))
