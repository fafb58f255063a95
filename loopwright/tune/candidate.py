"""Candidate: one schedule of a task, as the choices that lead to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopwright.schedule import Schedule, Trace


@dataclass(frozen=True)
class Candidate:
    """`space` says what made it, `choices` what was decided there (plain data); the schedule is made on demand."""

    space: str
    choices: tuple[object, ...]
    schedule: Schedule | None = field(default=None, compare=False, repr=False)

    @property
    def trace(self) -> Trace | None:
        return None if self.schedule is None else self.schedule.trace
