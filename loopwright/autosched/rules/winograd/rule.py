"""Winograd: the rule for convolutions from fewer products."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.choices import is_chosen
from loopwright.autosched.decision import Decision, RuleKind
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.winograd.explain import explain
from loopwright.autosched.rules.winograd.layer import match_with_fused
from loopwright.autosched.rules.winograd.sizes import GAIN, choose_sizes
from loopwright.autosched.rules.winograd.steps import schedule_winograd
from loopwright.schedule import Schedule


class Winograd:
    """Takes a convolution of two dimensions, its padding, and the element-wise blocks after it."""

    name = "winograd"
    kind = RuleKind.WINOGRAD

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        if not program.winograd:
            return 0
        entries = match_with_fused(pending, program)
        return 0 if entries is None else entries.count

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        result = match_with_fused(entries, program, machine.runs_here)
        assert result is not None
        layer = result.layer
        sizes = choose_sizes(layer, machine, program.winograd)
        if isinstance(sizes, str):
            raise NotWorthIt(sizes)
        if not is_chosen("winograd", GAIN / sizes.gain, 1.0):
            raise NotWorthIt(
                f"tiles of {sizes.tile} × {sizes.tile} would save multiplications, but with their transforms they are "
                f"only {sizes.gain:.2f} times as fast as the direct form, by the cost model"
            )
        transposed = schedule_winograd(sch, result, program, sizes, machine)
        explain(layer, sizes, transposed, machine, decision)
