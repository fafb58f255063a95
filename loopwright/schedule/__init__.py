"""Schedules: say how a program runs, step by step, each step proved to keep every value or refused with a witness.

Start with `engine/schedule.py` (the way of one step) and `engine/methods/` (what can be asked of a schedule), then
`primitives/loops/split.py` (what a step looks like), `view.py` (a version of the program) and `step.py` (what is to be
proved of the next one).

Each line imports from those above it, never from below, also for annotations:

    errors.py, handles.py, view.py    refusals; what users hold of loops and blocks; one version of a function
    origins.py, step.py               what a primitive says of the version it built
    rewrite/                          what primitives build new versions with
    proof/                            whether a step keeps every value
    winograd/, primitives/            the steps, one file each
    trace/                            the steps as data, and the protocol of a schedule
    diagnose/                         what a refusal suggests and draws
    page/                             what a schedule shows of itself
    engine/                           `Schedule`: finds, proves, applies and records a step
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.schedule.engine.composites import composite, register_step, unregister
    from loopwright.schedule.engine.schedule import Schedule
    from loopwright.schedule.engine.state import BlockScope, Dependency, DepKind, ScheduleState, StmtSRef
    from loopwright.schedule.errors import ScheduleError
    from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
    from loopwright.schedule.trace.trace import Instruction, InstructionKind, Trace

# Public name → module that holds it; loaded when first used: who needs a matrix of winograd needs no engine.
_HOMES = {
    "loopwright.schedule.engine.composites": "composite register_step unregister",
    "loopwright.schedule.engine.schedule": "Schedule",
    "loopwright.schedule.engine.state": "BlockScope DepKind Dependency ScheduleState StmtSRef",
    "loopwright.schedule.errors": "ScheduleError",
    "loopwright.schedule.handles": "BlockRV ExprRV LoopRV",
    "loopwright.schedule.trace.trace": "Instruction InstructionKind Trace",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "BlockRV",
    "BlockScope",
    "DepKind",
    "Dependency",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "Schedule",
    "ScheduleError",
    "ScheduleState",
    "StmtSRef",
    "Trace",
    "composite",
    "register_step",
    "unregister",
]

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
