"""RidgeModel: a linear correction of the prior, on features and their squares, in closed form.

log(seconds) = prior + w · φ(features) + a constant of the task. With few measurements the ridge keeps w near 0, which
is the prior; with many, w says which sizes the prior prices wrongly on this machine.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright.tune.model.experience import Experience, Table, aligned
from loopwright.tune.space.space import Batch, Floats

_RIDGE: Final = 3.0  # measurements that the belief "the prior is right" counts for


class RidgeModel:
    """Learns at once, from a handful of measurements."""

    name = "ridge"

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._mean: Floats = np.zeros(0)
        self._scale: Floats = np.ones(0)
        self._weights: Floats = np.zeros(0)

    def fit(self, experience: Experience) -> None:
        table = experience.table()
        if table is None:
            self._names = ()
            return
        self._names = table.names
        raw = _with_squares(table.features)
        self._mean = raw.mean(axis=0)
        self._scale = raw.std(axis=0)
        self._scale[self._scale == 0] = 1.0
        features = _within_tasks((raw - self._mean) / self._scale, table)
        square = features.T @ features + _RIDGE * np.eye(features.shape[1])
        self._weights = np.asarray(np.linalg.solve(square, features.T @ table.residual), dtype=np.float64)

    def predict(self, batch: Batch) -> Floats:
        if not self._names:
            return batch.prior
        features = (_with_squares(aligned(batch, self._names)) - self._mean) / self._scale
        result: Floats = batch.prior + features @ self._weights
        return result


def _with_squares(features: Floats) -> Floats:
    return np.concatenate([features, features**2], axis=1)


def _within_tasks(features: Floats, table: Table) -> Floats:
    """What differs between the candidates of a task: the constant of each task is not to be learned."""
    result = features.copy()
    for task in np.unique(table.tasks):
        of_task = table.tasks == task
        result[of_task] -= result[of_task].mean(axis=0)
    return result
