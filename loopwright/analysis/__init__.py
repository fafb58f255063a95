"""Facts about programs that schedules, lowering and the evaluator share.

Start with `reduction_init.py` (where the start value of a reduction is written), then `instances.py` (which iterations
run, and when) and `accesses.py` (what they read and write). On these stand the checks of every build, listed in
`check.py`: `bounds.py`, `block_domains.py`, `uninitialised.py` and `races.py`; and `dataflow.py`, which write each read
sees, for the proofs of schedules (`isl_flow.py` asks isl; `commuting_updates.py` says which updates may come in
any order, by the laws of `combiner_laws.py`). Threads have `thread_axes.py` and `thread_work.py`
(what they do together), `thread_regions.py` (programs with threads as plain loops) and checks of their own. Indices
and guards are the forms and conditions of `arith/affine.py`; quick proofs are in `ranges.py`, exact ones, by isl, in
`polyhedral.py`, in the words of `time_order.py` and `same_cell.py`. What scripts ask (`tir.analysis`) is in
`queries.py` and `costs.py`.
"""

from loopwright.analysis.accesses import Access, Program, accesses_of
from loopwright.analysis.barriers import BarrierNotReached
from loopwright.analysis.block_domains import AxisLeavesDomain, check_domains
from loopwright.analysis.bounds import OutOfBounds, check_bounds
from loopwright.analysis.check import check_program
from loopwright.analysis.instances import Instance, Loop
from loopwright.analysis.races import ParallelRace, check_races
from loopwright.analysis.reduction_init import InitUsesReduction, write_inits
from loopwright.analysis.thread_extents import ThreadExtentMismatch, check_thread_extents
from loopwright.analysis.thread_memory import PrivateMemoryShared, check_thread_memory
from loopwright.analysis.thread_races import ThreadRace, check_thread_races
from loopwright.analysis.uninitialised import UninitialisedRead, check_initialised

__all__ = [
    "Access",
    "AxisLeavesDomain",
    "BarrierNotReached",
    "InitUsesReduction",
    "Instance",
    "Loop",
    "OutOfBounds",
    "ParallelRace",
    "PrivateMemoryShared",
    "Program",
    "ThreadExtentMismatch",
    "ThreadRace",
    "UninitialisedRead",
    "accesses_of",
    "check_bounds",
    "check_domains",
    "check_initialised",
    "check_program",
    "check_races",
    "check_thread_extents",
    "check_thread_memory",
    "check_thread_races",
    "write_inits",
]
