"""Schedules: say how a program runs, step by step, each step proved to keep every value or refused with a witness.

Start with `schedule.py` (the engine), then `primitives/split.py` (what a step looks like), `view.py` (a version of the
program), `proof.py` (the value proof), `trace.py` (the steps as data), `suggestions.py` (what a refusal tries) and
`composites.py` (steps of your own).
"""

from loopwright.schedule.composites import composite, register_step, unregister
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
from loopwright.schedule.schedule import Schedule
from loopwright.schedule.state import BlockScope, Dependency, DepKind, ScheduleState, StmtSRef
from loopwright.schedule.trace import Instruction, InstructionKind, Trace

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
