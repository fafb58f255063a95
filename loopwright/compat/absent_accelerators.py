"""Questions of scripts whether an accelerator can be compiled for; the answer is no."""

from __future__ import annotations

from enum import Enum


class Available(Enum):
    """What of Ethos-N there is."""

    UNAVAILABLE = 0
    SW_ONLY = 1
    SW_AND_HW = 2


def vitis_ai_available() -> bool:
    return False


def ethosn_available() -> Available:
    return Available.UNAVAILABLE
