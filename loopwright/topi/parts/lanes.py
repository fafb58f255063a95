"""lanes: how wide the vectors of the machine are that a program is written for, for operators that name their lanes."""

from __future__ import annotations

from loopwright.autosched.machine import Machine
from loopwright.runtime.dtype import DataType
from loopwright.target import Target


def current_machine() -> Machine:
    """The machine of the current target, or else this one."""
    return Machine.of(Target.current(allow_none=True) or Target("llvm"))


def vector_lanes(dtype: DataType | str) -> int:
    """How many elements of a type a vector holds: a power of two, at least 2."""
    return max(2, current_machine().lanes(str(DataType(dtype).element)))
