"""strategy: a strategy by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from loopwright.tune.errors import UnknownName
from loopwright.tune.model.choose import CostModel
from loopwright.tune.space.space import Integers, Space
from loopwright.tune.strategy.best_first import BestFirst
from loopwright.tune.strategy.evolutionary import Evolutionary
from loopwright.tune.strategy.random_search import RandomSearch
from loopwright.tune.strategy.seen import Seen


class Strategy(Protocol):
    """Says what to measure next."""

    name: str

    def propose(
        self, space: Space, model: CostModel, seen: Seen, count: int, random: np.random.Generator
    ) -> Integers:
        """At most `count` rows that were not proposed before, the most promising first; none where all were."""


STRATEGIES: Final[dict[str, Callable[[], Strategy]]] = {
    "evolutionary": Evolutionary,
    "best-first": BestFirst,
    "random": RandomSearch,
}


def strategy(name: str = "evolutionary") -> Strategy:
    """The strategy of that name."""
    if name not in STRATEGIES:
        raise UnknownName("strategy", name, list(STRATEGIES))
    return STRATEGIES[name]()
