"""Narrow columns: a reduction across memory whose rows are shorter than a vector is reduced for several rows at a time.

    for i: for j in 2: C[j] += A[i, j]     →     for i_0:                                       16 rows are two vectors
                                                     for l in 32: S[l // 2, l % 2] += A[16 * i_0 + l // 2, l % 2]
                                                 for r in 16: for j in vectorized(2): C[j] += S[r, j]

Rows that follow each other in memory are one run of it: a vector holds some of each, and its lanes are partial results.
How many rows there are at a time depends on the shape and on the vectors, not on how many cores there are.
"""

from __future__ import annotations

from math import gcd
from typing import Final, NamedTuple

from loopwright.autosched.contiguous import seamless_tail
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access, Axis, BlockFacts
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.parallelize import note_one_thread, parallelize_in_tasks
from loopwright.autosched.small_steps import fused, loops_by_axis, sink_result, vectors
from loopwright.schedule import Schedule

VECTORS: Final = 2  # of partial results, where there are enough rows: their operations do not wait for each other
STEPS: Final = 4  # at least, of so many rows each: the partial results are combined in the end


class NarrowColumns(NamedTuple):
    """A reduction of rows that are shorter than a vector."""

    facts: BlockFacts
    outer: tuple[Axis, ...]  # results that are no columns
    columns: tuple[Axis, ...]
    rows: int  # at a time

    @property
    def lanes(self) -> int:
        """How many elements those rows have."""
        return self.rows * (self.facts.extent(self.columns) or 1)


def narrow_columns(facts: BlockFacts, along: Axis, machine: Machine) -> NarrowColumns | None:
    """The block as such a reduction; None where rows fill vectors, are too few, or do not follow each other."""
    order = [axis for axis in facts.spatial if axis is not along and axis.extent != 1] + [along]
    joined = seamless_tail(order, facts)
    outer, columns = tuple(order[:-joined]), tuple(order[-joined:])
    width, count = facts.extent(columns), facts.extent(facts.reduce[-1:])
    lanes = machine.lanes(facts.dtype)
    if width is None or count is None or len(facts.stores) > 1 or not 1 < width < lanes:
        return None
    row = facts.reduce[-1]
    streamed = [access for access in facts.reads if access.uses(row.var)]
    if not streamed or not all(_is_run(access, row, along, width) for access in streamed):
        return None
    rows = lanes // gcd(width, lanes)
    while rows * width < VECTORS * lanes and count >= 2 * STEPS * rows:
        rows *= 2
    return NarrowColumns(facts, outer, columns, rows) if count >= STEPS * rows else None


def _is_run(access: Access, row: Axis, along: Axis, width: int) -> bool:
    """Whether a row of an access begins where the one before it ends."""
    return access.stride(along.var) == 1 and access.stride(row.var) == width


def narrow_nest(
    sch: Schedule, narrow: NarrowColumns, threads: int, work: NestCost, machine: Machine, decision: Decision
) -> None:
    """Schedule it."""
    facts = narrow.facts
    block = sch.get_block(facts.name)
    loops = loops_by_axis(sch, block, facts)
    units = [axis for axis in facts.spatial if axis.extent == 1 and axis not in narrow.columns]
    order = [*units, *narrow.outer, *narrow.columns, *facts.reduce]
    if [axis.var for axis in order] != [axis.var for axis in facts.axes]:
        sch.reorder(*[loops[axis.var] for axis in order])
    name = loops[facts.reduce[-1].var].name
    before = len(units) + len(narrow.outer)
    _, several = sch.split(loops[facts.reduce[-1].var], [None, narrow.rows])
    first = min(facts.spatial.index(axis) for axis in narrow.columns)
    partial = sch.rfactor(several, first)
    around = sch.get_loops(partial)
    columns, steps = around[before : before + len(narrow.columns)], around[before + len(narrow.columns) :]
    sch.reorder(*steps, *columns)
    vectors(sch, fused(sch, [steps[-1], *columns]), machine.lanes(facts.dtype), unrolled=True)
    *cells, parts = sch.get_loops(block)[before:]
    sch.reorder(parts, *cells)
    outer = sch.get_loops(partial)[:before]
    if outer:
        sch.reverse_compute_at(block, outer[-1])
        sink_result(sch, partial)
    sch.vectorize(fused(sch, sch.get_loops(block)[-len(cells) :]))
    decision.chose(
        f"{narrow.rows} steps of {name} × {facts.extent(narrow.columns)} at a time",
        f"a row is too short to vectorize; rows that follow each other in memory are {narrow.lanes} partial results",
    )
    if threads > 1 and narrow.outer:
        parallelize_in_tasks(sch, fused(sch, outer))
        decision.chose("in parallel", f"the work keeps {threads} cores busy")
    elif threads == 1 and machine.cores > 1:
        note_one_thread(work, decision)
