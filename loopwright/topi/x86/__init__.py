"""topi.x86: the schedules of operators for x86-64, by name: `schedule_softmax`, `schedule_conv2d_nchw`, ….

All of them are made by rule (`loopwright/topi/rule_schedules.py`, whose `FAMILIES` is the list of names).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from loopwright.topi.rule_schedules import FAMILIES, RuleSchedule, named_schedule
from loopwright.topi.rule_schedules import fast_injective_from_existing as schedule_injective_from_existing

__all__ = ["schedule_injective_from_existing", *[f"schedule_{family}" for family in FAMILIES]]

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Callable[..., RuleSchedule]:
        return named_schedule(__name__, name)
