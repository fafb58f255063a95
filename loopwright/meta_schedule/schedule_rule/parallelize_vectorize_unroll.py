"""ParallelizeVectorizeUnroll: how far loops may be parallelised, vectorized and unrolled: notes on the root block."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.meta_schedule.block_questions import is_root
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches import rules as sketch


class ParallelizeVectorizeUnroll(ScheduleRule):
    """-1 for jobs or vectors means: not at all. `unroll_max_steps` are sampled."""

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 16,
        unroll_max_steps: Sequence[int] | None = None,
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core, self.max_vectorize_extent = max_jobs_per_core, max_vectorize_extent
        self.unroll_max_steps = None if unroll_max_steps is None else [int(step) for step in unroll_max_steps]
        self.unroll_explicit = unroll_explicit

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        jobs, vectors = self.max_jobs_per_core, self.max_vectorize_extent
        return [sketch.ParallelizeVectorizeUnroll(jobs, vectors, self.unroll_max_steps, self.unroll_explicit)]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, "meta_schedule.parallel", self.max_jobs_per_core * self.cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, "meta_schedule.vectorize", self.max_vectorize_extent)
        steps = self.unroll_max_steps
        if steps:
            chosen = sch.sample_categorical(steps, [1 / len(steps)] * len(steps))
            kind = "explicit" if self.unroll_explicit else "implicit"
            sch.annotate(block, f"meta_schedule.unroll_{kind}", chosen)
        return [sch]
