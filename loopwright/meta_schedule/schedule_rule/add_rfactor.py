"""AddRFactor: partial results of a reduction that has few results."""

from __future__ import annotations

from loopwright.ir import IterType
from loopwright.meta_schedule.block_questions import is_root, loop_kinds, needs_partial_results
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from loopwright.tune.sketches import rules as sketch

PRODUCER = "meta_schedule.random_compute_producer"


class AddRFactor(ScheduleRule):
    """The reduction loops become one, which is split; either part becomes data."""

    def __init__(self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = None) -> None:
        self.max_jobs_per_core, self.max_innermost_factor = max_jobs_per_core, max_innermost_factor

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        return [sketch.AddRFactor(self.max_jobs_per_core, self.max_innermost_factor)]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block) or self.max_jobs_per_core == -1:
            return [sch]
        if not needs_partial_results(sch, block, self.cores * self.max_jobs_per_core, self.cores):
            return [sch]
        untouched = sch.copy()
        fused, data = reductions_fused(sch, block)
        most = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        parts = sch.split(fused, sch.sample_perfect_tile(fused, 2, most))
        results = []
        for part in parts:
            trial = sch.copy()
            try:
                trial.rfactor(part, data)
                trial.annotate(block, PRODUCER, 1)
            except ScheduleError:
                continue
            results.append(trial)
        return [*results, untouched]


def reductions_fused(sch: Schedule, block: BlockRV) -> tuple[LoopRV, int]:
    """The reduction loops of a block, inside all others and as one; and how many others there are."""
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    data = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == IterType.DataPar]
    reduced = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == IterType.CommReduce]
    if [*data, *reduced] != loops:
        sch.reorder(*data, *reduced)
    return sch.fuse(*reduced), len(data)
