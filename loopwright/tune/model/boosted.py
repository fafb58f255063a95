"""BoostedModel: gradient-boosted trees (xgboost) on what the prior got wrong."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from loopwright.tune.model.experience import Experience, aligned
from loopwright.tune.space.space import Batch, Floats

_FEWEST: Final = 24  # measurements before trees say more than a line: until then the prior stands
_ROUNDS: Final = 120


class BoostedModel:
    """Learns thresholds that no line has: what fits into a cache, what fills registers."""

    name = "xgb"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._names: tuple[str, ...] = ()
        self._trees: Any = None

    def fit(self, experience: Experience) -> None:
        import xgboost  # loaded when a search uses it

        table = experience.table()
        if table is None or len(table.residual) < _FEWEST:
            self._trees = None
            return
        self._names = table.names
        settings = {
            "max_depth": 5,
            "eta": 0.1,
            "min_child_weight": 2,
            "lambda": 2.0,
            "subsample": 0.9,
            "seed": self.seed,
            "nthread": 1,
            "verbosity": 0,
        }
        self._trees = xgboost.train(settings, xgboost.DMatrix(table.features, label=table.residual), _ROUNDS)

    def predict(self, batch: Batch) -> Floats:
        if self._trees is None:
            return batch.prior
        import xgboost

        learned = self._trees.predict(xgboost.DMatrix(aligned(batch, self._names)))
        result: Floats = batch.prior + np.asarray(learned, dtype=np.float64)
        return result
