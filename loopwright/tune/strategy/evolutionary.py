"""Evolutionary: rows are drawn and changed, those live on that the model likes, and the best of them are measured.

Of one round, none is nearly another one: where the model is wrong about one, it is wrong about its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopwright.tune.model.choose import CostModel
from loopwright.tune.space.space import Integers, Space
from loopwright.tune.strategy.seen import Seen

_MOST_COMPARED = 512  # of those that the model likes best


@dataclass
class Evolutionary:
    """Generations between two rounds of measurements; a share of each round is drawn at random instead."""

    population: int = 512
    generations: int = 4
    measured_share: float = 0.2  # of the first generation: the fastest rows so far
    random_share: float = 0.15  # of what is proposed
    diversity: float = 0.05  # log seconds by which what is nearly the same as a pick is the worse pick beside it
    name: str = "evolutionary"

    def propose(self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator) -> Integers:
        width = len(space.first())
        if width == 0:
            return np.empty((0, 0), dtype=np.int64)
        parents = seen.best(max(1, int(self.population * self.measured_share)), width)
        rows = np.concatenate([parents, space.sample(self.population - len(parents), random)])
        pool = [rows]
        for _ in range(self.generations):
            scores = model.predict(space.describe(rows))
            weights = np.exp(-(scores - scores.min()) / max(1e-6, float(np.std(scores)) or 1.0))
            chosen = random.choice(len(rows), size=self.population, p=weights / weights.sum())
            rows = space.mutate(rows[chosen], random)
            pool.append(rows)
        fresh = seen.new(np.concatenate(pool))
        if not len(fresh):
            return fresh
        batch = space.describe(fresh)
        scores = model.predict(batch)
        order = np.argsort(scores, kind="stable")[: max(_MOST_COMPARED, count)]
        scale = np.maximum(batch.features.std(axis=0), 1e-9)
        features = batch.features[order] / scale
        costs = scores[order].copy()
        picks: list[int] = []
        for is_lucky in random.random(min(count, len(fresh))) < self.random_share:
            place = int(costs.argmin())
            number = int(random.integers(len(fresh))) if is_lucky else int(order[place])
            if number in picks:
                number = int(order[place])
            picks.append(number)
            costs[order == number] = np.inf
            apart = np.abs(features - batch.features[number] / scale).sum(axis=1)
            costs += self.diversity * np.exp(-apart)
        return fresh[picks]
