"""Schedulers of tasks: which task gets the next measurements.

By default time goes where it can still be gained: a task's share of the whole × how far it is from its roofline × how
well its last rounds went. `RoundRobin` gives every task the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


class Scheduler(Protocol):
    """Says whose turn it is."""

    name: str

    def next(self, standings: Sequence[Standing]) -> int | None:
        """The number of the task that is searched next; None where all are done."""


class ByGain:
    """The task with most to gain; tasks that found nothing for some rounds wait longer and longer."""

    name = "gain"

    def next(self, standings: Sequence[Standing]) -> int | None:
        open_tasks = [number for number, one in enumerate(standings) if not one.is_done]
        if not open_tasks:
            return None
        unseen = [number for number in open_tasks if standings[number].trials == 0]
        if unseen:
            return max(unseen, key=lambda number: standings[number].weight)
        return max(open_tasks, key=lambda number: (_promise(standings[number]), -number))


def _promise(one: Standing) -> float:
    """Seconds that the next round may take off, about: what is above the roofline, less as trials go by."""
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
