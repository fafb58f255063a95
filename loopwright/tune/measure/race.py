"""race: is the challenger faster? What interleaved pairs of samples say, looked at again and again.

    race = Race(budget=0.5)
    while (verdict := race.verdict()) is None:
        race.add(seconds_of_incumbent, seconds_of_challenger)
    race.interval()             how many times faster the challenger is: ratio, low, high

A pair is measured within a millisecond or so, so what disturbs the machine for longer disturbs both alike. The mean of
the logarithms of the ratios is trimmed (20 % on either side) and its interval is that of Tukey and McLaughlin, so a few
disturbed pairs move neither. Who looks often is fooled often: look k is made at confidence 1 - α · 6 / (π k)², which
adds up to α over any number of looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, median, variance
from typing import Final, NamedTuple

_TRIMMED: Final = 0.2
_MANY: Final = 12  # pairs, for some to be left out
_LEAST: Final = 3  # pairs before the first look
_FAR_BEHIND: Final = (0.92, 0.98)  # ratios after one pair and after two that are enough where pairs take long
_LONG: Final = 0.2  # of the budget: so long is a pair of which three are too many
_GROWTH: Final = 1.3  # of the number of pairs between two looks
_RESOLUTION: Final = 2e-4  # of one sample: equal figures are not exact ones
_LEAST_ITSELF: Final = 6  # ratios of an A/A comparison
ALPHA: Final = 0.02
COPIES: Final = 4  # of each program, of which samples are taken in turn
_TOLD_BY_COPIES: Final = 4 * COPIES  # rounds that show whether copies differ
_OF_PLACEMENT: Final = 0.03  # what copies rarely differ by


class Interval(NamedTuple):
    """How many times faster the challenger is, and where that lies at the confidence asked for."""

    ratio: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """How far the interval reaches from 1: of an A/A comparison, the noise."""
        return max(abs(self.low - 1), abs(self.high - 1))


def interval(ratios: Sequence[float], alpha: float = ALPHA) -> Interval:
    """The trimmed mean of ratios (of their logarithms), and its interval at confidence 1 - alpha.

    Ratios are those of rounds, in order. Where copies of the programs differ by more than rounds of one copy explain,
    the interval is that of the copies.
    """
    placed = _error_of_placement([math.log(ratio) for ratio in ratios])
    logs = sorted([math.log(ratio) for ratio in ratios])
    count = len(logs)
    cut = int(_TRIMMED * count) if count >= _MANY else 0
    kept = logs[cut : count - cut]
    mean = math.fsum(kept) / len(kept)
    if count < 2:
        return Interval(math.exp(mean), 0.0, math.inf)
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = math.fsum(winsorized) / count
    square = math.fsum([(one - centre) ** 2 for one in winsorized]) / (count - 1) + _RESOLUTION**2
    error = max(placed, math.sqrt(square / count) / (1 - 2 * cut / count))
    reach = min(700.0, student(alpha, len(kept) - 1) * error)
    return Interval(math.exp(mean), _exp(mean - reach), _exp(mean + reach))


def _error_of_placement(logs: Sequence[float]) -> float:
    """The standard error of the mean over copies; 0 where there are too few rounds to tell."""
    if len(logs) < _TOLD_BY_COPIES:
        return 0.0
    of_copies = [[log for number, log in enumerate(logs) if copy_of(number) == copy] for copy in range(COPIES)]
    return math.sqrt(variance([median(of_copy) for of_copy in of_copies]) / COPIES)


def copy_of(number: int) -> int:
    """Which copy of each program a round is of: two rounds of each in turn, so that each is met in either order."""
    return number // 2 % COPIES


def _exp(value: float) -> float:
    return math.exp(max(-700.0, min(700.0, value)))


def student(alpha: float, freedom: int) -> float:
    """What Student's t exceeds, to either side, with probability alpha (Hill 1970, algorithm 396 of the CACM)."""
    n = float(freedom)
    if freedom == 1:
        return math.cos(alpha * math.pi / 2) / math.sin(alpha * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (alpha * (2 - alpha)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    x = d * alpha
    y = x ** (2 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(alpha / 2)
        y = x * x
        if freedom < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) / (
            n + 2
        ) + 1 / y
    return math.sqrt(n * y)


@dataclass
class Race:
    """Pairs of samples so far, and when to stop; `budget` is in seconds of samples."""

    budget: float = 0.5
    most_pairs: int = 1000
    narrow: float = 0.02  # a lead is known well enough when its interval is no wider than this, or
    of_lead: float = 0.1  # than this share of it
    equal: float = 0.005  # nobody cares about less
    alpha: float = ALPHA
    incumbent: list[float] = field(default_factory=list)
    challenger: list[float] = field(default_factory=list)
    spent: float = 0.0
    looks: int = 0
    _next: int = _LEAST

    def add(self, incumbent: float, challenger: float, spent: float | None = None) -> None:
        """Seconds of one call of each, and what it took to measure them."""
        self.incumbent.append(incumbent)
        self.challenger.append(challenger)
        self.spent += incumbent + challenger if spent is None else spent

    def interval(self, alpha: float | None = None) -> Interval:
        """How many times faster the challenger is."""
        pairs = zip(self.incumbent, self.challenger, strict=True)
        return interval([one / other for one, other in pairs], self.alpha if alpha is None else alpha)

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget or len(self.challenger) >= self.most_pairs

    def verdict(self) -> str | None:
        """ "slower", "faster" or "equal" as soon as that is known, "open" when the budget is spent; None: go on."""
        count = len(self.challenger)
        if count < _LEAST:
            if self._is_far_behind(count):
                return "slower"
            return "open" if self._is_hopeless(count) else None
        if count >= self._next or self.is_over:
            self._next = max(count + 1, math.ceil(count * _GROWTH))
            self.looks += 1
            _, low, high = self.interval(self.alpha * 6 / (math.pi * self.looks) ** 2)
            # With few rounds of each copy it may be their placement that differs.
            unsure = _OF_PLACEMENT if count < _TOLD_BY_COPIES else 0.0
            if high < 1 - unsure:
                return "slower"
            if low > 1 + unsure and (self.is_over or high - low <= max(self.narrow, self.of_lead * (low - 1)) * low):
                return "faster"
            if low > 1 - self.equal and high < 1 + self.equal:
                return "equal"
        return "open" if self.is_over else None

    def is_long(self, seconds: float) -> bool:
        """Whether that is much of the budget for one pair."""
        return seconds >= _LONG * self.budget

    def _is_far_behind(self, count: int) -> bool:
        """Whether pairs of long calls, which a disturbance hardly moves, all say that the challenger is slower.

        A disturbance of the only pair may lose a good one; the time of many slow ones is saved.
        """
        if not count or not self.is_long(self.spent / count):
            return False
        pairs = zip(self.incumbent, self.challenger, strict=True)
        return all([one < _FAR_BEHIND[count - 1] * other for one, other in pairs])

    def _is_hopeless(self, count: int) -> bool:
        """Whether the budget lasts for one pair more, and whatever it says, three cannot show a lead.

        Two logarithms of ratios lie `apart` to either side of their `mean`. The third that shows most is a bit larger
        than these, and makes Student's t² = 1 + 3 (mean / apart)².
        """
        if count != _LEAST - 1 or self.spent * (count + 1) <= self.budget * count:
            return False
        first, second = [math.log(a / b) for a, b in zip(self.incumbent, self.challenger, strict=True)]
        mean, apart = (first + second) / 2, abs(first - second) / 2
        return mean <= 0 or 3 * mean**2 < (student(self.alpha, _LEAST - 1) ** 2 - 1) * apart**2


def against_itself(samples: Sequence[float]) -> Interval | None:
    """An A/A comparison: samples of one program in rounds, two of one copy of it and two of another, in turn.

    None where there are too few of them.
    """
    groups = [samples[k : k + 4] for k in range(0, len(samples) - 3, 4)]
    # The outer two and the inner two, so that what drifts is not taken for a difference of the copies.
    ratios = [ratio for a, b, c, d in groups for ratio in (a / d, b / c)]
    return interval(ratios) if len(ratios) >= _LEAST_ITSELF else None


def medians(race: Race) -> tuple[float, float]:
    """Seconds of a call of the incumbent, and of the challenger."""
    return median(race.incumbent), median(race.challenger)
