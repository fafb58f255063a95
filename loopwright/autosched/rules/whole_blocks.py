"""Whole blocks: a block that a rule has made beside its own work (a copy, a sum) is scheduled by the rule for it."""

from __future__ import annotations

from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Program
from loopwright.autosched.rule import Rule, schedule_first
from loopwright.autosched.rules.injective import Injective
from loopwright.autosched.rules.plain import Plain
from loopwright.autosched.rules.reduction import Reduction
from loopwright.autosched.rules.transpose import Transpose
from loopwright.schedule import Schedule

_RULES: Final[tuple[Rule, ...]] = (Reduction(), Transpose(), Injective(), Plain())


def schedule_separately(sch: Schedule, name: str, program: Program, machine: Machine, decision: Decision) -> None:
    """Schedule one block with the first rule that can, and note which; `program` may be as it was before."""
    program = program.after(sch)
    own = schedule_first(_RULES, sch, [program.entry(name)], program, machine).decision
    chosen = "; ".join(choice.what for choice in own.choices)
    decision.chose(f"{name} by the rule {own.rule!r}", chosen or "as it is")
