"""RandomSearch: rows as the space draws them, whatever a model says."""

from __future__ import annotations

import numpy as np

from loopwright.tune.model.choose import CostModel
from loopwright.tune.space.space import Integers, Space
from loopwright.tune.strategy.seen import Seen


class RandomSearch:
    """Draws."""

    name = "random"

    def propose(
        self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator
    ) -> Integers:
        return seen.new(space.sample(4 * count, random))[:count]
