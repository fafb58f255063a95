"""Seen: the rows of a space that were proposed already, and how long those took that were measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from loopwright.tune.space.space import Integers


@dataclass
class Seen:
    """What is known of the rows of one space."""

    seconds: dict[bytes, float] = field(default_factory=dict)  # inf for what failed, or waits to be measured

    def __contains__(self, row: Integers) -> bool:
        return row.tobytes() in self.seconds

    def note(self, row: Integers, seconds: float = inf) -> None:
        self.seconds[np.ascontiguousarray(row, dtype=np.int64).tobytes()] = seconds

    def forget(self, rows: Integers) -> None:
        """Rows that were proposed, and will not be measured."""
        for row in np.ascontiguousarray(rows, dtype=np.int64):
            self.seconds.pop(row.tobytes(), None)

    def new(self, rows: Integers) -> Integers:
        """The rows that are not known yet, each once."""
        fresh: dict[bytes, Integers] = {}
        for row in np.ascontiguousarray(rows, dtype=np.int64):
            key = row.tobytes()
            if key not in self.seconds:
                fresh.setdefault(key, row)
        return np.array(list(fresh.values()), dtype=np.int64).reshape(len(fresh), rows.shape[1])

    def best(self, count: int, width: int) -> Integers:
        """The fastest rows that were measured, the fastest first."""
        order = sorted([(took, key) for key, took in self.seconds.items() if took < inf])[:count]
        return np.array([np.frombuffer(key, dtype=np.int64) for _, key in order], dtype=np.int64).reshape(-1, width)
