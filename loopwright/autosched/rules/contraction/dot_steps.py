"""The schedule of a product by dot products: tiles of results, with lanes along the reduction."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.lanes import reduce_in_lanes, sink
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import nest_cost
from loopwright.autosched.parallelize import parallelize_in_tasks
from loopwright.autosched.prefetch import prefetch_along
from loopwright.autosched.rules.contraction.dots import LANES_AT_END, DotTiles
from loopwright.autosched.small_steps import fused, loops_by_axis
from loopwright.schedule import BlockRV, LoopRV, Schedule


def schedule_dots(sch: Schedule, tiles: DotTiles, machine: Machine, decision: Decision) -> None:
    """Tile the results, keep the sums in registers, and add up their lanes."""
    product = tiles.product
    block = sch.get_block(product.facts.name)
    loops = loops_by_axis(sch, block, product.facts)
    column_tiles, column = sch.split(loops[product.column.var], [None, tiles.columns])
    row_tiles, row = [], []
    if product.row is not None:
        row_tile, inner = sch.split(loops[product.row.var], [None, tiles.rows])
        row_tiles, row = [row_tile], [inner]
    outer = [loops[axis.var] for axis in product.outer]
    around = [*outer, *([column_tiles, *row_tiles] if tiles.columns_first else [*row_tiles, column_tiles])]
    reduce = [loops[axis.var] for axis in product.reduce]
    sch.reorder(*around, *row, column, *reduce)
    partials = reduce_in_lanes(sch, block, _widths(tiles))[:-1]
    depth = len(around)
    for index, partial in enumerate(partials):
        own = sch.get_loops(partial)[depth:]
        results, steps, lane = own[: len(row) + 1], own[len(row) + 1 : -1], own[-1]
        if index == 0:
            sch.reorder(*steps, *results, lane)
    sch.merge(*[sch.get_loops(each)[depth - 1] for each in (*partials, block)])
    for index, partial in enumerate(partials):
        _in_registers(sch, partial, depth, len(reduce) if index == 0 else 0)
    if machine.is_late and (tiles.columns if tiles.columns_first else tiles.rows) == 1:
        _prefetch(sch, tiles, partials[0], sch.get_loops(partials[0])[depth + len(reduce) - 1], machine, decision)
    _add_up(sch, block, depth, tiles)
    if tiles.threads > 1:
        shared = sch.get_loops(block)[: depth if not row_tiles else depth - 1]
        parallelize_in_tasks(sch, fused(sch, shared))


def _widths(tiles: DotTiles) -> Sequence[int]:
    """How many partial sums each result has after each step: each has half of those before."""
    widths = [tiles.width]
    while widths[-1] > LANES_AT_END:
        widths.append(widths[-1] // 2)
    return widths


def _in_registers(sch: Schedule, partial: BlockRV, depth: int, steps: int) -> None:
    """Sums as vectors in registers; the loops of the reduction, `steps` of them below the tile, stay loops."""
    *loops, lane = sch.get_loops(partial)[depth:]
    sch.set_scope(partial, 0, "local")
    sch.vectorize(lane)
    for loop in loops[steps:]:
        sch.unroll(loop)
    sink(sch, partial, sch.get(partial).writes[0].buffer)


def _prefetch(
    sch: Schedule, tiles: DotTiles, block: BlockRV, loop: LoopRV, machine: Machine, decision: Decision
) -> None:
    """Have the steps of one row prefetch those that come: the operand of which a strip is a row passes by once."""
    product = tiles.product
    streamed = product.column_operand if tiles.columns_first else product.row_operand
    work = nest_cost([product.facts], machine)
    prefetch_along(sch, block, loop, [streamed.buffer], tiles.width, work, machine, decision, is_sum=True)


def _add_up(sch: Schedule, block: BlockRV, depth: int, tiles: DotTiles) -> None:
    """The lanes of neighbouring results are added up together, as columns of a small matrix in registers."""
    *rows, column, lane = sch.get_loops(block)[depth:]
    # A power of two, and no more than a vector has: sums of others would not stay in registers.
    together = min(tiles.columns & -tiles.columns, tiles.lanes)
    groups, column = sch.split(column, [None, together])
    sch.reorder(*rows, groups, lane, column)
    sch.vectorize(column)
    for loop in (*rows, groups, lane):
        sch.unroll(loop)


def explain_dots(tiles: DotTiles, machine: Machine, decision: Decision) -> None:
    """Say how the results are tiled, and why nothing is packed."""
    product = tiles.product
    used = tiles.register_tile
    loads = (tiles.rows + tiles.columns) * tiles.vectors
    decision.chose(
        f"tiles of {tiles.rows} × {tiles.columns} dot products",
        f"{used} of {machine.registers} registers are accumulators; a step of {tiles.width} loads {loads} times for "
        f"{used} multiply-adds",
        ChoiceKind.TILES,
    )
    name = product.column_operand.buffer.name
    decision.chose(f"{name} read in place", "both operands are contiguous along the reduction")
    if tiles.threads > 1:
        decision.chose("strips in parallel", f"the work keeps {tiles.threads} cores busy")
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    m, n, k, batch, size = product.m, product.n, product.k, product.batch, bytes_of(product.facts.dtype)
    arithmetic = m * n * k * batch / (machine.fma_per_cycle * tiles.lanes) / tiles.threads
    moved = (m * k + k * n + m * n) * size * batch
    memory = moved / (machine.memory_bytes_per_cycle * min(tiles.threads, machine.memory_cores))
    memory = memory if moved > machine.l2 else moved / machine.l2_bytes_per_cycle / tiles.threads
    decision.roofline = Roofline(arithmetic, memory, tiles.cycles)
