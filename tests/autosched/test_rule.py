"""How rules are tried: the first that can, and nothing is left of those that were refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loopwright import te
from loopwright.autosched import apply
from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rule import schedule_first
from loopwright.autosched.rules.plain import Plain
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, ScheduleError


class Hesitating:
    """Asks, does so many steps, and gives up."""

    name = "hesitating"

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return 1

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        for _ in range(self.steps):
            sch.split(sch.get_loops(sch.get_block(taken[0].name))[0], [None, 2])
        sch.get_loops(sch.get_block(taken[0].name))
        raise NotWorthIt(f"{self.steps} steps were enough")


class Unwilling(Hesitating):
    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return 0


def doubled() -> tuple[Schedule, Program]:
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    return sch, Program(sch, "main")


def test_nothing_is_left_of_rules_that_were_refused() -> None:
    sch, program = doubled()
    sch.annotate(sch.get_block("B"), "mine", 1)
    before, told = sch.mod, str(sch.trace)
    rules = [Unwilling(1), Hesitating(0), Hesitating(1), Hesitating(2), Plain()]
    decision, refused = schedule_first(rules, sch, program.entries, program, Machine.of("llvm"))
    assert decision.rule == Plain.name and decision.blocks == ("B",)
    assert refused == [f"hesitating: {steps} steps were enough" for steps in range(3)]
    assert str(sch.trace) == told
    assert sch.mod["main"] is before["main"]


def test_a_list_whose_last_rule_does_not_take_every_block_is_our_mistake() -> None:
    sch, program = doubled()
    with pytest.raises(InternalError, match="no rule matches the block, though the last one matches every block"):
        schedule_first([Hesitating(1)], sch, program.entries, program, Machine.of("llvm"))


def test_a_list_of_tensors_is_a_program_as_it_is_for_build():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    listed, made = apply([a, b], "llvm"), apply(te.create_prim_func([a, b]), "llvm")
    assert listed.mod["main"].script() == made.mod["main"].script()
    with pytest.raises(ScheduleError, match="got list"):
        apply([5], "llvm")
