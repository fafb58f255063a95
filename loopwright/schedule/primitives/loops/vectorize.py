"""vectorize: the iterations of a loop run as the lanes of a vector.

    for i in range(8): …      →      for i in T.vectorized(8): …

Lanes run in lockstep, each statement's loads before its stores; proved that this keeps every value. `A[i] = A[i + 1]`
may be vectorized, though not run in parallel.
"""

from __future__ import annotations

from loopwright.ir import For, ForKind, IntImm
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.proof.loop_kinds import with_kind
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def vectorize(view: View, loop: For) -> Step:
    """Run the iterations as the lanes of a vector."""
    if not isinstance(loop.extent, IntImm):
        problem = f"loop {loop.loop_var.name} has extent {loop.extent}: a vector has a constant number of lanes"
        raise NotSupported("vectorize", problem, loop)
    return with_kind(view, loop, ForKind.VECTORIZED)
