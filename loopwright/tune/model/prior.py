"""PriorModel: what the rules' own cost model says, with nothing learned."""

from __future__ import annotations

from loopwright.tune.model.experience import Experience
from loopwright.tune.space.space import Batch, Floats


class PriorModel:
    """The analytical model alone."""

    name = "prior"

    def fit(self, experience: Experience) -> None:
        """Nothing is learned."""

    def predict(self, batch: Batch) -> Floats:
        return batch.prior
