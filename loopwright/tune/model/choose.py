"""cost_model: a model of cost by its name; "auto" is xgboost's where it is installed, else the ridge model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Final, Protocol

from loopwright.tune.errors import UnknownName
from loopwright.tune.model.experience import Experience
from loopwright.tune.model.prior import PriorModel
from loopwright.tune.model.random_model import RandomModel
from loopwright.tune.model.ridge import RidgeModel
from loopwright.tune.space.space import Batch, Floats


class CostModel(Protocol):
    """Predicts the order of candidates."""

    name: str

    def fit(self, experience: Experience) -> None:
        """Learn from what was measured, of this task and of others."""

    def predict(self, batch: Batch) -> Floats:
        """Log seconds of each candidate, up to a constant of the task."""


def _boosted(seed: int) -> CostModel:
    from loopwright.tune.model.boosted import BoostedModel

    return BoostedModel(seed)


MODELS: Final[dict[str, Callable[[int], CostModel]]] = {
    "prior": lambda seed: PriorModel(),
    "ridge": lambda seed: RidgeModel(),
    "xgb": _boosted,
    "random": RandomModel,
}


def cost_model(name: str = "auto", seed: int = 0) -> CostModel:
    """The model of that name."""
    if name == "auto":
        name = "xgb" if importlib.util.find_spec("xgboost") is not None else "ridge"
    if name not in MODELS:
        raise UnknownName("cost model", name, ["auto", *MODELS])
    return MODELS[name](seed)
