"""finished: a candidate's steps, then the postprocs; None where one of them refuses."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import IRModule
from loopwright.meta_schedule.postproc.postproc import Postproc
from loopwright.schedule import Schedule, ScheduleError, Trace


class _Refused(Exception):
    """A postproc answered False."""


def finished(mod: IRModule, trace: Trace, postprocs: Sequence[Postproc], seed: int = 1) -> Schedule | None:
    """The steps on a fresh schedule, all proved together at the end."""
    sch = Schedule(mod, seed=seed, error_render_level="none")

    def steps() -> None:
        trace.apply_to_schedule(sch, remove_postproc=True)
        sch.enter_postproc()
        for postproc in postprocs:
            if not postproc.apply(sch):
                raise _Refused

    try:
        sch.replay(steps)
    except (ScheduleError, _Refused):
        return None
    return sch
