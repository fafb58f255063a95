"""add_rfactor: partial results of a reduction, in the lanes of vectors or for several tasks.

    for i, k: C[i] += A[i, k]     →     for i, k_0, k_1: C_rf[k_1, i] += A[i, k_0 * 64 + k_1]        64 is sampled
                                        … 64 sums into 16, into 4, into one

Two alternatives: lanes, where neighbours in memory are reduced; and tasks, where there are fewer results than cores
have jobs. The block as it is stays an alternative, unless it reads along the reduction, where that is always slower.
"""

from __future__ import annotations

from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.lanes import QUARTER, may_regroup
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import own_facts
from loopwright.tune.sketches.notes import LANES
from loopwright.tune.sketches.rules.multi_level_tiling import has_reuse
from loopwright.tune.sketches.rules.rule import ScheduleRule

_VECTORS = (1, 2, 4, 8)  # of partial results


class AddRFactor(ScheduleRule):
    """The arguments are those of other meta-schedules."""

    name = "add_rfactor"

    def __init__(self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = 64) -> None:
        self.max_jobs_per_core, self.max_innermost_factor = max_jobs_per_core, max_innermost_factor

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        facts = own_facts(sch, block)
        if facts is None or not facts.is_reduction or not may_regroup(sch.view().realize(block.key)):
            return [sch]
        if any(axis.extent is None for axis in facts.axes):
            return [sch]
        result = []
        along = not has_reuse(facts) and any(one.stride(facts.axes[-1].var) == 1 for one in facts.reads)
        lanes = self.machine.lanes(facts.dtype)
        if along and facts.axes[-1].is_reduce and (facts.axes[-1].extent or 0) >= 2 * lanes:
            result += _tried(sch, block, lambda trial: self._lanes(trial, block, facts, lanes))
        results, members = facts.extent(facts.spatial) or 1, facts.extent(facts.reduce) or 1
        if self.machine.cores > 1 and results < self.machine.cores * self.max_jobs_per_core and members > results:
            result += _tried(sch, block, lambda trial: self._tasks(trial, block))
        return result if along and result else [*result, sch]

    def _lanes(self, sch: Schedule, block: BlockRV, facts: BlockFacts, lanes: int) -> None:
        """Vectors of partial results, and steps that combine them."""
        extent = facts.axes[-1].extent or 1
        widths = [lanes * count for count in _VECTORS if lanes * count <= extent]
        width = sch.sample_categorical(widths, [1 / len(widths)] * len(widths))
        partials = []
        for one in [width, *[step for step in (lanes, QUARTER) if step < lanes or len(widths) > 1]]:
            inner = sch.split(sch.get_loops(block)[-1], [None, one])[-1]
            partials.append(sch.rfactor(inner, -1))
        for number, partial in enumerate(partials):
            sch.annotate(partial, LANES, number)

    def _tasks(self, sch: Schedule, block: BlockRV) -> None:
        """The reduction loops as one, and part of it as data."""
        loops = [loop for loop, axis in zip(sch.get_loops(block), sch.get(block).iter_vars, strict=True)]
        facts = own_facts(sch, block)
        assert facts is not None
        reduced = [loop for loop, axis in zip(loops, facts.axes, strict=True) if axis.is_reduce]
        fused = reduced[0] if len(reduced) == 1 else sch.fuse(*reduced)
        most = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        outer, _ = sch.split(fused, sch.sample_perfect_tile(fused, 2, most))
        partial = sch.rfactor(outer, 0)
        del partial


def _tried(sch: Schedule, block: BlockRV, steps) -> list[Schedule]:  # type: ignore[no-untyped-def]
    trial = sch.copy()
    try:
        steps(trial)
    except ScheduleError:
        return []
    return [trial]
