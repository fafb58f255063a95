"""Evolutionary: rows are drawn and changed, those live on that the model likes, and the best of them are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopwright.tune.model.choose import CostModel
from loopwright.tune.space.space import Integers, Space
from loopwright.tune.strategy.seen import Seen


@dataclass
class Evolutionary:
    """Generations between two rounds of measurements; a share of each round is drawn at random instead."""

    population: int = 512
    generations: int = 4
    measured_share: float = 0.2  # of the first generation: the fastest rows so far
    random_share: float = 0.1  # of what is proposed
    name: str = "evolutionary"

    def propose(
        self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator
    ) -> Integers:
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
        order = np.argsort(model.predict(space.describe(fresh)), kind="stable")
        lucky = random.random(min(count, len(fresh))) < self.random_share
        picks: list[int] = []
        best = iter(order)
        for is_lucky in lucky:
            number = int(random.integers(len(fresh))) if is_lucky else int(next(best))
            while number in picks:
                number = int(next(best))
            picks.append(number)
        return fresh[picks]
