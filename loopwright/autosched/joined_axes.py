"""Joined axes: a block over fewer axes, each of them several that all loads and stores walk over as one.

    for i, j, k, l in T.grid(5, 9, 6, 2):    →    for ij, kl in T.grid(45, 12):
        C[i, j, k, l] = A[k, l, i, j]                 C[ij // 9, ij % 9, kl // 2, kl % 2] = A_reindex[kl, ij]

An operand whose indices are quotients and remainders then is read through a copy with the joined axes as indices, in
the order in which they lie in memory. The copy is only a name: `compute_inline` takes it out again, once those who
need plain indices (tiles in registers) have been staged.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.layouts import dimensions, folded, layout
from loopwright.autosched.program import Program
from loopwright.autosched.streams import Streams
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule

Groups = Sequence[Sequence[int]]


def groups_of(facts: BlockFacts, streams: Streams) -> list[list[int]]:
    """The axes by position; those that move as one are together. Axes of one element go with the axis before them."""
    groups: list[list[int]] = []
    last: int | None = None  # of those with more than one element
    for position, axis in enumerate(facts.axes):
        is_unit = axis.extent == 1
        goes_on = last is not None and axis.extent is not None and streams.follow(last, position)
        if groups and (is_unit or last is None or goes_on):
            groups[-1].append(position)
        else:
            groups.append([position])
        last = last if is_unit else position
    return groups


def innermost(facts: BlockFacts, group: Sequence[int]) -> int:
    """The position of the axis that moves fastest; its steps are those of the whole group."""
    return next((position for position in reversed(group) if facts.axes[position].extent != 1), group[-1])


def join_axes(sch: Schedule, facts: BlockFacts, groups: Groups) -> None:
    """Give the block an axis for each group."""
    names = dimensions(len(facts.axes))
    extents = [axis.extent or 0 for axis in facts.axes]  # only the first of a group may be unknown, which is not used
    joined = [folded([names[k] for k in group], [extents[k] for k in group]) for group in groups]
    sch.transform_block_layout(facts.name, layout(names, joined))


def read_by_axes(sch: Schedule, program: Program, name: str, operand: Buffer) -> BlockRV:
    """Have the block read a copy of the operand whose indices are axes, outermost in memory first; the copy."""
    facts = program.after(sch).entry(name).facts
    assert facts is not None
    streams = Streams(facts)
    load = next(load for load in streams.loads if load.buffer is operand)
    copy = sch.reindex(name, operand)
    facts = program.after(sch).entry(name).facts
    assert facts is not None
    mine = sch.get(copy).writes[0].buffer
    access = next(access for access in facts.reads if access.buffer is mine)
    steps: dict[int, int] = {}
    for position, axis in enumerate(facts.axes):
        dimension = access.own_dimension(axis.var)
        if dimension is not None:
            steps[dimension] = load.step(position) or 0
    names = dimensions(len(access.indices))
    order = sorted(range(len(names)), key=lambda dimension: -steps.get(dimension, 0))
    if order != sorted(order):
        as_memory = layout(names, [names[dimension] for dimension in order])
        sch.transform_layout(copy, ("write", 0), as_memory)
        sch.transform_block_layout(copy, as_memory)
    return copy
