"""ScheduleRule: what may be done with one block, as alternatives."""

from __future__ import annotations

from abc import ABC, abstractmethod

from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches.part import Part


class ScheduleRule(Part, ABC):
    """Forks a schedule at a block. Sizes that may differ are sampled (`sch.sample_…`), so that they can be drawn anew.

    For example, a rule that unrolls whatever is short:

        class UnrollShort(ScheduleRule):
            name = "unroll_short"

            def apply(self, sch, block):
                trial = sch.copy()
                trial.unroll(trial.get_loops(block)[-1])
                return [sch, trial]
    """

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Schedules that go on from `sch`, which itself is one of them where the rule has nothing to do."""
