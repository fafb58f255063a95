"""GpuRule: a rule that schedules blocks for a GPU."""

from __future__ import annotations

from typing import Protocol

from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.rule import RuleFor


class GpuRule(RuleFor[GpuMachine], Protocol):
    """How blocks of some kind are scheduled for a GPU."""
