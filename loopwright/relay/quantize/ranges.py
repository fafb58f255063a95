"""ranges: how far the integers of a tensor reach, from the numbers that were seen in it.

    seen = Seen()
    for sample in samples: seen.add(sample)
    seen.reach("percentile", 99.99, levels=128)

All numbers seen (`min_max`), a share of them (`percentile`), or as far as loses least of their distribution
(`kl_divergence`): a reach that is too large rounds much, one that is too small cuts much off.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_BINS: Final = 2048


class Seen:
    """The magnitudes of the numbers of a tensor: the largest, and how often each occurs."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.end = 0.0  # of the last bin
        self.counts = np.zeros(_BINS, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Count the numbers of one sample; what is no number is left out."""
        sizes = np.abs(values.reshape(-1).astype(np.float64))
        sizes = sizes[np.isfinite(sizes)]
        most = float(sizes.max(initial=0.0))
        if most == 0.0:
            self.counts[0] += sizes.size
            return
        self.largest = max(self.largest, most)
        if self.end == 0.0:
            self.end = most
        while self.end < most:  # twice as far: two bins become one
            self.end *= 2
            merged = self.counts.reshape(-1, 2).sum(1)
            self.counts = np.concatenate([merged, np.zeros(_BINS - merged.size, np.int64)])
        self.counts += np.histogram(sizes, bins=_BINS, range=(0.0, self.end))[0]

    def reach(self, mode: str, percentile: float, levels: int) -> float:
        """The largest magnitude that is to be told from the others; 1 for a tensor of nothing but zeros."""
        if self.largest == 0.0:
            return 1.0
        if mode == "percentile":
            wanted = self.counts.sum() * percentile / 100
            location = int(np.searchsorted(np.cumsum(self.counts), wanted))
            return min(self.largest, (min(location, _BINS - 1) + 1) * self.end / _BINS)
        if mode == "kl_divergence":
            return min(self.largest, self._least_divergence(levels) * self.end / _BINS)
        return self.largest

    def _least_divergence(self, levels: int) -> int:
        """How many bins to reach over, so that the distribution in `levels` steps differs least from the true one."""
        last = int(np.flatnonzero(self.counts)[-1]) + 1
        # Zeros are exact whatever the scale is; after a relu they would outweigh all others.
        counts = self.counts.astype(np.float64)
        counts[0] = min(counts[0], counts[1:].max(initial=0.0) or counts[0])
        best, result = np.inf, last
        for bins in range(min(levels, last), last + 1, max(1, last // 256)):
            true = counts[:bins].copy()
            true[-1] += counts[bins:].sum()
            lost = _divergence(true, _in_steps(counts[:bins], levels))
            if lost <= best:
                best, result = lost, bins
        return result


def _in_steps(counts: np.ndarray, levels: int) -> np.ndarray:
    """The counts after rounding to `levels` steps: each step's count is shared out over its bins that are not empty."""
    step = np.minimum(np.arange(counts.size) * levels // counts.size, levels - 1)
    is_there = counts > 0
    total = np.bincount(step, counts, levels)
    number = np.bincount(step, is_there, levels)
    return np.where(is_there, (total / np.maximum(number, 1))[step], 0.0)


def _divergence(true: np.ndarray, other: np.ndarray) -> float:
    """The Kullback-Leibler divergence, where an empty bin of the other counts as a little of one."""
    one, two = true / true.sum(), np.maximum(other / max(other.sum(), 1e-300), 1e-9)
    seen = one > 0
    return float(np.sum(one[seen] * np.log(one[seen] / two[seen])))
