"""Schedules: say how a program runs, step by step, each step proved to keep every value or refused with a witness.

Start with `schedule.py` (the engine), then `primitives/split.py` (what a step looks like), `view.py` (a version of the
program), `proof.py` (the value proof), `trace.py` (the steps as data) and `suggestions.py` (what a refusal tries).
"""

from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
from loopwright.schedule.schedule import Schedule
from loopwright.schedule.trace import Instruction, InstructionKind, Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "Schedule", "ScheduleError", "Trace"]
