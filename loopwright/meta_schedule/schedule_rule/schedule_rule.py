"""ScheduleRule: what may be done with one block, as alternatives.

A rule does what the peer's rule of that name does, step by step, so that design spaces are the same. `sketch_rules` are
the rules of `loopwright.tune` that stand for it in a search: they know packing, and what may not be done twice.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownTargetRules
from loopwright.schedule import BlockRV, Schedule
from loopwright.target import Target, describe
from loopwright.tune.sketches.rules.rule import ScheduleRule as SketchRule


class ScheduleRule(Part):
    """Derive from `PyScheduleRule` for one of yours."""

    ScheduleRuleType = object
    sets: ClassVar[dict[str, Any]] = {}

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Schedules that go on from `sch`, which itself is one of them where there is nothing to do."""
        raise MethodNotDefined(f"{type(self).__name__}'s apply is not defined")

    def clone(self) -> Any:
        result = copy.copy(self)
        result._context = None
        return result

    def sketch_rules(self) -> Sequence[SketchRule] | None:
        """The rules of a sketch space that stand for it; None where none do."""
        return None

    @property
    def cores(self) -> int:
        """Those of the target."""
        target = getattr(self._context, "target", None) or Target("llvm")
        return describe(target).num_cores if str(target.kind) == "llvm" else 1

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules for a kind of target, in their order."""
        if kind not in ScheduleRule.sets:
            raise UnknownTargetRules(kind)
        rules: list[ScheduleRule] = ScheduleRule.sets[kind]()
        return rules


create = ScheduleRule.create


class PyScheduleRule(ScheduleRule):
    """What rules of the user's derive from."""
