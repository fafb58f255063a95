"""apply_custom_rule: a block may say itself how it is scheduled, by its annotation `schedule_rule`.

T.block_attr({"schedule_rule": "mine"})        a function that ApplyCustomRule knows by that name
T.block_attr({"schedule_rule": "None"})        no rule touches the block
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright.ir import StringImm
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches.errors import UnknownScheduleRule
from loopwright.tune.sketches.rules.rule import ScheduleRule

SCHEDULE_RULE = "schedule_rule"
CustomRule = Callable[[Schedule, BlockRV], list[Schedule]]


class ApplyCustomRule(ScheduleRule):
    """The functions by their names are given, so that two spaces may have different ones."""

    name = "apply_custom_rule"

    def __init__(self, functions: Mapping[str, CustomRule] | None = None) -> None:
        self.functions = dict(functions or {})

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = custom_rule_of(sch, block)
        if name is None or name == "None":
            return [sch]
        if name not in self.functions:
            raise UnknownScheduleRule(name, list(self.functions))
        sch.unannotate(block, SCHEDULE_RULE)
        return self.functions[name](sch, block)


def custom_rule_of(sch: Schedule, block: BlockRV) -> str | None:
    """The name of the rule that a block asks for."""
    value = sch.get(block).annotations.get(SCHEDULE_RULE)
    return str(value.value if isinstance(value, StringImm) else value) if value is not None else None
