"""SearchStrategy: proposes candidates of a task's design spaces, round by round.

strategy.pre_tuning(max_trials=64, num_trials_per_iter=16, design_spaces=spaces)
while (candidates := strategy.generate_measure_candidates()) is not None:
    strategy.notify_runner_results(candidates, measured(candidates))
strategy.post_tuning()
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.candidate import MeasureCandidate as MeasureCandidate
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, NothingToTune, NotInitialized, UnknownKind
from loopwright.schedule import Schedule


class SearchStrategy(Part):
    """Derive from `PySearchStrategy` for one of yours."""

    SearchStrategyType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """A search begins."""
        raise MethodNotDefined(f"{type(self).__name__}'s pre_tuning is not defined")

    def post_tuning(self) -> None:
        """It has ended."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round; None when there is nothing left."""
        raise MethodNotDefined(f"{type(self).__name__}'s generate_measure_candidates is not defined")

    def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[Any]) -> None:
        """How the last round went."""

    def clone(self) -> Any:
        """The same settings, and nothing of a search."""
        return copy.copy(self)

    @staticmethod
    def create(kind: Any = "evolutionary", *args: Any, **kwargs: Any) -> SearchStrategy:
        """A strategy of a kind: "evolutionary", "replay-trace" or "replay-func"."""
        if isinstance(kind, SearchStrategy):
            return kind
        if kind not in SearchStrategy.kinds:
            raise UnknownKind("search strategy", kind, list(SearchStrategy.kinds))
        made: SearchStrategy = SearchStrategy.kinds[kind](*args, **kwargs)
        return made


create = SearchStrategy.create


class PySearchStrategy(SearchStrategy):
    """What strategies of the user's derive from."""


class Rounds(SearchStrategy):
    """What the strategies here share: how many trials there are, in rounds of how many."""

    _spaces: Sequence[Schedule] | None = None

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        self._spaces, self._done = list(design_spaces), 0
        if not self._spaces:
            hint = "rules, postprocs and functions of yours have to leave at least one schedule"
            raise NothingToTune("the space generator made no design space", hint)
        self._most, self._per_round = max_trials, num_trials_per_iter
        self._database, self._cost_model = database, cost_model

    def post_tuning(self) -> None:
        self._spaces = None

    def _round(self) -> int:
        """How many candidates the next round has."""
        if self._spaces is None:
            hint = "call pre_tuning(max_trials, num_trials_per_iter, design_spaces) first"
            raise NotInitialized("the search has not begun", hint)
        return min(self._per_round, self._most - self._done)

    def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[Any]) -> None:
        self._done += len(measure_candidates)

    def clone(self) -> Any:
        result = copy.copy(self)
        result._spaces = result._context = None
        return result

    @property
    def _arguments(self) -> list[ArgInfo]:
        return ArgInfo.from_entry_func(self._context.mod)
