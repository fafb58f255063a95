"""The statistics of races, on samples that are made up: who is faster is known there."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from loopwright.tune.measure.race import Interval, Race, against_itself, copy_of, interval, medians, student


def run(faster: float, spread: float, disturbed: float = 0.0, seed: int = 0, **options: float) -> tuple[str, Race]:
    """A race of kernels of a millisecond, one `faster` times as fast; some samples are disturbed for long."""
    rng, race = random.Random(seed), Race(**{"budget": 0.5, **options})

    def sample(seconds: float) -> float:
        seconds *= math.exp(rng.gauss(0, spread))
        return seconds * (1 + rng.expovariate(0.5)) if rng.random() < disturbed else seconds

    while (verdict := race.verdict()) is None:
        race.add(sample(1e-3), sample(1e-3 / faster))
    return verdict, race


@pytest.mark.parametrize(
    ("alpha", "freedom", "known"),
    [
        (0.05, 1, 12.7062),
        (0.05, 2, 4.3027),
        (0.01, 4, 4.6041),
        (0.05, 10, 2.2281),
        (0.001, 3, 12.924),
        (0.02, 60, 2.39),
    ],
)
def test_students_t_is_that_of_the_tables(alpha, freedom, known):
    assert student(alpha, freedom) == pytest.approx(known, rel=1e-3)


def test_an_interval_covers_the_truth_as_often_as_it_says():
    rng = random.Random(1)
    missed = 0
    for _ in range(400):
        found = interval([math.exp(rng.gauss(0.1, 0.05)) for _ in range(20)], alpha=0.1)
        missed += not found.low <= math.exp(0.1) <= found.high
    assert 0.04 * 400 < missed < 0.17 * 400


def test_disturbed_samples_do_not_move_an_interval():
    ratios = [1.1] * 17 + [0.1, 9.0, 30.0]
    found = interval(ratios)
    assert found.ratio == pytest.approx(1.1) and found.half_width < 0.11
    assert interval([2.0]) == Interval(2.0, 0.0, math.inf)


def test_who_is_slower_is_dropped_at_once():
    for seed in range(20):
        verdict, race = run(0.8, 0.01, seed=seed)
        assert verdict == "slower" and len(race.challenger) <= 6
    verdict, race = run(0.5, 0.02, disturbed=0.1)
    assert verdict == "slower" and len(race.challenger) < 30


def test_who_is_clearly_faster_need_not_run_on():
    verdict, race = run(1.5, 0.01)
    assert verdict == "faster" and race.spent < 0.25
    assert race.interval().low > 1.4
    before, after = medians(race)
    assert before / after == pytest.approx(1.5, rel=0.05)


def test_equals_are_told_apart_by_luck_rarely():
    verdicts = Counter([run(1.0, 0.02, disturbed=0.1, seed=seed)[0] for seed in range(100)])
    assert verdicts["slower"] + verdicts["faster"] <= 4
    assert run(1.0, 0.002)[0] == "equal"


def test_a_small_lead_is_seen_in_noise():
    verdicts = Counter([run(1.05, 0.03, disturbed=0.1, seed=seed)[0] for seed in range(30)])
    assert verdicts["slower"] == 0 and verdicts["faster"] >= 25


def test_a_race_ends_with_its_budget():
    verdict, race = run(1.0, 0.1, budget=0.05)
    assert verdict == "open" and 0.04 < race.spent < 0.06
    assert len(run(1.0, 0.1, most_pairs=7)[1].challenger) == 7
    assert len(run(1.0, 0.1, budget=1e-9)[1].challenger) <= 3


def test_copies_of_a_program_are_compared_with_each_other():
    drifting = [1 + 0.01 * number for number in range(40)]
    found = against_itself(drifting)
    assert found.ratio == pytest.approx(1.0, abs=0.03)
    slower_copy = [1.0, 1.0, 1.1, 1.1] * 10
    assert against_itself(slower_copy).half_width == pytest.approx(0.09, abs=0.01)
    assert against_itself(slower_copy[:8]) is None


def test_copies_that_differ_widen_the_interval():
    rng = random.Random(0)
    ratios = [math.exp(rng.gauss(0.1 if copy_of(number) == 1 else 0.0, 0.005)) for number in range(64)]
    assert interval(ratios).low < 1 < interval(ratios).high
    assert interval([math.exp(rng.gauss(0.025, 0.005)) for _ in range(64)]).low > 1.02


def test_long_calls_that_are_far_behind_are_dropped_after_a_pair_or_two():
    def pairs(*ratios: float, seconds: float = 0.1) -> tuple[str | None, int]:
        race = Race(budget=0.5)
        for number, ratio in enumerate(ratios, 1):
            race.add(seconds * ratio, seconds)
            if (verdict := race.verdict()) is not None:
                return verdict, number
        return None, len(ratios)

    assert pairs(0.8) == ("slower", 1)
    assert pairs(0.95, 0.96) == ("slower", 2)
    assert pairs(0.95, 0.99) == ("open", 2)  # a third pair is beyond the budget, and who is behind does not win by it
    assert pairs(0.95, 0.99, seconds=0.06) == (None, 2)
    assert pairs(0.95, 1.05) == ("open", 2)  # nor who is ahead in one of two
    assert pairs(1.01, 1.05) == ("open", 2)
    assert pairs(1.04, 1.05) == (None, 2)
    assert pairs(0.95, 1.05, seconds=0.06) == (None, 2)
    assert pairs(0.5, 0.5, seconds=1e-3) == (None, 2)  # more samples cost nothing


@pytest.mark.parametrize("seed", range(5))
def test_a_race_that_ends_after_two_pairs_is_one_that_a_third_cannot_win(seed):
    rng, seen = random.Random(seed), Counter()
    for _ in range(100):
        race, ratios = Race(budget=0.5), [math.exp(rng.gauss(0.03, 0.01)) for _ in range(2)]
        for ratio in ratios:
            race.add(0.1 * ratio, 0.1)
        could_win = any(interval([*ratios, math.exp(third / 2000)]).low > 1 for third in range(400))
        seen[could_win] += 1
        assert race.verdict() == "open" if not could_win else race.verdict() is None
    assert min(seen[True], seen[False]) > 10
