"""Strategies propose each row once, find the good ones, and say so when a space is used up."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.tune.errors import UnknownName
from loopwright.tune.model import PriorModel
from loopwright.tune.space import Batch
from loopwright.tune.strategy import STRATEGIES, strategy
from loopwright.tune.strategy.seen import Seen


class Grid:
    """Points of a square; the prior is off, since the best one is at (12, 3)."""

    name = "grid"
    sides = 16

    @property
    def size(self) -> float:
        return float(self.sides**2)

    def first(self):
        return np.zeros(2, dtype=np.int64)

    def sample(self, count, random):
        return random.integers(self.sides, size=(count, 2))

    def mutate(self, rows, random):
        result = rows.copy()
        column = random.integers(2, size=len(rows))
        steps = random.integers(-2, 3, size=len(rows))
        result[np.arange(len(rows)), column] = np.clip(result[np.arange(len(rows)), column] + steps, 0, self.sides - 1)
        return result

    def describe(self, rows):
        return Batch(rows, rows.astype(float), ("x", "y"), self.cost(rows))

    def cost(self, rows):
        return np.hypot(rows[:, 0] - 12, rows[:, 1] - 3)


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_row_once_until_there_are_no_more(name):
    space, seen, random = Grid(), Seen(), np.random.default_rng(0)
    space.sides = 4
    rows = 0
    for _ in range(60):
        proposed = strategy(name).propose(space, PriorModel(), seen, 3, random)
        for row in proposed:
            assert row not in seen
            seen.note(row, 1.0)
        rows += len(proposed)
    assert rows == 16
    assert len(strategy(name).propose(space, PriorModel(), seen, 3, random)) == 0


@pytest.mark.parametrize("name", ["evolutionary", "best-first"])
def test_the_best_by_the_model_comes_first(name):
    space, seen = Grid(), Seen()
    chosen = strategy(name)
    if name == "evolutionary":
        chosen.random_share = 0.0
    proposed = chosen.propose(space, PriorModel(), seen, 4, np.random.default_rng(1))
    assert space.cost(proposed).max() <= 1.0


def test_the_same_seed_proposes_the_same():
    for name in STRATEGIES:
        rounds = [
            strategy(name).propose(Grid(), PriorModel(), Seen(), 8, np.random.default_rng(5)).tolist() for _ in range(2)
        ]
        assert rounds[0] == rounds[1]


def test_a_strategy_that_does_not_exist():
    with pytest.raises(UnknownName, match="there is no strategy 'luck'"):
        strategy("luck")


def test_what_is_proposed_together_differs():
    """Candidates in pairs that are all but the same: one of each pair comes before the second of any."""

    class Pairs(Grid):
        sides = 40

        def cost(self, rows):
            return 0.001 * (rows[:, 0] // 2)

        def describe(self, rows):
            features = np.stack([100.0 * (rows[:, 0] // 2), rows[:, 0] % 2 * 1e-3], axis=1)
            return Batch(rows, features, ("x", "y"), self.cost(rows))

        def sample(self, count, random):
            rows = super().sample(count, random)
            rows[:, 1] = 0
            return rows

        mutate = staticmethod(lambda rows, random: rows)

    chosen = strategy("evolutionary")
    chosen.random_share = 0.0
    proposed = chosen.propose(Pairs(), PriorModel(), Seen(), 4, np.random.default_rng(1))
    assert len({int(row[0]) // 2 for row in proposed}) == 4
