"""apply: schedule every block of a program by rule, with no measurement.

plan = autosched.apply(mod, "llvm")
plan.mod            the scheduled module
plan.schedule       the Schedule: its trace can be printed, edited and replayed
plan.explain()      in words, why each size was chosen and how near the limit it should run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.autosched.decision import Decision
from loopwright.autosched.inlining import inline_cheap
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules import RULES
from loopwright.autosched.rules.winograd.allowed import largest_tile
from loopwright.ir import IRModule, PrimFunc
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, ScheduleError, Trace
from loopwright.target import Target


@dataclass(frozen=True)
class Plan:
    """A scheduled program, and the reasons."""

    schedule: Schedule
    machine: Machine
    decisions: tuple[Decision, ...]

    @property
    def mod(self) -> IRModule:
        return self.schedule.mod

    @property
    def trace(self) -> Trace:
        return self.schedule.trace

    def explain(self) -> str:
        """Why everything is as it is, in words."""
        return "\n".join(line for decision in self.decisions for line in decision.lines())


def apply(mod: IRModule | PrimFunc, target: Target | str | None = None, *, winograd: bool | int = False) -> Plan:
    """The program with every block scheduled for `target`; each step is proved, as if you had written it.

    `winograd=True` allows convolutions to be computed from tiles of up to 4 × 4 results where that pays: equal over the
    real numbers, with other rounding (docs/winograd.md). A number says the largest tile: 2, 4 or 6.
    """
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    machine = Machine.of(chosen)
    largest = largest_tile(winograd)
    sch = Schedule(mod)
    decisions: list[Decision] = []
    for name in list(sch.views()):
        sch.work_on(name)
        sch = inline_cheap(sch, name, decisions)
        sch = _schedule_blocks(sch, name, machine, decisions, largest)
    return Plan(sch, machine, tuple(decisions))


def _schedule_blocks(
    sch: Schedule, name: str, machine: Machine, decisions: list[Decision], winograd: int
) -> Schedule:
    program = Program(sch, name, winograd)
    pending: Sequence[Entry] = program.entries
    while pending:
        sch, decision = _schedule_first(sch, pending, program, machine)
        decisions.append(decision)
        pending = pending[len(decision.blocks) :]
    return sch


def _schedule_first(
    sch: Schedule, pending: Sequence[Entry], program: Program, machine: Machine
) -> tuple[Schedule, Decision]:
    """The schedule after the first rule that can do it scheduled some of the first blocks, and what it decided."""
    refused: list[str] = []
    for rule in RULES:
        taken = pending[: rule.take(pending, program)]
        if not taken:
            continue
        decision = Decision(tuple(entry.name for entry in taken), rule.name)
        trial = sch.copy()  # what a rule did before it was refused is forgotten with it
        try:
            rule.schedule(trial, taken, program, machine, decision)
        except ScheduleError as error:
            refused.append(f"{rule.name}: {error.problem}")
            continue
        for reason in refused:
            decision.chose("another rule was refused", reason)
        return trial, decision
    raise InternalError("no rule takes the block, though the last one takes every block")
