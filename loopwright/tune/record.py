"""Record: what a measurement of one candidate said, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Record:
    """A trace, proved again when it is applied, and the seconds it took; none, and an error, where it failed."""

    key: str  # of the task
    fingerprint: str  # of its target
    trace: list[Any]  # `Trace.as_json()`
    seconds: tuple[float, ...] = ()
    error: str = ""
    space: str = ""
    choices: tuple[Any, ...] = ()
    noise: float = 0.0  # how far an A/A comparison was from 1 when this was measured
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    time: float = 0.0  # seconds since 1970
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)  # of the measurement: threads, cache ("warm" or "cold")

    @property
    def median(self) -> float:
        """Seconds of one run; infinite where the candidate failed."""
        return median(self.seconds) if self.seconds else float("inf")


def is_final(record: Record) -> bool:
    """Whether it says who stood at the end of a search, after the last races."""
    return record.settings.get("final") is True
