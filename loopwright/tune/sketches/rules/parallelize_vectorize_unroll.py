"""parallelize_vectorize_unroll: how far loops may be parallelised, vectorized and unrolled, as notes on the root.

The postproc `rewrite_parallel_vectorize_unroll` does it, once tile sizes are decided. How many tasks a core gets, and
how much is unrolled, are sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches.blocks import is_root_child
from loopwright.tune.sketches.notes import PARALLEL, UNROLL, UNROLL_IMPLICIT, VECTORIZE
from loopwright.tune.sketches.rules.rule import ScheduleRule

_JOBS = (1, 2, 4, 16)  # for each core


class ParallelizeVectorizeUnroll(ScheduleRule):
    """-1 for jobs or vectors means: not at all; `unroll_max_steps` are the statements that may stand in a row."""

    name = "parallelize_vectorize_unroll"

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 64,
        unroll_max_steps: Sequence[int] | None = (0, 16, 64, 512),
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core, self.max_vectorize_extent = max_jobs_per_core, max_vectorize_extent
        self.unroll_max_steps, self.unroll_explicit = unroll_max_steps, unroll_explicit

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root_child(sch, block):
            return [sch]
        root = sch.get_block("root")
        if PARALLEL in sch.get(root).annotations or VECTORIZE in sch.get(root).annotations:
            return [sch]
        if self.max_jobs_per_core != -1:
            jobs = [count for count in _JOBS if count <= self.max_jobs_per_core] or [self.max_jobs_per_core]
            limits = [count * self.machine.cores for count in jobs]
            sch.annotate(root, PARALLEL, sch.sample_categorical(limits, [1 / len(limits)] * len(limits)))
        if self.max_vectorize_extent != -1:
            sch.annotate(root, VECTORIZE, self.max_vectorize_extent)
        if self.unroll_max_steps:
            steps = list(self.unroll_max_steps)
            chosen = sch.sample_categorical(steps, [1 / len(steps)] * len(steps))
            sch.annotate(root, UNROLL if self.unroll_explicit else UNROLL_IMPLICIT, chosen)
        return [sch]
