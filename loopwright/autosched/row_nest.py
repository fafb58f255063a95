"""A row nest: blocks that work on the same rows run row by row, and what passes between them stays near the core.

    for i: m[i] = max over k of A[i, k]              for i in parallel:
    for i, k: e[i, k] = exp(A[i, k] - m[i])      →       m = max of the row             in vectors
    for i: s[i] = sum over k of e[i, k]                  e[…] = exp(…), s = sum of e    in one pass
    for i, k: B[i, k] = e[i, k] / s[i]                   B[i, …] = e[…] / s

Blocks of one *pass* need no finished reduction of each other: a value and its sum are computed in the same loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.autosched.contiguous import seamless_tail, vector_axis
from loopwright.autosched.facts import Axis, BlockFacts
from loopwright.autosched.lanes import keep_in_registers, lane_widths, reduce_in_lanes, sink, vector_width
from loopwright.autosched.machine import Machine
from loopwright.autosched.small_steps import fused, loops_by_axis
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule


@dataclass
class Part:
    """A block of the nest: the steps of its reduction, and the loop over the row that can be shared with others."""

    facts: BlockFacts
    blocks: list[BlockRV]  # the partial results of a reduction first; the block itself last
    width: int  # values that are done together; 0 when the block does not run along the row
    extents: tuple[int | None, ...]  # of its loops along the row
    level: int = 0  # the pass it belongs to

    @property
    def walker(self) -> BlockRV:
        """The block that runs along the whole row."""
        return self.blocks[0]


def along_row(facts: BlockFacts, rows: int) -> list[Axis]:
    """The axes within a row, the one that runs along memory last."""
    rest = [axis for axis in facts.axes[rows:] if axis.extent != 1]
    best = vector_axis(facts)
    if best in rest and rest[-1] is not best:
        rest.remove(best)
        rest.append(best)
    return rest


def row_nest(sch: Schedule, parts: Sequence[Part], rows: int, kept: Sequence[Buffer]) -> LoopRV | None:
    """One nest of all parts, whose first `rows` loops are the rows; the loop over rows, or None for no rows."""
    _set_levels(parts)
    every = [block for part in parts for block in part.blocks]
    if rows and len(every) > 1:
        sch.merge(*[sch.get_loops(block)[rows - 1] for block in every])
    for group in passes_of(parts):
        if len(group) > 1:
            sch.merge(*[sch.get_loops(part.walker)[-2] for part in group])
    for part in parts:
        _vectorize(sch, part)
    if not rows:
        return None
    for part in parts:
        for partial in part.blocks[:-1]:
            for region in sch.get(partial).writes:
                sink(sch, partial, region.buffer)
        for write in part.facts.writes:
            if write.buffer in kept:
                sink(sch, part.blocks[-1], write.buffer)
    return fused(sch, sch.get_loops(every[0])[:rows])


def row_part(sch: Schedule, facts: BlockFacts, rows: int, machine: Machine, vectors: int) -> Part:
    """A block whose first `rows` axes are the rows, with its loops along the row made ready for vectors."""
    block = sch.get_block(facts.name)
    units = [axis for axis in facts.axes[rows:] if axis.extent == 1]
    if not along_row(facts, rows):
        if units:
            sch.fuse(*sch.get_loops(block)[rows - 1 :])
        return Part(facts, [block], 0, ())
    extents = join_row(sch, facts, block, rows)
    if units:  # part of the last loop over rows, so that the nests of all parts are equally deep
        sch.fuse(*sch.get_loops(block)[rows - 1 : rows + len(units)])
    lanes = machine.lanes(facts.dtype)
    if facts.is_reduction:
        return lane_part(sch, facts, block, extents, lanes, vectors)
    width = vector_width(extents[-1], lanes, vectors)
    sch.split(sch.get_loops(block)[-1], [None, width])
    return Part(facts, [block], width, extents)


def lane_part(
    sch: Schedule, facts: BlockFacts, block: BlockRV, extents: tuple[int | None, ...], lanes: int, vectors: int
) -> Part:
    """A reduction along its innermost loop, in lanes."""
    widths = lane_widths(extents[-1], lanes, vectors)
    return Part(facts, reduce_in_lanes(sch, block, widths), widths[0] if widths else 0, extents)


def results_first(sch: Schedule, facts: BlockFacts, block: BlockRV) -> BlockFacts:
    """The loops over results around those of the reduction; the facts with their axes in that order."""
    order = [*facts.spatial, *facts.reduce]
    if order == list(facts.axes):
        return facts
    loops = loops_by_axis(sch, block, facts)
    sch.reorder(*[loops[axis.var] for axis in order])
    return replace(facts, axes=tuple(order))


def join_row(sch: Schedule, facts: BlockFacts, block: BlockRV, rows: int) -> tuple[int | None, ...]:
    """Put the loop along memory innermost, as one loop where memory has no seam; the extents of the loops in a row."""
    rest = along_row(facts, rows)
    loops = loops_by_axis(sch, block, facts)
    units = [axis for axis in facts.axes[rows:] if axis.extent == 1]
    order = [*facts.axes[:rows], *units, *rest]
    if [axis.var for axis in order] != [axis.var for axis in facts.axes]:
        sch.reorder(*[loops[axis.var] for axis in order])
    joined = seamless_tail(rest, facts)
    if joined > 1:
        sch.fuse(*[loops[axis.var] for axis in rest[-joined:]])
    return (*[axis.extent for axis in rest[:-joined]], facts.extent(rest[-joined:]))


def _set_levels(parts: Sequence[Part]) -> None:
    """A block that reads a finished reduction comes a pass later."""
    result: dict[Buffer, tuple[int, bool]] = {}
    for part in parts:
        before = [result[access.buffer] for access in part.facts.reads if access.buffer in result]
        part.level = max([level + is_total for level, is_total in before], default=0)
        for write in part.facts.writes:
            result[write.buffer] = (part.level, part.facts.is_reduction)


def passes_of(parts: Sequence[Part]) -> list[list[Part]]:
    """The passes over a row: parts that share one loop along it, of one level and size, as many values together."""
    groups: dict[tuple[object, ...], list[Part]] = {}
    for part in parts:
        if part.width:
            size = part.extents if None not in part.extents else tuple([str(loop.extent) for loop in part.facts.loops])
            groups.setdefault((part.level, part.width, size), []).append(part)
    return list(groups.values())


def _vectorize(sch: Schedule, part: Part) -> None:
    if part.facts.is_reduction:
        keep_in_registers(sch, part.blocks[:-1], part.blocks[-1])
    elif part.width:
        sch.vectorize(sch.get_loops(part.walker)[-1])
