"""topi.cuda: operators and their schedules for NVIDIA GPUs, by name: `softmax`, `schedule_softmax`, ….

The operators are those of topi.nn, the schedules are made by rule (`by_platform.py` has the names), for the current
target where it is a cuda target, else for "cuda".
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from loopwright.topi.by_platform import NAMES, named_for_gpu
from loopwright.topi.rule_schedules import gpu_injective_from_existing as schedule_injective_from_existing

__all__ = ["schedule_injective_from_existing", *NAMES]

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Callable[..., object]:
        return named_for_gpu(__name__, name)
