"""ReplayTrace and ReplayFunc: candidates with decisions drawn at random."""

from __future__ import annotations

import random

from loopwright.meta_schedule.postproc.apply_all import finished
from loopwright.meta_schedule.search_strategy.search_strategy import MeasureCandidate, Rounds, SearchStrategy
from loopwright.schedule import Schedule, Trace


class ReplayTrace(Rounds):
    """The steps of a design space, with new decisions; those that are refused are drawn again."""

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        count = self._round()
        if count <= 0:
            return None
        context, found = self._context, list[MeasureCandidate]()
        postprocs = context.space_generator.postprocs or []
        draw = random.Random(context.fork_seed())
        failures = 0
        while len(found) < count and failures < self.max_fail_count:
            assert self._spaces is not None
            steps = Trace(draw.choice(list(self._spaces)).trace.insts, {})
            sch = finished(context.mod, steps, postprocs, draw.randint(1, 2**31 - 1))
            if sch is None:
                failures += 1
            else:
                found.append(MeasureCandidate(sch, self._arguments))
        return found or None


class ReplayFunc(Rounds):
    """The space generator is run again for each candidate."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        count = self._round()
        if count <= 0:
            return None
        context, found = self._context, list[MeasureCandidate]()
        draw = random.Random(context.fork_seed())
        for _ in range(100 * count):
            if len(found) == count:
                break
            spaces = list(context.space_generator.generate_design_space(context.mod))
            if not spaces:
                continue
            sch: Schedule = draw.choice(spaces)
            sch.enter_postproc()
            if all(postproc.apply(sch) for postproc in context.space_generator.postprocs or []):
                found.append(MeasureCandidate(sch, self._arguments))
        return found or None


SearchStrategy.kinds.update({"replay-trace": ReplayTrace, "replay-func": ReplayFunc})
