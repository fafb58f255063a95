"""Errors of sketch spaces."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import ScheduleError


class RejectedByPostproc(ScheduleError):
    """A postproc rejects a candidate: what its decisions make cannot be finished.

    A search draws another candidate. Nothing is wrong with the program.

    For example:

        from loopwright import te
        from loopwright.ir import IRModule
        from loopwright.target import Target
        from loopwright.tune import Task
        from loopwright.tune.sketches import SketchSpace

        class Never:
            name = "never"

            def on(self, machine):
                return self

            def apply(self, sch):
                return False

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        task = Task("f", IRModule({"main": te.create_prim_func([A, B])}), Target("llvm"))
        space = SketchSpace(task, postprocs=[Never()])
        space.schedule(space.candidate(space.first()))
    """

    code = "LW1550"

    def __init__(self, name: str) -> None:
        super().__init__(f"the postproc {name!r} rejects the candidate", hint="draw other decisions")


class UnknownScheduleRule(LoopwrightError, KeyError):
    """A block asks for a schedule rule by name (annotation `schedule_rule`), and there is none of that name.

    Give the function to the rule that applies them: `ApplyCustomRule({"mine": function})`.

    For example:

        from loopwright import te, tir
        from loopwright.target import Target
        from loopwright.tune import Task
        from loopwright.tune.sketches import SketchSpace

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.annotate(sch.get_block("B"), "schedule_rule", "mine")
        SketchSpace(Task("f", sch.mod, Target("llvm"))).first()
    """

    code = "LW1551"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known)}" if known else "none is given"
        super().__init__(
            f"a block asks for the schedule rule {name!r}; {there}", hint="give it: ApplyCustomRule({name: …})"
        )
