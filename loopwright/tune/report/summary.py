"""summary: what a search has to show for itself, task by task, as plain data that text and pages are made of.

found = summary_of(session)
found.tasks[0].speed_up, found.tasks[0].curve, found.as_data()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from loopwright.analysis.costs import CostUnknown, estimate_tir_flops
from loopwright.runtime.json_text import JsonObject
from loopwright.tune.report.differences import Difference, differences
from loopwright.tune.search import TaskSearch, Trial
from loopwright.tune.session import Session
from loopwright.tune.space import RuleSpace


@dataclass(frozen=True)
class Limit:
    """The roofline of a task by the cost model: its bound, and how much of it is reached before and after."""

    bound: str  # "arithmetic" or "memory"
    rule: float  # share that the model expects of the rule's schedule
    best: float  # that times the speed-up: no more than 1 unless the model is wrong


@dataclass(frozen=True)
class TaskSummary:
    """A task; seconds are those of one call, inf where the rule's schedule could not be measured."""

    name: str
    key: str
    weight: float
    share: float  # of the time of all tasks, by rule
    rule_seconds: float
    seconds: float
    speed_up: float
    noise: float
    trials: int
    space: str  # of the best schedule
    is_rule: bool  # the best schedule is the rule's own
    flops: float | None  # of one call
    limit: Limit | None
    curve: tuple[tuple[int, float, float], ...]  # trial, its speed and the best so far, relative to the rule
    failures: tuple[tuple[str, int, str], ...]  # kind, how many, one of the messages
    duplicates: int  # proposals that were the same program as an earlier one
    notes: tuple[str, ...]
    differences: tuple[Difference, ...]

    def rate(self, seconds: float) -> float | None:
        """Operations a second at so many seconds a call."""
        return self.flops / seconds if self.flops and isfinite(seconds) and seconds > 0 else None

    def as_data(self) -> JsonObject:
        """For `--json`."""
        limit = self.limit
        return {
            "name": self.name,
            "key": self.key,
            "weight": self.weight,
            "share": self.share,
            "rule_seconds": _finite(self.rule_seconds),
            "seconds": _finite(self.seconds),
            "speed_up": self.speed_up,
            "noise": self.noise,
            "trials": self.trials,
            "space": self.space,
            "flops": self.flops,
            "roofline": None if limit is None else {"bound": limit.bound, "rule": limit.rule, "best": limit.best},
            "curve": [list(point) for point in self.curve],
            "failures": {kind: count for kind, count, _ in self.failures},
            "duplicates": self.duplicates,
            "differences": [one._asdict() for one in self.differences],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Summary:
    """All tasks that were begun, those first that took most time by rule."""

    tasks: tuple[TaskSummary, ...]
    waiting: int  # tasks that were not begun
    trials: int
    spent: float  # seconds of the search
    speed_up: float  # of all tasks together, each as often as it runs
    geomean: float
    is_interrupted: bool
    target: str
    settings: dict[str, object]
    seed: int

    @property
    def before(self) -> float:
        """Seconds of all tasks by rule, each as often as it runs."""
        return sum([task.weight * task.rule_seconds for task in self.tasks if isfinite(task.rule_seconds)])

    @property
    def after(self) -> float:
        """Seconds of all tasks as they are now."""
        return sum([task.weight * task.seconds for task in self.tasks if isfinite(task.seconds)])

    def as_data(self) -> JsonObject:
        """For `--json`."""
        return {
            "tasks": [task.as_data() for task in self.tasks],
            "waiting": self.waiting,
            "trials": self.trials,
            "spent": self.spent,
            "before": self.before,
            "after": self.after,
            "speed_up": self.speed_up,
            "geomean": self.geomean,
            "interrupted": self.is_interrupted,
            "target": self.target,
            "threads": self.settings.get("threads"),
            "cache": self.settings.get("cache"),
            "seed": self.seed,
        }


def summary_of(session: Session, explained: bool = True) -> Summary:
    """What the session has so far; where it is not `explained`, no differences are looked for, which takes its time."""
    total = sum([_weighted(search) for search in session.searches])
    tasks = [_task(search, _weighted(search) / total if total else 0.0, explained) for search in session.searches]
    tasks.sort(key=lambda task: -task.share)
    return Summary(
        tuple(tasks),
        len(session.tasks) - len(session.searches),
        session.trials,
        session.seconds,
        session.speed_up,
        session.geomean,
        session.is_interrupted,
        str(session.tasks[0].target),
        dict(session.measurer.settings),
        session.seed,
    )


def _weighted(search: TaskSearch) -> float:
    return search.task.weight * search.rule_seconds if search.rule_seconds < inf else 0.0


def _task(search: TaskSearch, share: float, explained: bool) -> TaskSummary:
    task, incumbent = search.task, search.incumbent
    failures, duplicates = _failures(search.trials)
    return TaskSummary(
        task.name,
        task.key,
        task.weight,
        share,
        search.rule_seconds,
        search.seconds,
        search.speed_up,
        search.noise,
        search.spent,
        "" if incumbent is None else incumbent.candidate.space,
        incumbent is None or incumbent.built is search.rule,
        _flops(search),
        limit_of(search),
        tuple(curve(search)),
        failures,
        duplicates,
        tuple(search.notes),
        tuple(differences(search)) if explained else (),
    )


def curve(search: TaskSearch) -> list[tuple[int, float, float]]:
    """For each trial its number, its speed and that of the best so far, relative to the rule; 0 where it failed."""
    best, result = 1.0, []
    for trial in search.trials:
        speed = search.rule_seconds / trial.seconds if isfinite(trial.seconds) else 0.0
        if trial.is_best:
            best = max(best, speed)
        result.append((trial.number, speed, best))
    return result


def limit_of(search: TaskSearch) -> Limit | None:
    """The roofline of the blocks that are expected to take most time, for all of them together."""
    space = search.spaces[0]
    if not isinstance(space, RuleSpace):
        return None
    limits = [one.roofline for one in space.plan.decisions if one.roofline is not None and one.roofline.expected > 0]
    if not limits:
        return None
    share = min(1.0, sum([max(one.arithmetic, one.memory) for one in limits]) / sum([one.expected for one in limits]))
    return Limit(max(limits, key=lambda one: one.expected).bound, share, share * search.speed_up)


def _flops(search: TaskSearch) -> float | None:
    try:
        return float(estimate_tir_flops(search.task.function)) or None
    except CostUnknown:
        return None


def _failures(trials: Sequence[Trial]) -> tuple[tuple[tuple[str, int, str], ...], int]:
    """Failures by kind, the most frequent first, and how many proposals were no new programs."""
    found = [trial.failure for trial in trials if trial.failure is not None]
    counts = Counter([failure.kind for failure in found])
    duplicates = counts.pop("duplicate", 0)
    first = {failure.kind: failure.message for failure in reversed(found)}
    return tuple([(kind, count, first[kind]) for kind, count in counts.most_common()]), duplicates


def _finite(seconds: float) -> float | None:
    return seconds if isfinite(seconds) else None
