"""BestFirst: of many rows drawn at random, those that the model likes best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopwright.tune.model.choose import CostModel
from loopwright.tune.space.space import Integers, Space
from loopwright.tune.strategy.seen import Seen


@dataclass
class BestFirst:
    """No generations: the model's list, from its head on."""

    drawn: int = 4096
    name: str = "best-first"

    def propose(
        self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator
    ) -> Integers:
        fresh = seen.new(space.sample(self.drawn, random))
        if not len(fresh):
            return fresh
        order = np.argsort(model.predict(space.describe(fresh)), kind="stable")
        return fresh[order[:count]]
