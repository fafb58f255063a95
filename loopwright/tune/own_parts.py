"""own_parts: a strategy, model or scheduler of the user's, whose answers are looked at before a search uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright.tune.errors import WrongAnswer
from loopwright.tune.model import CostModel, Experience
from loopwright.tune.scheduler import Scheduler, Standing
from loopwright.tune.space.space import Batch, Floats, Integers, Space
from loopwright.tune.strategy import Strategy
from loopwright.tune.strategy.seen import Seen


class CheckedStrategy:
    """Proposes what `strategy` does, if they are rows of the space."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy, self.name = strategy, _name(strategy)

    def propose(self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator) -> Integers:
        answer: Any = self.strategy.propose(space, model, seen, count, random)
        width = len(space.first())
        try:
            rows = np.asarray(answer)
            is_fine = rows.size == 0 or (rows.dtype.kind in "iu" and rows.shape[1:] == (width,) and rows.min() >= 0)
            for row in rows if is_fine else ():
                space.candidate(row)
        except (IndexError, TypeError, ValueError):
            is_fine = False
        if not is_fine:
            wanted = f"rows of {width} positions, each among the candidates of its point: `space.sample` draws such"
            raise WrongAnswer(f"{self.name}.propose", answer, wanted)
        result: Integers = rows.astype(np.int64).reshape(-1, width)
        return result


class CheckedModel:
    """Predicts what `model` does, if those are numbers, one for each candidate."""

    def __init__(self, model: CostModel) -> None:
        self.model, self.name = model, _name(model)

    def fit(self, experience: Experience) -> None:
        self.model.fit(experience)

    def predict(self, batch: Batch) -> Floats:
        answer: Any = self.model.predict(batch)
        try:
            scores = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.full(1, np.nan)
        if scores.shape != (len(batch),) or np.isnan(scores).any():
            raise WrongAnswer(f"{self.name}.predict", answer, f"{len(batch)} numbers, one for each row of the batch")
        return scores


class CheckedScheduler:
    """Gives the turn that `scheduler` gives, if it is that of a task."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.name = scheduler, _name(scheduler)

    def next(self, standings: Sequence[Standing]) -> int | None:
        number = self.scheduler.next(standings)
        is_count = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if number is not None and not (is_count and 0 <= number < len(standings)):
            wanted = f"the number of a task, from 0 to {len(standings) - 1}, or None"
            raise WrongAnswer(f"{self.name}.next", number, wanted)
        return number


def _name(part: object) -> str:
    return str(getattr(part, "name", type(part).__name__))
