"""disallow_dynamic_loop: rejects loops whose number of iterations is known only when the program runs."""

from __future__ import annotations

from loopwright.autosched.facts import const
from loopwright.schedule import Schedule
from loopwright.tune.sketches.postprocs.postproc import Postproc


class DisallowDynamicLoop(Postproc):
    """Such loops have no sizes to sample."""

    name = "disallow_dynamic_loop"

    def apply(self, sch: Schedule) -> bool:
        view = sch.view()
        return all(const(view.loop(var).extent) is not None for var in view.index.loops)
