"""TuneContext: a task with what searches it: a program, a target, a space generator and a strategy."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from logging import Logger, getLogger
from numbers import Integral
from typing import Any

from loopwright.ir import IRModule, PrimFunc
from loopwright.meta_schedule.cost_model import CostModel
from loopwright.meta_schedule.database import Database
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import BadTuningArgument, NotInitialized
from loopwright.meta_schedule.modules import normalized
from loopwright.meta_schedule.search_strategy import SearchStrategy
from loopwright.meta_schedule.space_generator import SpaceGenerator
from loopwright.runtime import thread_pool
from loopwright.schedule import Schedule
from loopwright.target import Target

_normalize_mod = normalized  # what scripts import


class TuneContext(Part):
    """`rand_state` is its seed; -1 draws one. `num_threads` is a number, "physical" or "logical"."""

    def __init__(
        self,
        mod: IRModule | PrimFunc | None = None,
        *,
        target: Target | str | None = None,
        space_generator: Any = None,
        search_strategy: Any = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | str = "physical",
        logger: Logger | None = None,
    ) -> None:
        self.mod = None if mod is None else normalized(mod)
        self.target = Target(target) if isinstance(target, (str, dict)) else target
        self.space_generator = None if space_generator is None else SpaceGenerator.create(space_generator)
        self.search_strategy = None if search_strategy is None else SearchStrategy.create(search_strategy)
        self.task_name = task_name
        self.num_threads = _count_of(num_threads)
        self.logger = logger or getLogger(__name__)
        if not isinstance(rand_state, Integral) or rand_state < -1:
            raise BadTuningArgument("rand_state", rand_state, "an integer that is not negative, or -1 for any")
        self.rand_state: int = random.SystemRandom().randint(1, 2**31 - 1) if rand_state == -1 else int(rand_state)
        self._random: random.Random = random.Random(self.rand_state)
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part.initialize_with_tune_context(self)

    def fork_seed(self) -> int:
        """A seed for a part of the search."""
        return self._random.randint(1, 2**31 - 1)

    def generate_design_space(self) -> list[Schedule]:
        """The design spaces of the program."""
        if self.space_generator is None or self.mod is None:
            raise NotInitialized("the context has no program or no space generator", "give mod= and space_generator=")
        return list(self.space_generator.generate_design_space(self.mod))

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[Schedule] | None = None,
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """A search begins."""
        spaces = self.generate_design_space() if design_spaces is None else design_spaces
        database = Database.create("memory") if database is None else database
        model = CostModel.create("xgb") if cost_model is None else cost_model
        self._strategy.pre_tuning(max_trials, num_trials_per_iter, spaces, database, model)

    def post_tuning(self) -> None:
        """It has ended."""
        self._strategy.post_tuning()

    def generate_measure_candidates(self) -> Any:
        """The next round; None when there is nothing left."""
        return self._strategy.generate_measure_candidates()

    def notify_runner_results(self, measure_candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """How the last round went."""
        self._strategy.notify_runner_results(measure_candidates, results)

    def clone(self) -> TuneContext:
        """The same task, with parts of its own."""
        result = copy.copy(self)
        result.space_generator = None if self.space_generator is None else self.space_generator.clone()
        result.search_strategy = None if self.search_strategy is None else self.search_strategy.clone()
        result._random = random.Random(self.fork_seed())
        for part in (result.space_generator, result.search_strategy):
            if part is not None:
                part.initialize_with_tune_context(result)
        return result

    @property
    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise NotInitialized("the context has no search strategy", "give search_strategy=")
        return self.search_strategy


def _count_of(threads: int | str) -> int:
    """A number of threads; the names of kinds of cores stand for all that a parallel loop has here."""
    if threads in ("physical", "logical"):
        return thread_pool.num_threads()
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise BadTuningArgument("num_threads", threads, 'a number above 0, "physical" or "logical"')
    return int(threads)
