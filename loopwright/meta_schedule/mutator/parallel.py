"""MutateParallel: another limit for the number of tasks."""

from __future__ import annotations

from dataclasses import replace

from loopwright.meta_schedule.mutator.mutator import Mutator
from loopwright.schedule import Trace
from loopwright.target import Target, describe


class MutateParallel(Mutator):
    """From one core's worth to `max_jobs_per_core` for each core; -1 changes nothing."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core

    def apply(self, trace: Trace) -> Trace | None:
        target = getattr(self._context, "target", None) or Target("llvm")
        cores = describe(target).num_cores
        limits = [cores * jobs for jobs in (1, 2, 4, 8, 16, 32, 64) if jobs <= self.max_jobs_per_core]
        for position, inst in enumerate(trace.insts):
            if str(inst.kind) == "Annotate" and inst.attrs["ann_key"] == "meta_schedule.parallel":
                others = [limit for limit in limits if limit != inst.attrs["ann_val"]]
                if not others:
                    return None
                attrs = {**inst.attrs, "ann_val": self.random.choice(others)}
                result = trace.copy()
                result.insts[position] = replace(inst, attrs=attrs)
                return result
        return None
