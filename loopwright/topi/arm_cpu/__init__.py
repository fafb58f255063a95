"""topi.arm_cpu: operators and their schedules for ARM, by name: `conv2d_nchw`, `schedule_conv2d_nchw`, ….

The operators are those of topi.nn, the schedules are made by rule (`by_platform.py` has the names).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from loopwright.topi.by_platform import NAMES, named
from loopwright.topi.rule_schedules import fast_injective_from_existing as schedule_injective_from_existing

__all__ = ["schedule_injective_from_existing", *NAMES]

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Callable[..., object]:
        return named(__name__, name)
