"""parallel: how many tasks there may be."""

from __future__ import annotations

from loopwright.tune.sketches.mutators.note import MutateNote
from loopwright.tune.sketches.notes import PARALLEL


class MutateParallel(MutateNote):
    """Another number of tasks."""

    name = "parallel"
    keys = (PARALLEL,)

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core
