"""Mutator: changes one decision of a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from loopwright.tune.sketches.part import Part
from loopwright.tune.sketches.samples import Ints
from loopwright.tune.sketches.sketch import Sketch


class Mutator(Part, ABC):
    """Works on decisions as data: a row has a position in the table of each sample."""

    @abstractmethod
    def apply(self, sketch: Sketch, row: Ints, random: np.random.Generator) -> Ints | None:
        """The row with one position changed; None where there is nothing to change."""

    @staticmethod
    def changed(row: Ints, column: int, position: int) -> Ints:
        """A row with another position in one column."""
        result = row.copy()
        result[column] = position
        return result

    @staticmethod
    def one_of(numbers: Sequence[int] | Ints, random: np.random.Generator) -> int:
        """One of some numbers, all alike: what `random.choice` does in ten times as long."""
        return int(numbers[int(random.integers(len(numbers)))])
