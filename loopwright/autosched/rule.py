"""Rule: what a scheduling rule is, and how rules are tried one after the other.

A rule looks at the blocks that are still to be scheduled, takes as many of the first ones as it can do together (a
product and the element-wise work after it; the five blocks of a softmax), and schedules them with ordinary steps. A
step that the engine refuses ends the rule for these blocks, and all it did to them is undone; the next rule is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple, Protocol, TypeVar

from loopwright.autosched.choices import current_choices
from loopwright.autosched.contiguous import UNKNOWN_EXTENT
from loopwright.autosched.decision import Choice, ChoiceKind, Decision, RuleKind
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.display import progress
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, ScheduleError

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)


class RuleFor(Protocol[M_contra]):
    """How blocks of some kind are scheduled for machines of some kind."""

    name: str

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        """How many of the first pending blocks this rule schedules together; 0 when the first is not for it."""

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: M_contra, decision: Decision
    ) -> None:
        """Schedule them, and note in `decision` what was chosen and why."""


class Rule(RuleFor[Machine], Protocol):
    """How blocks of some kind are scheduled for a CPU."""


class Scheduled(NamedTuple):
    """What the rule that did some blocks decided, and why others before it were refused."""

    decision: Decision
    refused: list[str]


def names_of(rules: Sequence[RuleFor[M]], package: str) -> str | None:
    """The rules as a text for keys of caches; None where one is not of the package: what a user writes may change."""
    kinds = [type(rule) for rule in rules]
    is_ours = all([kind.__module__.startswith(f"{package}.") for kind in kinds])
    return " ".join([kind.__qualname__ for kind in kinds]) if is_ours else None


def schedule_all(
    rules: Sequence[RuleFor[M]], sch: Schedule, program: Program, machine: M, decisions: list[Decision]
) -> None:
    """Have every block of the program scheduled by the first rule that can."""
    pending: Sequence[Entry] = program.entries
    with progress.task(f"schedule {program.func_name}", len(pending)) as task:
        while pending:
            task.now(pending[0].name)
            decision, refused = schedule_first(rules, sch, pending, program, machine)
            for reason in refused:
                decision.chose("another rule was refused", reason, ChoiceKind.REFUSED_RULE)
            decisions.append(decision)
            pending = pending[len(decision.blocks) :]
            task.advance(parts=len(decision.blocks))


def schedule_first(
    rules: Sequence[RuleFor[M]], sch: Schedule, pending: Sequence[Entry], program: Program, machine: M
) -> Scheduled:
    """Have the first of `rules` that can schedule some of the first pending blocks."""
    refused: list[str] = []
    for rule in rules:
        entries = pending[: rule.take(pending, program)]
        if not entries:
            continue
        before, length = sch.view(), len(sch.trace.insts)
        choices = current_choices()
        picked = len(choices.points) if choices is not None else 0
        try:
            decision = _as_a_whole(rule, sch, entries, program, machine)
        except ScheduleError as error:
            if choices is not None:
                choices.forget(picked)
            while sch.view() is not before:
                sch.undo()
            while len(sch.trace.insts) > length:
                sch.trace.pop()  # what it asked before its first step
            refused.append(f"{rule.name}: {error.problem}")
            continue
        if choices is not None:
            choices.next_group()
        if decision.roofline is not None:
            _note_open_sizes(entries, decision)
        return Scheduled(decision, refused)
    raise InternalError("no rule matches the block, though the last one matches every block")


def _as_a_whole(rule: RuleFor[M], sch: Schedule, entries: Sequence[Entry], program: Program, machine: M) -> Decision:
    """What the rule decides. Its steps are proved together; one by one where that finds a doubt."""
    kind = getattr(rule, "kind", RuleKind.OTHER)  # a user's rule need not have one
    choices = current_choices()
    picked = len(choices.points) if choices is not None else 0
    result: list[Decision] = []

    def steps() -> None:  # may be done twice
        result[:] = [Decision(tuple(entry.name for entry in entries), rule.name, kind=kind)]
        if choices is not None:
            choices.forget(picked)
        with choices.scheduling(sch) if choices is not None else nullcontext():
            rule.schedule(sch, entries, program, machine, result[0])

    sch.replay(steps)
    return result[0]


def _note_open_sizes(entries: Sequence[Entry], decision: Decision) -> None:
    """Say first which sizes were guessed: the figures after it are about these."""
    axes = [axis.name for entry in entries if entry.facts for axis in entry.facts.axes if axis.extent is None]
    if axes:
        what = f"planned for {UNKNOWN_EXTENT} iterations of {', '.join(dict.fromkeys(axes))}"
        decision.choices.insert(0, Choice(what, "the dimension is symbolic, and known only at run time"))
