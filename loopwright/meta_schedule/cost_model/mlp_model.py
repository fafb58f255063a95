"""MLPModel: a small neural network, which needs torch."""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.cost_model.cost_model import CostModel, PyCostModel
from loopwright.runtime.errors import NotBuilt


class MLPModel(PyCostModel):
    """Not built yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotBuilt("meta_schedule.cost_model.MLPModel", hint='it needs torch; take "xgb" or "random"')


CostModel.kinds["mlp"] = MLPModel
