"""What samples say: medians with 95 % intervals from order statistics, ratios by round, geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Estimate(NamedTuple):
    """A median, and an interval that holds the true one in 95 cases of 100."""

    median: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    """The median and its interval, whatever the distribution is.

    The interval runs from the k-th smallest to the k-th greatest value. The true median is outside with the probability
    of fewer than k heads, or tails, in n throws of a coin; k is the greatest that keeps this below 5 %. Fewer than six
    values cannot promise as much: then the interval is all of them.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank, outside = 0, 0.0
    while rank < (count - 1) // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 0.05:
            break
        rank += 1
    at = max(rank - 1, 0)
    return Estimate(statistics.median(ordered), ordered[at], ordered[count - 1 - at])


def ratio(peer: Sequence[float], ours: Sequence[float]) -> Estimate:
    """How many times faster ours is, from pairs measured in the same round."""
    return estimate([theirs / mine for theirs, mine in zip(peer, ours)])


def geomean(values: Iterable[float]) -> float:
    """The geometric mean, the one average of ratios that does not depend on which side is above the line."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan
