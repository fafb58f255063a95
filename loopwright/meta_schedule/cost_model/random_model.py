"""RandomModel: scores by chance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright.meta_schedule.cost_model.cost_model import CostModel, PyCostModel


class RandomModel(PyCostModel):
    """Scores between 0 and `max_range`; its state can be saved, so that the next scores are the same."""

    def __init__(self, *, seed: int | None = None, path: str | None = None, max_range: int | None = 100) -> None:
        self._numbers = np.random.default_rng(seed)
        self.max_range = max_range
        if path is not None:
            self.load(path)

    def load(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self._numbers.bit_generator.state = json.load(file)

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._numbers.bit_generator.state, file)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Nothing is learned."""

    def predict(self, context: Any, candidates: Sequence[Any]) -> np.ndarray:
        scores: np.ndarray = self._numbers.random(len(candidates)) * (self.max_range or 1)
        return scores


CostModel.kinds["random"] = RandomModel
