"""repeated rows: an axis whose remainder or quotient finds the cells is two axes, as a tiled array has.

    for i in range(700):            →    for r, i in T.grid(7, 100):        every load and store walks along memory
        B[i] = A[i % 100]                    B[r * 100 + i] = A[i]

What the axes are then scheduled as is for the rules after this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from loopwright.arith.affine_reader import Affine
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import BlockFacts, const, loads_of
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rule import Rule, schedule_first
from loopwright.ir import FloorDiv, FloorMod, Node, Var, post_order_visit
from loopwright.schedule import Schedule

MOST_PARTS: Final = 3  # that one axis becomes


class RepeatedRows:
    """Takes one block that reads rows again and again, whole."""

    name = "repeated rows"

    def __init__(self, after: Sequence[Rule]) -> None:
        self.after = after  # the rules for what the block is with its new axes

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        return int(facts is not None and facts.is_injective and bool(_splits(facts)))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        splits = _splits(facts)
        block = sch.get_block(facts.name)
        sch.transform_block_layout(block, _map(facts, splits))
        for axis in facts.axes:
            if axis.var in splits:
                parts = " × ".join([str(part) for part in _extents(axis.extent, splits[axis.var])])
                decision.chose(f"{axis.name} is {parts}", "its remainders and quotients find the cells that are read")
        program = program.after(sch)
        found = schedule_first(self.after, sch, [program.entry(facts.name)], program, machine).decision
        decision.choices += found.choices
        decision.roofline = found.roofline


def _splits(facts: BlockFacts) -> dict[Var, list[int]]:
    """Axes of which remainders are taken, with all divisors, the greatest first: each divides the one before it."""
    affine = Affine()
    extents: dict[Var, int] = {}
    for axis in facts.axes:
        if axis.extent is None or axis.extent == 0:
            return {}
        extents[axis.var] = axis.extent
        affine.own(axis.var)
    divisors: dict[Var, set[int]] = {}
    repeated: set[Var] = set()

    def look(node: Node) -> None:
        if not isinstance(node, (FloorDiv, FloorMod)):
            return
        form, by = affine.form(node.a), const(node.b)
        if form is None or by is None or by <= 0:
            return
        for var in form.variables() & extents.keys():
            # Of anything but the axis itself nothing would become simpler.
            is_axis = form.terms == {var: 1} and form.const == 0
            divisors.setdefault(var, set()).add(by if is_axis else 0)
            if isinstance(node, FloorMod):
                repeated.add(var)

    for load in loads_of(facts.store.value):
        for index in load.indices:
            post_order_visit(index, look)
    result = {}
    for var in repeated:
        chain = sorted(divisors[var], reverse=True)
        pairs = pairwise([extents[var], *chain])
        if len(chain) < MOST_PARTS and all(1 < by < before and before % by == 0 for before, by in pairs):
            result[var] = chain
    return result


def _extents(extent: int | None, divisors: Sequence[int]) -> list[int]:
    assert extent is not None
    return [before // by for before, by in zip([extent, *divisors], [*divisors, 1], strict=True)]


def _map(facts: BlockFacts, splits: Mapping[Var, Sequence[int]]) -> str:
    """The new axes as a function of the old ones."""
    names = [f"a{k}" for k in range(len(facts.axes))]
    parts: list[str] = []
    for name, axis in zip(names, facts.axes, strict=True):
        whole = axis.extent
        for by in splits.get(axis.var, ()):
            parts.append(f"{name} % {whole} // {by}")
            whole = by
        parts.append(f"{name} % {whole}" if axis.var in splits else name)
    return f"lambda {', '.join(names)}: ({', '.join(parts)},)"
