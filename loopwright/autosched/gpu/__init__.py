"""Schedules by rule for GPUs: what `autosched.apply(program, "cuda")` uses.

Start with `rules/__init__.py` (the list of rules; `default.py` is the shortest), then `machine.py` (the figures they
ask for), `inlining.py` and `roofline.py`. What a rule is, and how rules are tried, is as for CPUs: `autosched/rule.py`.
"""

from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rule import GpuRule

__all__ = ["GpuMachine", "GpuRule"]
