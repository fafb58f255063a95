"""check_program: what every build makes sure of before lowering."""

from __future__ import annotations

from typing import TypeVar

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.block_domains import check_domains_in
from loopwright.analysis.bounds import check_bounds_in
from loopwright.analysis.constant_memory import check_constants
from loopwright.analysis.races import check_races_in
from loopwright.analysis.strides import check_strides
from loopwright.analysis.thread_extents import check_thread_extents
from loopwright.analysis.thread_memory import check_thread_memory_in
from loopwright.analysis.thread_races import check_thread_races_in
from loopwright.analysis.uninitialised import check_initialised_in
from loopwright.analysis.windows import check_windows_in
from loopwright.display import progress
from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.annotations import UNPROVED_ACCESSES

P = TypeVar("P", IRModule, PrimFunc)


def check_program(program: P) -> P:
    """The program, its functions marked that have accesses to be checked when they run.

    Raises an error for the first thing that certainly goes wrong in any function: StridesMeet, ReadOnlyArgument,
    AxisLeavesDomain, OutOfBounds, UninitialisedRead or ParallelRace; of threads ThreadExtentMismatch,
    BarrierNotReached, ThreadRace or PrivateMemoryShared; and for what is not proved of memory that goes by another
    name: WindowTooLarge, ParameterTooLarge, PointerOutOfRange, RegionNotInside. Works on programs at every stage. What
    else depends on data, and what isl cannot decide within its budget, passes.
    """
    functions: dict[str, PrimFunc] = {} if isinstance(program, PrimFunc) else dict(program.functions_items())
    count = 1 if isinstance(program, PrimFunc) else len(program.functions)
    with progress.task("check", count) as task:

        def checked(function: PrimFunc) -> PrimFunc:
            task.now(function.name)
            check_thread_extents(function)
            check_strides(function)
            check_constants(function, functions)
            walked = accesses_of(function, functions)
            check_domains_in(walked)
            unproved = check_bounds_in(walked)
            check_windows_in(walked)
            check_initialised_in(walked)
            check_races_in(walked)
            check_thread_memory_in(walked)
            check_thread_races_in(walked)
            task.advance()
            return function.with_attr(UNPROVED_ACCESSES, True) if unproved else function

        return checked(program) if isinstance(program, PrimFunc) else program.map_functions(checked)
