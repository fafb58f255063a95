"""Whole blocks: a block that a rule has made beside its own work (a copy, a sum) is scheduled by the rule for it."""

from __future__ import annotations

from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Program
from loopwright.autosched.rule import Rule
from loopwright.autosched.rules.injective import Injective
from loopwright.autosched.rules.plain import Plain
from loopwright.autosched.rules.reduction import Reduction
from loopwright.autosched.rules.transpose import Transpose
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, ScheduleError

_RULES: Final[tuple[Rule, ...]] = (Reduction(), Transpose(), Injective(), Plain())


def schedule_alone(sch: Schedule, name: str, program: Program, machine: Machine, decision: Decision) -> None:
    """Schedule one block with the first rule that can, and note which; `program` may be as it was before."""
    program = program.after(sch)
    entry = next(entry for entry in program.entries if entry.name == name)
    for rule in _RULES:
        if rule.take([entry], program) != 1:
            continue
        own = Decision((name,), rule.name)
        try:
            rule.schedule(sch.copy(), [entry], program, machine, own)
        except ScheduleError:
            continue
        rule.schedule(sch, [entry], program, machine, Decision((name,), rule.name))
        chosen = "; ".join(choice.what for choice in own.choices)
        decision.chose(f"{name} by the rule {rule.name!r}", chosen or "as it is")
        return
    raise InternalError("no rule takes the block, though the last one takes every block")
