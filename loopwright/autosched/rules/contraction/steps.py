"""The schedule of a product: ordinary steps, in the order a person would write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.layouts import in_panels, moved_last
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.parallelize import deal_out
from loopwright.autosched.prefetch import prefetch_weights
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.contraction.tiles import ALL_ROWS, PACKED_STRIPS, Tiles
from loopwright.autosched.rules.contraction.turned_panels import turn_panels
from loopwright.autosched.small_steps import (
    extent_of,
    loop_of_axis,
    loops_below,
    loops_by_axis,
    operand_of,
    sink_result,
    vectors,
)
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.transform.parts.constant_work import size_of

PACKED_RUN = 16  # of B, read along it where it lies the other way and its length is not known
PACKED_ROWS = 32  # of B copied before the next panel, at most: whole pages are read before they are left


class Group(NamedTuple):
    """The blocks of a product: what makes its operand, itself, and what follows it."""

    before: Sequence[BlockRV]
    block: BlockRV
    after: Sequence[BlockRV]
    is_costly: bool  # what follows takes many instructions an element


def group_of(sch: Schedule, product: Product, prologue: Sequence[Entry], epilogue: Sequence[Entry]) -> Group:
    """The blocks as the program has them."""
    return Group(
        [sch.get_block(entry.name) for entry in prologue],
        sch.get_block(product.facts.name),
        [sch.get_block(entry.name) for entry in epilogue],
        any(entry.facts is not None and entry.facts.costly_calls for entry in epilogue),
    )


def schedule_product(
    sch: Schedule, product: Product, group: Group, program: Program, tiles: Tiles, machine: Machine
) -> None:
    """Tile, pack, keep the sums in registers, and do the element-wise work before and after it on the way."""
    block = group.block
    packing, out = _copies(sch, group, product, tiles)
    for result in reversed(group.before):
        sch.compute_inline(result)
    if product.prepacks_rows:
        _lay_along(sch, block, product)
    packed = sch.get(packing).writes[0].buffer if packing is not None else None
    if product.prepacks_columns:
        packing = None  # it stays before the loops, where lowering finds that it depends on constants alone
    nest = _tile(sch, block, product, tiles)
    sums = sch.get(block).writes[0].buffer.name

    init = sch.decompose_reduction(block, nest.slab) if nest.slab is not None else None
    if nest.strips is not None:
        _pack_strips(sch, block, product, nest.strips, tiles)
    if packing is not None:
        sch.compute_at(packing, nest.slab or nest.task)
        sink_result(sch, packing)
    if out is not None:
        _finish(sch, group, out, sums, nest, tiles, program, machine, _has_tiles_cut_by_tasks(product, tiles))
    if init is not None:
        _slabs(sch, block, sums, init, nest, tiles)

    for loop in nest.unrolled:
        sch.unroll(loop)
    vectors(sch, nest.columns, tiles.lanes, unrolled=True)
    if product.prepacks_columns and packed is not None and product.knows_m:
        prefetch_weights(sch, block, nest.k, packed, tiles.unroll * tiles.nr, product.m, machine)
    if packing is not None:
        _pack(sch, packing, nest.slab or nest.task, product, tiles, machine)
    if tiles.threads > 1:
        deal_out(sch, sch.fuse(*nest.shared), tiles.turns)


def _has_tiles_cut_by_tasks(product: Product, tiles: Tiles) -> bool:
    """Whether it depends on the task which columns of a tile are there, in a way that no loop can be parted by.

    That is so for a remainder: tasks of several products, or of rows whose number is not known, are numbered together.
    A guard of that kind around parts of a tile in registers would send all of it to memory.
    """
    if not product.knows_n:
        return True
    shares_columns = tiles.task_columns * tiles.nr < product.n
    is_remainder = not product.knows_m or (product.batch > 1 and shares_columns)
    return is_remainder and product.n % tiles.nr > 0 and tiles.threads > 1


def _copies(sch: Schedule, group: Group, product: Product, tiles: Tiles) -> tuple[BlockRV | None, BlockRV | None]:
    """The blocks that copy B into panels (with zeros at the edge) and the sums to where they belong.

    Sums that wait in memory between slabs can wait where they belong, if nothing else is done to them.
    """
    block = group.block
    operand = operand_of(sch, block, product.column_operand.buffer)
    packing: BlockRV | None
    out: BlockRV | None
    if tiles.packs and (product.n % tiles.nr or not product.knows_n):
        sch.pad_einsum(block, [tiles.nr if axis is product.column else 1 for axis in product.facts.axes])
        padded = sch.get(block).reads[operand].buffer
        packing = _writer(sch, block, padded)
        (out,) = sch.get_consumers(block)
    else:
        packing = sch.cache_read(block, operand, "global", [block]) if tiles.packs else None
        out = None if not group.after and tiles.slab < product.k else sch.cache_write(block, 0, "global")
    if packing is not None:
        dimension = product.column_dimension
        assert dimension is not None
        sch.transform_layout(packing, ("write", 0), in_panels(len(product.column_operand.indices), dimension, tiles.nr))
    return packing, out


def _lay_along(sch: Schedule, block: BlockRV, product: Product) -> None:
    """A copy of A that runs along the reduction, before all loops."""
    copy = sch.cache_read(block, operand_of(sch, block, product.row_operand.buffer), "global", [block])
    rank = len(product.row_operand.indices)
    sch.transform_layout(copy, ("write", 0), moved_last(rank, product.reduce_dimension or 0))


def _writer(sch: Schedule, block: BlockRV, buffer: Buffer) -> BlockRV:
    """The block that makes an operand."""
    return next(result for result in sch.get_producers(block) if sch.get(result).writes[0].buffer is buffer)


class _Nest(NamedTuple):
    """The loops of the tiled product, by what they do."""

    shared: list[LoopRV]  # those whose iterations threads share out among them
    task: LoopRV
    slab: LoopRV | None
    strips: LoopRV | None  # those of A that are packed together
    strip: LoopRV  # a row of tiles
    tile: LoopRV
    k: LoopRV
    unrolled: list[LoopRV]
    columns: LoopRV


def _tile(sch: Schedule, block: BlockRV, product: Product, tiles: Tiles) -> _Nest:
    loops = loops_by_axis(sch, block, product.facts)
    assert product.row is not None
    row_tiles, row = sch.split(loops[product.row.var], [None, tiles.mr])
    panels, column = sch.split(loops[product.column.var], [None, tiles.nr])
    column_task, tile = sch.split(panels, [None, tiles.task_columns])
    unknown = [loops[axis.var] for axis in product.outer if axis.extent is None]
    unknown += [] if product.knows_n else [column_task]
    row_tasks, strip = [], row_tiles
    if tiles.task_rows < ALL_ROWS and not (unknown and not product.knows_m):
        row_task, strip = sch.split(row_tiles, [None, tiles.task_rows])
        row_tasks.append(row_task)
        unknown += [] if product.knows_m else [row_task]
    *around, k = [loops[axis.var] for axis in product.reduce]
    slab = None
    if tiles.slab < product.k and not around:
        slab, k = sch.split(k, [None, tiles.slab])
    unrolled = []
    if tiles.unroll > 1:
        k, inner = sch.split(k, [None, tiles.unroll])
        unrolled.append(inner)
    outer = [loops[axis.var] for axis in product.outer]
    slabs = [] if slab is None else [slab]
    tasks = [*outer, column_task, *row_tasks]
    shared = tasks
    if unknown:
        # One loop of unknown length goes around those of known length: their number can be divided by, its cannot.
        shared = [unknown[0], *[loop for loop in tasks if loop not in unknown]]
        tasks = [*shared, *unknown[1:]]
    strips = None
    if product.packs_rows and not tiles.reads_rows:
        strips, strip = sch.split(strip, [None, min(tiles.task_rows, PACKED_STRIPS)])
    groups = [] if strips is None else [strips]
    if tiles.panels_first:
        strip, tile = tile, strip  # a column of tiles, whose panel stays near
    sch.reorder(*tasks, *slabs, *groups, strip, tile, *around, k, *unrolled, row, column)
    return _Nest(shared, tasks[-1], slab, strips, strip, tile, k, [*unrolled, row], column)


def _finish(
    sch: Schedule,
    group: Group,
    out: BlockRV,
    sums: str,
    nest: _Nest,
    tiles: Tiles,
    program: Program,
    machine: Machine,
    as_whole_tiles: bool,
) -> None:
    """Bring the sums out of the registers, and do the element-wise work on them."""
    block, after, costly = group.block, list(group.after), group.is_costly
    writer = block
    if as_whole_tiles and nest.slab is None:
        writer = _whole_tiles(sch, block, nest, tiles)
    result = sch.get(out).writes[0].buffer
    if after and not program.is_output(result) and (nest.slab is not None or not costly):
        sch.compute_inline(out)
    else:
        after.insert(0, out)
    if nest.slab is not None:
        for copy in after:
            sch.reverse_compute_at(copy, nest.task)
            vectors(sch, sch.get_loops(copy)[-1], tiles.lanes)
        sch.sink_alloc(block, sums)
        return
    for index, copy in enumerate(after):
        is_of_tile = index == 0 and (copy is out or not costly)
        where = nest.tile if is_of_tile else nest.strip
        sch.reverse_compute_at(copy, where)
        *rows, columns = loops_below(sch, copy, where)
        in_registers = is_of_tile and writer is block
        if in_registers:
            sch.set_scope(block, 0, "local")
            if rows:
                _ask_for_next_tile(sch, copy, rows[-1], tiles, machine)
            for row in rows:
                sch.unroll(row)
        if is_of_tile:
            sch.sink_alloc(writer, sums)
        vectors(sch, columns, tiles.lanes, unrolled=in_registers)
    if costly and after[0] is out and not program.is_output(result):
        sch.sink_alloc(out, result.name)


def _ask_for_next_tile(sch: Schedule, copy: BlockRV, row: LoopRV, tiles: Tiles, machine: Machine) -> None:
    """Have each row that is finished prefetch a row of a later tile, where rows stream from beyond L2.

    Nothing else asks for them: the sums that wait for them are the first to see. Where a strip of tiles fits into the
    L1, it is the tile in the next strip; else the next tile, and the first one of each strip finds nothing.
    """
    realize = sch.get(copy)
    result = realize.writes[0].buffer
    size = size_of(result)
    width = bytes_of(str(result.dtype))
    like = [region.buffer for region in realize.reads if size is not None and size_of(region.buffer) == size]
    far = [buffer for buffer in (*like, result) if buffer.scope() == "global"]
    if size is None or len(far) * size <= machine.l2 // 2:
        return
    strip = tiles.mr * tiles.task_columns * tiles.nr * width * len(far)
    levels = 2 if strip <= machine.l1 and not tiles.panels_first else 1
    for buffer in far:
        lines = max(1, tiles.nr * width // machine.line)
        sch.prefetch(copy, row, buffer.name, distance=1, levels=levels, lines=lines)


def _whole_tiles(sch: Schedule, block: BlockRV, nest: _Nest, tiles: Tiles) -> BlockRV:
    """Sums leave the registers as whole vectors, for a tile in memory: part of a vector has no place in a register."""
    copy = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(copy, nest.tile)
    *rows, columns = loops_below(sch, copy, nest.tile)
    sink_result(sch, block)
    for row in rows:
        sch.unroll(row)
    vectors(sch, columns, tiles.lanes, unrolled=True)
    return copy


def _slabs(sch: Schedule, block: BlockRV, sums: str, init: BlockRV, nest: _Nest, tiles: Tiles) -> None:
    """Sums wait in memory from slab to slab: each tile is loaded into registers and stored again."""
    load = sch.stage(block, nest.tile, sums, "local")
    store = sch.get_block(f"{sums}_unstage")
    for copy in (load, store):
        rows, columns = sch.get_loops(copy)[-2:]
        sch.unroll(rows)
        vectors(sch, columns, tiles.lanes, unrolled=True)
    vectors(sch, sch.get_loops(init)[-1], tiles.lanes)


def _pack(sch: Schedule, packing: BlockRV, location: LoopRV, product: Product, tiles: Tiles, machine: Machine) -> None:
    """Copy a few rows of a panel, then of the next: reads and writes both run along memory."""
    dimension = product.column_dimension
    assert dimension is not None
    loops = loops_below(sch, packing, location)
    columns = loop_of_axis(sch, packing, dimension, loops)
    if columns is None:
        return  # a single column
    others = [loop for loop in loops if loop is not columns]
    if tiles.turned:
        turn_panels(sch, packing, columns, others[-1], tiles.turned, -product.n % tiles.nr)
        return
    panel, column = sch.split(columns, [None, tiles.nr])
    k = extent_of(sch, others[-1]) if others else None
    few = _part_of(k, min(PACKED_ROWS, machine.streams)) if k is not None else 1
    if columns is not loops[-1]:  # B lies the other way: short runs are read along it
        few = PACKED_RUN if k is None else few
        group, run = sch.split(others[-1], [None, few])
        some, column = sch.split(column, [None, _part_of(tiles.nr, machine.streams)])
        sch.reorder(panel, some, group, column, run)
        return
    if few > 1:
        group, row = sch.split(others[-1], [None, few])
        sch.reorder(group, panel, row, column)
    elif others:
        sch.reorder(panel, others[-1], column)
    vectors(sch, column, tiles.lanes, unrolled=True)


def _part_of(count: int, most: int) -> int:
    """About `most` of `count`: a number that leaves nothing over, where one is near enough.

    >>> _part_of(48, 32), _part_of(47, 32), _part_of(20, 12), _part_of(5, 12)
    (24, 32, 10, 5)
    """
    return next((part for part in range(min(count, most), most // 3, -1) if count % part == 0), min(count, most))


def _pack_strips(sch: Schedule, block: BlockRV, product: Product, location: LoopRV, tiles: Tiles) -> None:
    """Copy some strips of A, so that the numbers of one step are neighbours; whole lines of it are read at a time."""
    dimension = product.row_dimension
    assert dimension is not None
    layout = in_panels(len(product.row_operand.indices), dimension, tiles.mr)
    strips = sch.stage(block, location, product.row_operand.buffer.name, layout=layout)
    loops = loops_below(sch, strips, location)
    rows = loops[dimension]
    strip, row = sch.split(rows, [None, tiles.mr])
    sch.reorder(*[loop for loop in loops if loop is not rows], strip, row)
    sch.unroll(row)
