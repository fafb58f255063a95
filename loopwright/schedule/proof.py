"""find_mismatch: prove that a new version of a program computes the same values, or find what would differ.

Every read of every instance of the new version must see the write that the instance of the same name saw before, and
every cell of every argument must be written last by the same instance (`analysis/dataflow.py` says who sees what,
`naming.py` what is the same). By induction over the order of execution, all values are then the same. What saw no value
before may see anything now. An instance that did not exist before cannot be seen by one that did.

Of a reduction, a reader must see the same base, and the same updates, each of them once:

    wrong base      { reader → base } of the new version, less that of the old
    extra           { reader → updates } of the new version, less that of the old
    missing         the other way round, for each *iteration* of the reader: one may miss what another one sees
    twice           two iterations of one name among the updates that a reader sees
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loopwright.analysis.accesses import Program, accesses_of
from loopwright.analysis.dataflow import Dataflow, Flow, InitOf, NotProvable, Reference, dataflow_of
from loopwright.arith.isl import BudgetExceeded, budget
from loopwright.ir import Buffer, PrimFunc, Var
from loopwright.schedule.mismatch import Mismatch, Unproved, Wrong
from loopwright.schedule.naming import UNDEFINED, Naming, Origins

if TYPE_CHECKING:
    import islpy

__all__ = ["InitOf", "Mismatch", "Origins", "Unproved", "find_mismatch", "find_race"]

PROOF_BUDGET: Final = 20_000_000  # isl operations, besides those for the flow
CHAIN: Final = 3  # copies of copies followed one by one, before the closure is asked for


def find_mismatch(
    before: PrimFunc,
    after: PrimFunc,
    origins: Origins = Origins(),
    buffers: Collection[Buffer] | None = None,
) -> Mismatch | Unproved | None:
    """None when `after` is proved to compute what `before` does; else the smallest witness, or why there is no proof.

    Only flow through `buffers` (of either version) and through new buffers is compared; None means all.
    """
    try:
        comparison = _Comparison(_named(before, get_ident()), Naming(_flows(after, get_ident()), origins))
        with budget(PROOF_BUDGET):
            return comparison.find(buffers)
    except NotProvable as reason:
        return Unproved(str(reason))
    except BudgetExceeded:
        return Unproved("comparing what the reads see takes too many steps")


@lru_cache(maxsize=32)
def _program(function: PrimFunc) -> Program:
    return accesses_of(function)


@lru_cache(maxsize=32)
def _flows(function: PrimFunc, thread: int) -> Dataflow:
    """The flow of a version; versions are compared with the one before and then with the one after."""
    return dataflow_of(accesses_of(function))


@lru_cache(maxsize=32)
def _named(function: PrimFunc, thread: int) -> Reference_:
    return Reference_(_flows(function, thread))
