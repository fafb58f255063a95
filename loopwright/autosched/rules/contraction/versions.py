"""Versions: a product whose height is known only when the program runs is written for one row, for few and for more.

    if n <= 1:   …        a row of A times B: B is read once, as rules for reductions do it best
    elif n <= 8: …        one tile high: B is read in place
    else:        …        B is packed

Which of them pay follows from the model: where B lies packed already, one version is good for all. A product that is as
wide as it is high (of a sequence with itself) has few columns where it has few rows, and is over in no time anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rule import Rule, schedule_first
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.contraction.steps import Group
from loopwright.autosched.rules.injective import Injective
from loopwright.autosched.rules.plain import Plain
from loopwright.autosched.rules.reduction import Reduction
from loopwright.autosched.rules.row_group import RowGroup
from loopwright.ir import Var, pre_order_visit, variables_in
from loopwright.schedule import Schedule

RULES_FOR_ONE_ROW: Sequence[Rule] = (RowGroup(), Reduction(), Injective(), Plain())


def is_square(product: Product) -> bool:
    """Whether the number of columns, known only when the program runs, follows from the number of rows."""
    loops = {axis: loop.extent for axis, loop in zip(product.facts.axes, product.facts.loops, strict=True)}
    assert product.row is not None
    rows, columns = variables_in(loops[product.row]), variables_in(loops[product.column])
    return bool(columns) and set(columns) <= set(rows)


def up_to_rows(sch: Schedule, product: Product, group: Group, most: int) -> Group:
    """A copy of the group that runs where there are at most so many rows; the group itself is for more."""
    assert product.row is not None
    rows = product.facts.loops[product.facts.axes.index(product.row)].extent
    sizes: dict[str, None] = {}
    pre_order_visit(rows, lambda node: sizes.setdefault(node.name) if isinstance(node, Var) else None)
    nests = [sch.get_loops(block)[0] for block in (group.block, *group.after)]
    block, *after = sch.specialize(*nests, condition=f"lambda {', '.join(sizes)}: {rows!r} <= {most}")
    return group._replace(block=block, after=after)


def schedule_one_row(sch: Schedule, group: Group, program: Program, machine: Machine) -> None:
    """A product of one row is a reduction like others."""
    names = {sch.get(block).name_hint for block in (group.block, *group.after)}
    now = program.after(sch)
    pending: Sequence[Entry] = [entry for entry in now.entries if entry.name in names]
    while pending:
        done = schedule_first(RULES_FOR_ONE_ROW, sch, pending, now, machine)
        pending = pending[len(done.decision.blocks) :]
