"""interleaved rows: neighbours of a row of the result come from several rows in turn.

    for i, j in T.grid(8, 64):                       →    for i, r in T.grid(8, T.unroll(2)):
        C[i, j] = A[i, (j + 1) % 2, (j + 1) // 2]             for q in T.vectorized(32):
                                                                  C[i, q * 2 + r] = A[i, (r + 1) % 2, q + (r + 1) // 2]

That is what transposed convolutions, depth to space and the like do. Vectors along a row of the result would be put
together lane by lane; of those results that come from one row, they are loads of neighbours, and it is the stores that
leave places between them. Quotients and remainders become numbers where the phase is written out, and conditions on it
are decided; rows of other dimensions that are taken in turn are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Final

from loopwright.arith.affine_reader import Affine
from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.facts import Axis, BlockFacts, const
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import common_lanes, nest_cost
from loopwright.autosched.parallelize import parallelize_outer
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.small_steps import loops_by_axis
from loopwright.ir import CompareExpr, FloorDiv, FloorMod, Node, Var, any_node, post_order_visit
from loopwright.ir.annotations import VECTOR_LANES, WRITTEN_OUT_FIRST
from loopwright.schedule import LoopRV, Schedule

MOST_TURNS: Final = 8  # that neighbours of a row come from
MOST_WRITTEN_OUT: Final = 16  # phases of all dimensions


class Interleaved:
    """Takes one block whose rows are made of several rows in turn."""

    name = "interleaved rows"
    kind = RuleKind.ACROSS_MEMORY

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        return int(facts is not None and facts.is_injective and _is_interleaved(facts))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        cost = nest_cost([facts], machine)
        cost.note(decision)
        axes, phases = _moving(facts), _phases(facts)
        loops = loops_by_axis(sch, sch.get_block(facts.name), facts)
        written_out: list[LoopRV] = []
        bodies = 1
        for axis in reversed(axes):
            count = phases.get(axis.var, 1)
            if count > 1 and count * bodies <= MOST_WRITTEN_OUT:
                loops[axis.var], phase = sch.split(loops[axis.var], [None, count])
                written_out.insert(0, phase)
                bodies *= count
        *around, row = [loops[axis.var] for axis in axes]
        sch.reorder(*around, *written_out, row)
        for loop in written_out:
            sch.unroll(loop)
            sch.annotate(loop, WRITTEN_OUT_FIRST, 1)
        lanes = common_lanes(facts, machine)
        sch.vectorize(row)
        sch.annotate(row, VECTOR_LANES, lanes)
        among = phases.get(axes[-1].var, 1)
        decision.chose(
            f"vectors of {lanes} along {axes[-1].name}" + (f", of every {among} places one" if among > 1 else ""),
            "these come from one row: loads are contiguous, stores are not" if among > 1 else "all is contiguous",
            ChoiceKind.STRIDED if among > 1 else ChoiceKind.OTHER,
        )
        decision.chose(f"{bodies} phases written out", "quotients, remainders and conditions on them become constants")
        parallelize_outer(sch, around, (axes[-1].extent or 1) * bodies // among, cost, machine, decision)


def _moving(facts: BlockFacts) -> list[Axis]:
    return [axis for axis in facts.axes if axis.extent != 1]


def _is_interleaved(facts: BlockFacts) -> bool:
    """Whether rows of the result are made of several in turn; or whether other dimensions are, under conditions."""
    axes = _moving(facts)
    if not axes or any(axis.extent is None or axis.extent == 0 for axis in facts.axes) or len(facts.stores) != 1:
        return False
    row = axes[-1]
    if facts.write.stride(row.var) != 1 or not all(access.is_affine for access in facts.reads):
        return False
    phases = _phases(facts)
    if row.var in phases:
        return 2 * phases[row.var] <= (row.extent or 0)
    is_asked = any_node(facts.store.value, lambda node: isinstance(node, CompareExpr))
    return is_asked and bool(phases) and all(access.stride(row.var) in (0, 1) for access in facts.reads)


def _phases(facts: BlockFacts) -> dict[Var, int]:
    """The axes of which quotients and remainders are taken, and after how many steps remainders repeat."""
    affine = Affine()
    own = {axis.var for axis in facts.axes}
    for var in own:
        affine.own(var)
    quotients: set[Var] = set()
    periods: dict[Var, int] = {}

    def look(node: Node) -> None:
        if isinstance(node, (FloorDiv, FloorMod)):
            form, by = affine.form(node.a), const(node.b)
            used = [] if form is None else [var for var in form.variables() if var in own]
            if by is None or len(used) != 1:
                return
            if isinstance(node, FloorMod):
                periods[used[0]] = lcm(periods.get(used[0], 1), by)
            else:
                quotients.add(used[0])

    post_order_visit(facts.store.value, look)
    return {var: period for var, period in periods.items() if var in quotients and period <= MOST_TURNS}
