"""Errors of sketch spaces."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError
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


class UnknownScheduleRule(LoopwrightError, KeyError):
    """A block asks for a schedule rule by name (annotation `schedule_rule`), and there is none of that name.

    Give the function to the rule that applies them: `ApplyCustomRule({"mine": function})`.

    For example:

        from loopwright.tune.sketches import UnknownScheduleRule

        raise UnknownScheduleRule("mine", ["yours"])
    """

    code = "LW1551"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known)}" if known else "none is given"
        super().__init__(
            f"a block asks for the schedule rule {name!r}; {there}", hint="give it: ApplyCustomRule({name: …})"
        )
