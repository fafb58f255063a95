"""Schedulers of tasks: which task gets the next measurements.

By default time goes where it can still be gained: a task's share of the whole × how far it is from its roofline × how
well its last rounds went. `RoundRobin` gives every task the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from loopwright.tune.errors import UnknownName


@dataclass(frozen=True)
class Standing:
    """What a scheduler knows of a task."""

    weight: float  # how often a model runs it
    seconds: float  # of the best schedule so far
    roofline: float  # share of the limit that it reaches, from 0 to 1, by the cost model
    gain: float  # of the seconds at the start, what the last rounds took off
    trials: int
    is_done: bool  # nothing is left to try
    work: float = 0.0  # iterations of its blocks: what is known before it is measured


class Scheduler(Protocol):
    """Says whose turn it is."""

    name: str

    def next(self, standings: Sequence[Standing]) -> int | None:
        """The number of the task that is searched next; None where all are done."""


class ByGain:
    """The task with most to gain; tasks that found nothing for some rounds wait longer and longer.

    One that was not measured yet is taken to be as fast as the others are for their work: in a model with many kernels
    the small ones wait until the large ones have had their first rounds.
    """

    name = "gain"

    def next(self, standings: Sequence[Standing]) -> int | None:
        open_tasks = [number for number, one in enumerate(standings) if not one.is_done]
        known = [one for one in standings if one.trials and one.seconds < inf]
        work = sum([one.weight * one.work for one in known])
        pace = sum([one.weight * one.seconds for one in known]) / work if work else 1.0
        return max(open_tasks, key=lambda number: (_promise(standings[number], pace), -number), default=None)


def _promise(one: Standing, pace: float) -> float:
    """Seconds that the next round may take off, about: what is above the roofline, less as trials go by."""
    if one.trials == 0:
        return one.weight * max(one.work, 1.0) * pace
    if one.seconds == inf:
        return 0.0
    above = max(0.03, 1.0 - one.roofline)
    return one.weight * one.seconds * (above * 8.0 / (8.0 + one.trials) + one.gain)


class RoundRobin:
    """Each task in turn."""

    name = "round-robin"

    def next(self, standings: Sequence[Standing]) -> int | None:
        open_tasks = [number for number, one in enumerate(standings) if not one.is_done]
        return min(open_tasks, key=lambda number: (standings[number].trials, number), default=None)


SCHEDULERS: Final[dict[str, Callable[[], Scheduler]]] = {"gain": ByGain, "round-robin": RoundRobin}


def scheduler(name: str = "gain") -> Scheduler:
    """The scheduler of that name."""
    if name not in SCHEDULERS:
        raise UnknownName("task scheduler", name, list(SCHEDULERS))
    return SCHEDULERS[name]()
