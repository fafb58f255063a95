"""noise: how far a measurement can be trusted: other load, and machines that become slower.

The A/A comparison itself is part of the race: the incumbent is loaded twice there, and raced against itself.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

_SLOWER: Final = 1.25  # than the machine was: times cannot be compared with earlier ones any more
_ROUNDS: Final = 3  # so often in a row
_DISTURBED: Final = 0.05  # share of the time that others took


@dataclass(frozen=True)
class Load:
    """What others had of the CPUs while something was measured, as shares of the time.

    `waited` is how long our busiest thread could have run and did not; `stolen` is what the hypervisor took.
    """

    waited: float = 0.0
    stolen: float = 0.0
    average: float = 0.0  # of the last minute, as /proc/loadavg has it; what we do ourselves included

    @property
    def is_disturbed(self) -> bool:
        return max(self.waited, self.stolen) > _DISTURBED

    def note(self) -> str:
        """For a record; empty where nothing disturbed."""
        if not self.is_disturbed:
            return ""
        what = f"waited {self.waited:.0%} of the time for a CPU that others had (load {self.average:.1f})"
        return what if self.stolen <= _DISTURBED else f"{what}, the hypervisor took {self.stolen:.0%}"


class LoadMeter:
    """From when it is made, what others have of the CPUs."""

    def __init__(self) -> None:
        self._start, self._ran = time.perf_counter(), time.thread_time()
        self._waited, self._stolen = _waited_seconds(), _stolen_seconds()

    def read(self) -> Load:
        """The load since then."""
        elapsed, ran = max(1e-9, time.perf_counter() - self._start), time.thread_time() - self._ran
        waited, stolen = _waited_seconds(), _stolen_seconds()
        # Without the kernel's figures: this thread is always busy, so what it did not run it waited.
        share = elapsed - ran if waited is None or self._waited is None else waited - self._waited
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        return Load(_share(share / elapsed), _share((stolen - self._stolen) / elapsed), average)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _waited_seconds() -> float | None:
    """Of the thread that waited longest; None where the kernel does not say."""
    try:
        tasks = Path("/proc/self/task").iterdir()
        return max([int((task / "schedstat").read_text().split()[1]) for task in tasks]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _stolen_seconds() -> float:
    """Of one CPU, on average; 0 where the kernel does not say."""
    try:
        with Path("/proc/stat").open() as file:
            ticks = int(file.readline().split()[8])
        return ticks / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    except (OSError, ValueError, IndexError):
        return 0.0


@dataclass
class Drift:
    """The times of one program over a session: is the machine slower now than it was?"""

    best: float = float("inf")
    latest: list[float] = field(default_factory=list)

    def observe(self, seconds: float) -> None:
        """The median of a race or of a measurement."""
        self.best = min(self.best, seconds)
        self.latest = [*self.latest[-(_ROUNDS - 1) :], seconds]

    @property
    def factor(self) -> float:
        """How much slower it is than at its best."""
        return median(self.latest) / self.best if self.latest else 1.0

    @property
    def has_drifted(self) -> bool:
        """Whether it has been slower several times in a row."""
        return len(self.latest) == _ROUNDS and min(self.latest) > _SLOWER * self.best

    def accept(self) -> None:
        """The machine stays as slow as it is now: later times are compared with these."""
        self.best = median(self.latest)

    def note(self) -> str:
        """For a record; empty where there is nothing to say."""
        return f"the machine is {self.factor:.2f} times slower than before" if self.has_drifted else ""
