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
    """What others had of the CPUs while something was measured: `waited` is the share of time our threads did not run
    although they could."""

    waited: float = 0.0
    average: float = 0.0  # of the last minute, as /proc/loadavg has it; what we do ourselves included

    @property
    def is_disturbed(self) -> bool:
        return self.waited > _DISTURBED

    def note(self) -> str:
        """For a record; empty where nothing disturbed."""
        return f"others had {self.waited:.0%} of the CPU time (load {self.average:.1f})" if self.is_disturbed else ""


class LoadMeter:
    """From when it is made, how long threads of this process waited for a CPU."""

    def __init__(self) -> None:
        self._start, self._waited = time.perf_counter(), _waited_seconds()

    def read(self) -> Load:
        elapsed = max(1e-9, time.perf_counter() - self._start)
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        return Load(max(0.0, _waited_seconds() - self._waited) / elapsed, average)


def _waited_seconds() -> float:
    """Of the thread that waited longest; 0 where the kernel does not say."""
    longest = 0
    try:
        for thread in Path("/proc/self/task").iterdir():
            longest = max(longest, int((thread / "schedstat").read_text().split()[1]))
    except (OSError, ValueError, IndexError):
        return 0.0
    return longest / 1e9


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

    def note(self) -> str:
        """For a record; empty where there is nothing to say."""
        return f"the machine is {self.factor:.2f} times slower than before" if self.has_drifted else ""
