"""Postproc: what finishes a schedule whose decisions are made, or rejects it."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownTargetRules
from loopwright.schedule import Schedule


class Postproc(Part):
    """Derive from `PyPostproc` for one of yours."""

    PostprocType = object
    sets: ClassVar[dict[str, Any]] = {}

    def apply(self, sch: Schedule) -> bool:
        """Finish the schedule; False where it is no good."""
        raise MethodNotDefined(f"{type(self).__name__}'s apply is not defined")

    def clone(self) -> Any:
        result = copy.copy(self)
        result._context = None
        return result

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The postprocs for a kind of target, in their order."""
        if kind not in Postproc.sets:
            raise UnknownTargetRules(kind)
        return [make() for make in Postproc.sets[kind]]


create = Postproc.create


class PyPostproc(Postproc):
    """What postprocs of the user's derive from."""
