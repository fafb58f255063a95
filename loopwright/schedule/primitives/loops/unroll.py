"""unroll: the iterations of a loop are written out one after the other.

    for i in range(4): …      →      for i in T.unroll(4): …

They run in the same order as before, so there is nothing to prove. A loop that ran on threads or lanes does no longer.
"""

from __future__ import annotations

from loopwright.ir import For, ForKind
from loopwright.schedule.proof.loop_kinds import with_kind
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def unroll(view: View, loop: For) -> Step:
    """Write the iterations out one after the other."""
    return with_kind(view, loop, ForKind.UNROLLED)
