"""Mutator: changes one decision of a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random

from loopwright.tune.sketches.part import Part
from loopwright.tune.sketches.sketch import Sketch

Decisions = tuple[object, ...]


class Mutator(Part, ABC):
    """Works on decisions as data; the schedule they make is proved when it is made."""

    @abstractmethod
    def apply(self, sketch: Sketch, decisions: Decisions, random: Random) -> Decisions | None:
        """The decisions with one changed; None where there is nothing to change."""
