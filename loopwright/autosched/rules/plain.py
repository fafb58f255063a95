"""plain: a block that no other rule knows stays as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.facts import const
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.ir import IfThenElse
from loopwright.ir.visitor import variables_in
from loopwright.schedule import Schedule

RUNS_ONCE: Final = "it runs once: there is nothing to schedule"


class Plain:
    """Takes every block, and changes nothing."""

    name = "left as written"
    kind = RuleKind.AS_WRITTEN

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        if entries[0].facts is None:
            decision.chose("no steps", why_not_plain(entries[0]), ChoiceKind.NO_STEPS)
        else:
            decision.chose("no steps", "no rule matches what it computes", ChoiceKind.NO_STEPS)


def why_not_plain(entry: Entry) -> str:
    """Why rules cannot read a block, and what would help."""
    block = entry.realize.block
    if isinstance(block.body, IfThenElse):
        text = "a condition guards its whole body"
        return f"{text}: te.if_then_else inside the reduction would be scheduled" if block.init is not None else text
    predicate = entry.realize.predicate
    if len(block.iter_vars) and const(predicate) != 1:
        text = f"it runs only where {predicate}"
        loops = [var for value in entry.realize.iter_values for var in variables_in(value)]
        sizes = [var.name for var in variables_in(predicate) if var not in loops]
        if sizes and len(loops) <= len(block.iter_vars):  # no loop is split: the program itself has the condition
            size = " or ".join(sizes)
            return f"{text}: {size}, known only at run time, may be smaller than the loop, as in the start of a te.scan"
        return f"{text}, as a loop that was split does: schedule the program before it is split"
    return "its axes are not bound one to one to loops that start at 0, or its body is not a single store"
