"""Session: the search for several tasks: rounds go where time can still be gained, until the budget is spent.

    session = Session(tasks, Measurer("llvm"), database=database, seed=0)
    report = session.run(Budget(trials=64, minutes=1.0))

A run that is interrupted (Ctrl-C) ends as one whose budget is spent: what was measured is in the database, and the next
run goes on from there.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log
from typing import Final, Protocol

import numpy as np

from loopwright.autosched.decision import RuleKind
from loopwright.schedule import Schedule
from loopwright.tune.database import Database
from loopwright.tune.errors import NoTasks, NothingToSpend
from loopwright.tune.measure import Measurer
from loopwright.tune.model import CostModel, Experience, cost_model
from loopwright.tune.scheduler import Scheduler, Standing, scheduler
from loopwright.tune.search import TaskSearch, Trial
from loopwright.tune.sketches import SketchSpace
from loopwright.tune.sketches.blocks import leaf_blocks, own_facts
from loopwright.tune.sketches.rules.multi_level_tiling import has_reuse
from loopwright.tune.space import RuleSpace, Space
from loopwright.tune.strategy import Strategy, strategy
from loopwright.tune.task import Task
from loopwright.tune.workload import work_of

_ROUND: Final = 8  # candidates between two looks at the model
_MODEL: Final = "experience"
_NEAR_ROOFLINE: Final = 0.85
_UNKNOWN_SHARE: Final = 0.5


@dataclass(frozen=True)
class Budget:
    """How much may be spent: trials of all tasks together, and minutes; None is no limit."""

    trials: int | None = None
    minutes: float | None = None
    trials_per_task: int | None = None

    def check(self) -> None:
        limits = [self.trials, self.minutes, self.trials_per_task]
        if all(limit is None for limit in limits):
            raise NothingToSpend("neither trials nor minutes are given")
        for limit in limits:
            is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
            if limit is not None and not (is_number and limit > 0):
                raise NothingToSpend(f"{limit!r} is no number above 0")


class Observer(Protocol):
    """Watches a session: a live table, a log. It may raise KeyboardInterrupt to end it."""

    def begin(self, session: Session) -> None: ...
    def trial(self, session: Session, search: TaskSearch, trial: Trial) -> None: ...
    def end(self, session: Session) -> None: ...


@dataclass
class Session:
    """A search under way; `run` does it, and may be called again to go on."""

    tasks: Sequence[Task]
    measurer: Measurer
    database: Database | None = None
    seed: int = 0
    model: CostModel | str = "auto"
    strategy: Strategy | str = "evolutionary"
    scheduler: Scheduler | str = "gain"
    spaces: Callable[[Task], Sequence[Space]] | None = None
    round_size: int = _ROUND
    observers: Sequence[Observer] = ()
    searches: list[TaskSearch] = field(default_factory=list)
    is_interrupted: bool = False
    seconds: float = 0.0
    started: float = 0.0
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        if not self.tasks:
            raise NoTasks()
        if self.round_size < 1:
            raise NothingToSpend(f"a round of {self.round_size} candidates measures nothing")
        self._model = cost_model(self.model, self.seed) if isinstance(self.model, str) else self.model
        self._strategy = strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy
        self._scheduler = scheduler(self.scheduler) if isinstance(self.scheduler, str) else self.scheduler
        self._fingerprint = self.tasks[0].fingerprint
        saved = None if self.database is None else self.database.load_model(_MODEL, self._fingerprint)
        self.experience = Experience() if saved is None else Experience.load(saved)
        self._searches: dict[int, TaskSearch] = {}

    def run(self, budget: Budget) -> Session:
        """Search until the budget is spent or nothing is left to try; the best of each task is in `searches`."""
        budget.check()
        self.budget, self.started, self.is_interrupted = budget, time.monotonic(), False
        for observer in self.observers:
            observer.begin(self)
        try:
            self._rounds(budget)
        except KeyboardInterrupt:
            self.is_interrupted = True
        finally:
            self._finish()
        for observer in self.observers:
            observer.end(self)
        return self

    @property
    def trials(self) -> int:
        """That count against the budget: a program that was built before is no trial."""
        return sum(search.spent for search in self.searches)

    @property
    def speed_up(self) -> float:
        """How many times faster than by rule all tasks together are, each as often as it runs."""
        measured = [search for search in self.searches if search.rule_seconds < inf]
        before = sum(search.task.weight * search.rule_seconds for search in measured)
        after = sum(search.task.weight * search.seconds for search in measured)
        return before / after if after else 1.0

    @property
    def geomean(self) -> float:
        """The geometric mean of the speed-ups of the tasks."""
        measured = [search.speed_up for search in self.searches if search.rule_seconds < inf]
        return exp(sum(map(log, measured)) / len(measured)) if measured else 1.0

    def time_left(self) -> float:
        """Seconds of the budget, less what the races at the end will take; inf where there is no such limit."""
        if self.budget.minutes is None:
            return inf
        kept = sum([search.seconds_to_finish for search in self.searches])
        return self.budget.minutes * 60 - kept - (time.monotonic() - self.started)

    def _rounds(self, budget: Budget) -> None:
        while self.time_left() > 0:
            count = self.round_size
            if budget.trials is not None:
                count = min(count, budget.trials - self.trials)
            if count <= 0:
                return
            number = self._scheduler.next([self._standing(position) for position in range(len(self.tasks))])
            if number is None:
                return
            search = self._searches.get(number)
            if search is None:
                search = self._open(number)
                if len(self.tasks) == 1:  # of many tasks few come as far as the other spaces
                    for space in search.spaces:
                        space.prepare()
                search.start(self._count_left(1) if len(self.tasks) == 1 else 0)
                continue
            if budget.trials_per_task is not None:
                count = min(count, budget.trials_per_task - search.spent)
            # With one task it is known whose turn comes next.
            search.round(max(1, count), self._count_left(count) if len(self.tasks) == 1 else 0)

    def _count_left(self, count: int) -> int:
        """Candidates of the round after one of `count`."""
        limits = [limit for limit in (self.budget.trials, self.budget.trials_per_task) if limit is not None]
        return max(0, min([self.round_size, *[limit - self.trials - count for limit in limits]]))

    def _open(self, number: int) -> TaskSearch:
        task = self.tasks[number]
        # The seed of a task depends on the task alone, not on when its turn comes.
        seed = [self.seed, zlib.crc32(task.key.encode())]
        spaces = (self.spaces or default_spaces)(task)
        search = TaskSearch(
            task,
            self.measurer,
            spaces,
            self._strategy,
            self._model,
            self.experience,
            np.random.default_rng(seed),
            self.database,
            self.seed,
            self._observe,
        )
        search.has_time = lambda: self.time_left() > 2 * search.usual  # one that wins races twice
        self._searches[number] = search
        self.searches.append(search)
        return search

    def _observe(self, search: TaskSearch, trial: Trial) -> None:
        for observer in self.observers:
            observer.trial(self, search, trial)

    def _standing(self, number: int) -> Standing:
        search, weight = self._searches.get(number), self.tasks[number].weight
        work = work_of(self.tasks[number].function)
        if search is None:
            return Standing(weight, inf, 0.0, 0.0, 0, False, work)
        most = self.budget.trials_per_task
        is_done = search.is_done or (most is not None and search.spent >= most)
        is_done = is_done or not search.has_time()
        roofline, trials = roofline_share(search), len(search.trials)
        return Standing(weight, search.seconds, roofline, _late_gain(search), trials, is_done, work)

    def _finish(self) -> None:
        self.seconds = time.monotonic() - self.started
        try:
            for search in self.searches:
                if search.finished_at != len(search.trials):
                    search.finish()
        except KeyboardInterrupt:
            self.is_interrupted = True
        if self.database is not None:
            self.database.save_model(_MODEL, self._fingerprint, self.experience.save())
        self.seconds = time.monotonic() - self.started


def default_spaces(task: Task) -> list[Space]:
    """What is tried where nobody says otherwise: the decisions of the rules, and sketches where these may be poor.

    That is so where no rule has any decisions, and for a reduction with reuse that is far from its roofline by rule: of
    several, combinations are too many to be drawn from, and sketches have no instructions for dot products of integers.
    """
    rules = RuleSpace(task)
    knows_none = any([decision.kind is RuleKind.AS_WRITTEN for decision in rules.plan.decisions])
    is_poor = _expected_share(rules) < _NEAR_ROOFLINE and _reductions_with_reuse(task) == 1
    return [rules, SketchSpace(task)] if knows_none or rules.size <= 1 or is_poor else [rules]


def _reductions_with_reuse(task: Task) -> int:
    sch = Schedule(task.mod, enable_check=False)
    facts = [own_facts(sch, block) for block in leaf_blocks(sch)]
    return sum([one is not None and has_reuse(one) and one.dtype.startswith("float") for one in facts])


def roofline_share(search: TaskSearch) -> float:
    """How much of the limit the incumbent reaches: what the model expects of the rule's, times what was won."""
    space = search.spaces[0]
    if not isinstance(space, RuleSpace):
        return _UNKNOWN_SHARE
    expected = _expected_share(space)
    return expected if expected == _UNKNOWN_SHARE else min(1.0, search.speed_up * expected)


def _expected_share(space: RuleSpace) -> float:
    """Of the limit, what the model expects of the rule's own schedule."""
    limits = [decision.roofline for decision in space.plan.decisions if decision.roofline is not None]
    expected = sum(limit.expected for limit in limits)
    least = sum(max(limit.arithmetic, limit.memory) for limit in limits)
    return least / expected if expected else _UNKNOWN_SHARE


def _late_gain(search: TaskSearch) -> float:
    """What the last two rounds took off, as a share of the rule's seconds."""
    late = [trial for trial in search.trials[-2 * _ROUND :] if trial.is_best and trial.number]
    if not late:
        return 0.0
    earlier = [trial.seconds for trial in search.trials[: -2 * _ROUND] if trial.is_best] or [search.rule_seconds]
    return max(0.0, (earlier[-1] - late[-1].seconds) / search.rule_seconds)
