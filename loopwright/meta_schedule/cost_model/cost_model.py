"""CostModel: scores of candidates, larger for faster, learned from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind


class CostModel(Part):
    """Derive from `PyCostModel` for one of yours."""

    CostModelType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def load(self, path: str) -> None:
        """Take up what `save` wrote."""
        raise MethodNotDefined(f"{type(self).__name__}'s load is not defined")

    def save(self, path: str) -> None:
        """Write what was learned."""
        raise MethodNotDefined(f"{type(self).__name__}'s save is not defined")

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Learn from measurements."""
        raise MethodNotDefined(f"{type(self).__name__}'s update is not defined")

    def predict(self, context: Any, candidates: Sequence[Any]) -> np.ndarray:
        """A score for each candidate."""
        raise MethodNotDefined(f"{type(self).__name__}'s predict is not defined")

    @staticmethod
    def create(kind: Any = "xgb", *args: Any, **kwargs: Any) -> Any:
        """A model of a kind: "xgb", "mlp", "random", or "none", which is None."""
        if isinstance(kind, CostModel):
            return kind
        if kind == "none":
            return None
        if kind not in CostModel.kinds:
            raise UnknownKind("cost model", kind, [*CostModel.kinds, "none"])
        return CostModel.kinds[kind](*args, **kwargs)


create = CostModel.create


class PyCostModel(CostModel):
    """What models of the user's derive from."""
