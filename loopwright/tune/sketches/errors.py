"""Errors of sketch spaces."""

from __future__ import annotations

from loopwright.schedule import ScheduleError


class RejectedByPostproc(ScheduleError):
    """A postproc rejects a candidate: what its decisions make cannot be finished.

    A search draws another candidate. Nothing is wrong with the program.

    For example:

        from loopwright.tune.sketches import RejectedByPostproc

        raise RejectedByPostproc("disallow_dynamic_loop")
    """

    code = "LW1550"

    def __init__(self, name: str) -> None:
        super().__init__(f"the postproc {name!r} rejects the candidate", hint="draw other decisions")
