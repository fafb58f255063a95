"""Schedules: say how a program runs, step by step, each step proved to keep every value or refused with a witness.

Start with `schedule.py` (the engine) and `methods/` (what can be asked of it), then `primitives/split.py` (what a step
looks like), `view.py` (a version of the program) and `step.py` (what is to be proved of the next one).

The proof: `proving.py` asks, `proof.py` compares two versions by what their readers see (`sight.py`, `naming.py`), the
quick ways to yes are `lemmas.py` and `settled.py`. Steps are written with `regions.py` and `windows.py` (what a block
touches), `copies.py`, `nests.py` and `edits.py` (new statements), `places.py` and `allocations.py` (where they stand).
Around it: `trace.py` (the steps as data), `composites.py` (steps of your own), `mismatch.py`, `fates.py` and
`suggestions.py` (what a refusal says), `page/` (what a schedule shows of itself).
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
