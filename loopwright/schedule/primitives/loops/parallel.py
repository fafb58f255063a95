"""parallel: the iterations of a loop run on threads.

    for i in range(n): …      →      for i in T.parallel(n): …

Proved: no two iterations touch one cell with a write among them. A reduction over the loop is such a write.
"""

from __future__ import annotations

from loopwright.ir import For, ForKind
from loopwright.schedule.proof.loop_kinds import with_kind
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def parallel(view: View, loop: For) -> Step:
    """Run the iterations on threads."""
    return with_kind(view, loop, ForKind.PARALLEL)
