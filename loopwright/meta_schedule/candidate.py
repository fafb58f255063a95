"""MeasureCandidate: a schedule that is to be measured, and its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.derived import Part
from loopwright.schedule import Schedule


class MeasureCandidate(Part):
    """A schedule that is to be measured, and its arguments."""

    def __init__(self, sch: Schedule, args_info: Sequence[ArgInfo] | None = None) -> None:
        self.sch = sch
        self.args_info = list(args_info or ())
