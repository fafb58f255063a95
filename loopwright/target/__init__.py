"""target: what the code is compiled for.

A `Target` is the user's words (`"llvm -mcpu=core-avx2"`); `describe(target)` turns them into a `CpuDescription`, which
answers every question the compiler has about the machine: vector width, registers, FMA, caches, cores. Ask the
description, never the architecture's name.

Open `target.py` first (parsing, printing, the current target), then `cpu.py` (the description), `architectures.py` (the
table of instruction features it is derived from), `host.py` (what this machine is) and `availability.py` (what can be
built here).
"""

from loopwright.target.availability import TargetNotBuildable, require_buildable
from loopwright.target.cpu import CpuDescription, UnknownCpu, describe, host_description
from loopwright.target.errors import (
    BadTargetAttribute,
    BadTargetText,
    NoCurrentTarget,
    UnknownTargetAttribute,
    UnknownTargetKind,
)
from loopwright.target.host import Caches, Host, available_cores, detect_host
from loopwright.target.kinds import TargetKind, list_kinds
from loopwright.target.tags import list_tags
from loopwright.target.target import Target

__all__ = [
    "BadTargetAttribute",
    "BadTargetText",
    "Caches",
    "CpuDescription",
    "Host",
    "NoCurrentTarget",
    "Target",
    "TargetKind",
    "TargetNotBuildable",
    "UnknownCpu",
    "UnknownTargetAttribute",
    "UnknownTargetKind",
    "available_cores",
    "describe",
    "detect_host",
    "host_description",
    "list_kinds",
    "list_tags",
    "require_buildable",
]
