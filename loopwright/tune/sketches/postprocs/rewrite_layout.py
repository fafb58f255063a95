"""rewrite_layout: constants in the layout in which register tiles read them.

There is nothing to rewrite here: an operand that is packed before all loops is a copy of its own, and where the operand
is constant, lowering computes the copy ahead of the call. The postproc has its place in lists all the same.
"""

from __future__ import annotations

from loopwright.schedule import Schedule
from loopwright.tune.sketches.postprocs.postproc import Postproc


class RewriteLayout(Postproc):
    """Leaves the schedule as it is."""

    name = "rewrite_layout"

    def apply(self, sch: Schedule) -> bool:
        return True
