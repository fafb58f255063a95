"""RandomModel: an order drawn at random, which any model has to beat."""

from __future__ import annotations

import numpy as np

from loopwright.tune.model.experience import Experience
from loopwright.tune.space.space import Batch, Floats


class RandomModel:
    """Believes nothing."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def fit(self, experience: Experience) -> None:
        """Nothing is learned."""

    def predict(self, batch: Batch) -> Floats:
        return self._random.random(len(batch))
