"""NotWorthIt: a rule could do it, and another one will do it better."""

from __future__ import annotations

from loopwright.schedule import ScheduleError


class NotWorthIt(ScheduleError):
    """A scheduling rule looked at blocks it could schedule, and the cost model says that another rule does better.

    It is raised inside a rule and caught where rules are tried; the reason is part of what `explain()` says.

    For example:

        from loopwright import te
        from loopwright.autosched import Decision, Machine
        from loopwright.autosched.program import Program
        from loopwright.autosched.rules.row_group import RowGroup
        from loopwright.schedule import Schedule

        A = te.placeholder((2, 500000), name="A")
        k = te.reduce_axis((0, 500000), name="k")
        S = te.compute((2,), lambda i: te.sum(A[i, k], axis=k), name="S")
        B = te.compute((2, 500000), lambda i, j: A[i, j] / S[i], name="B")
        sch = Schedule(te.create_prim_func([A, B]))
        program = Program(sch, "main")
        RowGroup().schedule(sch, program.entries, program, Machine.of("llvm"), Decision(("S", "B"), "row group"))
    """

    code = "LW1001"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
