"""CrossThreadReduction and AutoBind: what GPUs need of design spaces."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import ForKind, IterType
from loopwright.meta_schedule.block_questions import is_root, loop_kinds, loops_above, needs_partial_results, realize_of
from loopwright.meta_schedule.schedule_rule.add_rfactor import reductions_fused
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.schedule import BlockRV, Schedule

_THREADS = (32, 64, 128, 256, 512, 1024)


class CrossThreadReduction(ScheduleRule):
    """A reduction is shared among the threads of a block; how many there are is sampled."""

    def __init__(self, thread_extents: Sequence[int] | None = None) -> None:
        self.thread_extents = [int(extent) for extent in thread_extents or ()]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block) or not self.thread_extents:
            return [sch]
        if not needs_partial_results(sch, block, 256, 32):
            return [sch]
        trial = sch.copy()
        fused, _ = reductions_fused(trial, block)
        extents = self.thread_extents
        threads = trial.sample_categorical(extents, [1 / len(extents)] * len(extents))
        _, inner = trial.split(fused, [None, threads])
        trial.bind(inner, "threadIdx.x")
        return [trial, sch]


class AutoBind(ScheduleRule):
    """Data loops that no thread runs yet are fused and bound."""

    def __init__(
        self,
        max_threadblocks: int = 256,
        thread_extents: Sequence[int] | None = None,
        max_threads_per_block: int = -1,
    ) -> None:
        self.max_threadblocks, self.max_threads_per_block = max_threadblocks, max_threads_per_block
        self.thread_extents = [int(extent) for extent in thread_extents or _THREADS]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        loops = loops_above(sch, block) if not is_root(sch, block) else []
        if not loops or any(loop.kind is ForKind.THREAD_BINDING for loop in loops):
            return [sch]
        if realize_of(sch, block).block.init is not None and loop_kinds(sch, block)[0] != IterType.DataPar:
            return [sch]
        kinds = loop_kinds(sch, block)
        count = next((number for number, kind in enumerate(kinds) if kind != IterType.DataPar), len(kinds))
        if count == 0:
            return [sch]
        fused = sch.fuse(*sch.get_loops(block)[:count])
        extents = self.thread_extents
        threads = sch.sample_categorical(extents, [1 / len(extents)] * len(extents))
        outer, inner = sch.split(fused, [None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        return [sch]
