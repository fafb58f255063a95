"""Columns on a GPU: a reduction across memory. Threads are columns, and rows of threads share their members.

    for j, i: s[j] += A[i, j]    →     for b in blockIdx.y, c in blockIdx.x:      some columns, a chunk of their rows
                                           for y in threadIdx.y, x in threadIdx.x:
                                               for i, 4 rows, 4 lanes: p[4 lanes] += A[…]      registers
                                               P[y, …] = p                                     shared memory
                                           for x in threadIdx.x: s_rf[b, …] += P[y, …]
                                       …                                          the same with chunks for rows

A warp reads whole lines of a row, 16 bytes a thread. Few columns leave more rows of threads, whose parts a tree
combines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.contiguous import seamless_tail
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Axis, BlockFacts
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.reduction_plan import ColumnPlan, column_plan
from loopwright.autosched.gpu.result_numbers import bound_grid, lanes_along
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry
from loopwright.autosched.small_steps import extent_of, fused, join_dimensions, loops_by_axis
from loopwright.schedule import BlockRV, LoopRV, Schedule

_JOINED: Final = 2  # dimensions at most: quotients of quotients are not proved to be neighbours


def reduce_columns(
    sch: Schedule,
    facts: BlockFacts,
    after: Sequence[Entry],
    along: Axis,
    machine: GpuMachine,
    decision: Decision,
) -> None:
    """Schedule a reduction whose results along `along` are neighbours in memory, and what is computed of each."""
    block = sch.get_block(facts.name)
    spatial = [axis for axis in facts.spatial if axis is not along] + [along]
    if after:  # what follows has its loops in the order of the result
        spatial = list(facts.spatial)
    joined = min(_JOINED, seamless_tail(spatial, facts)) if spatial[-1] is along else 1
    columns, outer = spatial[-joined:], spatial[:-joined]
    loops = loops_by_axis(sch, block, facts)
    order = [*outer, *columns, *facts.reduce]
    if [axis.var for axis in order] != [axis.var for axis in facts.axes]:
        sch.reorder(*[loops[axis.var] for axis in order])
    fused(sch, [loops[axis.var] for axis in columns])
    row = fused(sch, [loops[axis.var] for axis in facts.reduce])
    lanes = lanes_along(facts, columns, (*outer, *facts.reduce), machine)
    if facts.extent(columns) is None or (facts.extent(columns) or 0) % lanes:
        lanes = 1
    itemsize = max([bytes_of(str(access.buffer.dtype)) for access in facts.reads], default=4)
    sizes = facts.extent(columns), facts.extent(outer)
    held = lanes * bytes_of(facts.dtype)
    plan = column_plan(facts.extent(facts.reduce), *sizes, lanes, itemsize, machine, held=held)
    decision.chose(
        f"{plan.x} × {plan.y} threads a block, {plan.lanes} columns each",
        f"a warp reads whole lines; {plan.several} rows are under way together",
    )
    names = [entry.name for entry in after]
    groups = len(outer), len(columns)
    if plan.chunk is None:
        _in_blocks(sch, block, plan, names, groups)
        return
    chunks, _ = sch.split(row, [None, plan.chunk])
    number = extent_of(sch, chunks)
    partial = sch.rfactor(chunks, 0)
    sch.reorder(chunks, *sch.get_loops(partial)[: len(outer) + 1])
    _in_blocks(sch, partial, plan, [], (len(outer) + 1, len(columns)))
    own = column_plan(number, *sizes, lanes, bytes_of(facts.dtype), machine, may_chunk=False, held=held)
    _in_blocks(sch, block, own, names, groups)
    decision.chose(f"chunks of {plan.chunk} rows", "the columns are too few to keep all multiprocessors busy")


def _in_blocks(sch: Schedule, block: BlockRV, plan: ColumnPlan, after: Sequence[str], groups: tuple[int, int]) -> None:
    """Some columns for each block of threads."""
    if plan.y > 1:
        _rows_of_threads(sch, block, plan, after, groups)
        return
    sch.split(sch.get_loops(block)[-1], [None, plan.several])
    # Memory gets its scope last: until then, no step is asked whose it is.
    last = sch.get_block(after[-1]) if after else sch.cache_write(block, 0, "global")
    parts = [_tiled(sch, block, plan, groups), _tiled(sch, last, plan, groups)]
    threads = [sch.split(part.columns, [plan.x, plan.lanes]) for part in parts]
    sch.reorder(threads[0][0], *parts[0].rest, threads[0][1])
    _bind_tiles(sch, parts, last, groups)
    for x, _ in threads:
        sch.bind(x, "threadIdx.x")
    sch.unroll(parts[0].rest[-1])
    for _, lane in threads:
        if plan.lanes > 1:
            sch.vectorize(lane)
    sch.set_scope(block, 0, "local")


def _rows_of_threads(
    sch: Schedule, block: BlockRV, plan: ColumnPlan, after: Sequence[str], groups: tuple[int, int]
) -> None:
    """Rows of threads add up rows, and put what they have into shared memory; each column is combined by a thread."""
    *_, y = sch.split(sch.get_loops(block)[-1], [None, plan.several, plan.y])
    partial = sch.rfactor(y, 0)
    # Memory gets its scope last: until then, no step is asked whose it is.
    put = sch.cache_write(partial, 0, "global")
    last = sch.get_block(after[-1]) if after else sch.cache_write(block, 0, "global")
    if groups[1] > 1:
        # A tile of columns is no box of several dimensions, and memory is as large as the box around it.
        for own in (partial, put):
            join_dimensions(sch, own, groups[1])
    parts = [_tiled(sch, partial, plan, groups), _tiled(sch, put, plan, groups, 1)]
    lanes, threads = [], []
    for part in parts:
        x, lane = sch.split(part.columns, [plan.x, plan.lanes])
        y, steps = (part.first[0], []) if part.first else (part.rest[-1], part.rest[:-1])
        sch.reorder(*part.around, part.tile, y, x, *steps, lane)
        threads.append((y, x))
        lanes.append(lane)
    for part in (_tiled(sch, block, plan, groups), _tiled(sch, last, plan, groups)):
        _, y, x = sch.split(part.columns, [ceil(plan.lanes / plan.y), plan.y, plan.x])
        threads.append((y, x))
        parts.append(part)
    _bind_tiles(sch, parts, last, groups)
    for y, x in threads:
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
    sch.unroll(parts[0].rest[-2])
    sch.unroll(parts[2].rest[0])
    for lane in lanes:
        if plan.lanes > 1:
            sch.vectorize(lane)
    sch.set_scope(put, 0, "shared")
    sch.set_scope(partial, 0, "local")
    sch.set_scope(block, 0, "local")


class _Tiled(NamedTuple):
    """The loops of a block: its columns are tiles."""

    first: list[LoopRV]  # of the rows of threads, where they are a dimension of what is copied
    around: list[LoopRV]
    tile: LoopRV
    columns: LoopRV  # of a tile
    rest: list[LoopRV]  # which reduce


def _tiled(sch: Schedule, block: BlockRV, plan: ColumnPlan, groups: tuple[int, int], first: int = 0) -> _Tiled:
    """Split the columns into tiles. They are one loop where the block reduces; or as many as there are dimensions."""
    loops = list(sch.get_loops(block))
    outer, columns = groups
    begin = first + outer
    end = begin + (1 if sch.get(block).init is not None else columns)
    tile, inside = sch.split(fused(sch, loops[begin:end]), [None, plan.x * plan.lanes])
    return _Tiled(loops[:first], loops[first:begin], tile, inside, loops[end:])


def _bind_tiles(sch: Schedule, parts: Sequence[_Tiled], last: BlockRV, groups: tuple[int, int]) -> None:
    """The nests of all parts as one kernel."""
    sch.merge(*[part.tile for part in parts])
    bound_grid(sch, sch.get_loops(last)[: groups[0] + 1])
