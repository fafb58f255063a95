"""Postproc: what finishes a schedule whose decisions are made, or rejects it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from loopwright.schedule import Schedule
from loopwright.tune.sketches.part import Part


class Postproc(Part, ABC):
    """Works on one schedule, after `enter_postproc`. A step that is refused rejects the candidate."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Finish it; False where the candidate is no good."""
