"""ScheduleFn: the design space is what a function makes of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loopwright.ir import IRModule
from loopwright.meta_schedule.errors import WrongAnswer
from loopwright.meta_schedule.space_generator.space_generator import FROM_TARGET, SpaceGenerator
from loopwright.schedule import Schedule


class ScheduleFn(SpaceGenerator):
    """The function changes a schedule in place and returns None, or returns a schedule or a list of them."""

    def __init__(
        self,
        sch_fn: Callable[[Schedule], Any],
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        seed = None if self._context is None else self._context.fork_seed()
        sch = Schedule(mod, seed=seed)
        made = self.sch_fn(sch)
        if made is None:
            return [sch]
        schedules = [made] if isinstance(made, Schedule) else made
        if not isinstance(schedules, Iterable) or not all(isinstance(one, Schedule) for one in schedules):
            raise WrongAnswer(self.sch_fn, "", made, "a schedule, a list of schedules, or None")
        return list(schedules)


SpaceGenerator.kinds["schedule_fn"] = ScheduleFn
