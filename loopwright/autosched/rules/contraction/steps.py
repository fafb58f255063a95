"""The schedule of a product: ordinary steps, in the order a person would write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.facts import Access, const
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.places import loop_of_axis, loops_below, vectors
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.contraction.tiles import ALL_ROWS, PACKED_STRIPS, Tiles
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule

PACKED_RUN = 16  # of B, read along it where it lies the other way and its length is not known
PACKED_ROWS = range(32, 7, -1)  # of B copied before the next panel: whole pages are read before they are left


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


def schedule_product(sch: Schedule, product: Product, group: Group, program: Program, tiles: Tiles) -> None:
    """Tile, pack, keep the sums in registers, and do the element-wise work before and after it on the way."""
    block = group.block
    packing, out = _copies(sch, group, product, tiles)
    for made in reversed(group.before):
        sch.compute_inline(made)
    if product.prepacks_rows:
        _lay_along(sch, block, product)
    if product.prepacks_columns:
        packing = None  # it stays before the loops, where lowering finds that it depends on constants alone
    nest = _tile(sch, block, product, tiles)
    sums = sch.get(block).writes[0].buffer.name

    init = sch.decompose_reduction(block, nest.slab) if nest.slab is not None else None
    if nest.strips is not None:
        _pack_strips(sch, block, product, nest.strips, tiles)
    if packing is not None:
        sch.compute_at(packing, nest.slab or nest.task)
        sch.sink_alloc(packing, sch.get(packing).writes[0].buffer.name)
    if out is not None:
        is_padded = not product.knows_columns or product.columns % tiles.nr > 0
        whole = not product.knows_columns or (is_padded and not product.knows_rows and tiles.threads > 1)
        _finish(sch, group, out, sums, nest, tiles, program, whole)
    if init is not None:
        _slabs(sch, block, sums, init, nest, tiles)

    for loop in nest.unrolled:
        sch.unroll(loop)
    vectors(sch, nest.columns, tiles.lanes, unrolled=True)
    if packing is not None:
        _pack(sch, packing, nest.slab or nest.task, product, tiles)
    if tiles.threads > 1:
        tasks = sch.fuse(*nest.shared)
        sch.parallel(tasks)
        if tiles.turns > 1:
            sch.annotate(tasks, "parallel_dynamic", 1)  # a core that is late leaves its tasks to the others


def _copies(sch: Schedule, group: Group, product: Product, tiles: Tiles) -> tuple[BlockRV | None, BlockRV | None]:
    """The blocks that copy B into panels (with zeros at the edge) and the sums to where they belong.

    Sums that wait in memory between slabs can wait where they belong, if nothing else is done to them.
    """
    block = group.block
    operand = [region.buffer for region in sch.get(block).reads].index(product.column_operand.buffer)
    packing: BlockRV | None
    out: BlockRV | None
    if product.columns % tiles.nr or not product.knows_columns:
        sch.pad_einsum(block, [tiles.nr if axis is product.column else 1 for axis in product.facts.axes])
        padded = sch.get(block).reads[operand].buffer
        packing = _writer(sch, block, padded)
        (out,) = sch.get_consumers(block)
    else:
        packing = sch.cache_read(block, operand, "global", [block]) if tiles.packs else None
        out = None if not group.after and tiles.slab < product.depth else sch.cache_write(block, 0, "global")
    if packing is not None:
        sch.transform_layout(packing, ("write", 0), _panels(product.column_operand, product.column_dimension, tiles.nr))
    return packing, out


def _panels(operand: Access, dimension: int | None, width: int) -> str:
    """The layout of packed panels: lambda k, j: (j // width, k, j % width)."""
    indices = [f"d{k}" for k in range(len(operand.indices))]
    assert dimension is not None
    own = indices[dimension]
    others = [index for index in indices if index != own]
    return f"lambda {', '.join(indices)}: ({', '.join([f'{own} // {width}', *others, f'{own} % {width}'])})"


def _lay_along(sch: Schedule, block: BlockRV, product: Product) -> None:
    """A copy of A that runs along the reduction, before all loops."""
    operand = [region.buffer for region in sch.get(block).reads].index(product.row_operand.buffer)
    copy = sch.cache_read(block, operand, "global", [block])
    indices = [f"d{k}" for k in range(len(product.row_operand.indices))]
    along = indices[product.reduce_dimension or 0]
    order = [*[index for index in indices if index != along], along]
    sch.transform_layout(copy, ("write", 0), f"lambda {', '.join(indices)}: ({', '.join(order)})")


def _writer(sch: Schedule, block: BlockRV, buffer: Buffer) -> BlockRV:
    """The block that makes an operand."""
    return next(made for made in sch.get_producers(block) if sch.get(made).writes[0].buffer is buffer)


class _Nest:
    """The loops of the tiled product, by what they do."""

    def __init__(
        self,
        shared: list[LoopRV],
        task: LoopRV,
        slab: LoopRV | None,
        strips: LoopRV | None,
        strip: LoopRV,
        tile: LoopRV,
        unrolled: list[LoopRV],
        columns: LoopRV,
    ) -> None:
        self.shared = shared  # those whose iterations threads share out among them
        self.task = task
        self.slab = slab
        self.strips = strips  # those of A that are packed together
        self.strip = strip  # a row of tiles
        self.tile = tile
        self.unrolled = unrolled
        self.columns = columns


def _tile(sch: Schedule, block: BlockRV, product: Product, tiles: Tiles) -> _Nest:
    loops = dict(zip([axis.var for axis in product.facts.axes], sch.get_loops(block), strict=True))
    assert product.row is not None
    row_tiles, row = sch.split(loops[product.row.var], [None, tiles.mr])
    panels, column = sch.split(loops[product.column.var], [None, tiles.nr])
    column_task, tile = sch.split(panels, [None, tiles.task_columns])
    unknown = [loops[axis.var] for axis in product.outer if axis.extent is None]
    unknown += [] if product.knows_columns else [column_task]
    row_tasks, strip = [], row_tiles
    if tiles.task_rows < ALL_ROWS and not (unknown and not product.knows_rows):
        row_task, strip = sch.split(row_tiles, [None, tiles.task_rows])
        row_tasks.append(row_task)
        unknown += [] if product.knows_rows else [row_task]
    *around, depth = [loops[axis.var] for axis in product.reduce]
    slab = None
    if tiles.slab < product.depth and not around:
        slab, depth = sch.split(depth, [None, tiles.slab])
    unrolled = []
    if tiles.unroll > 1:
        depth, inner = sch.split(depth, [None, tiles.unroll])
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
    if product.packs_rows:
        strips, strip = sch.split(strip, [None, min(tiles.task_rows, PACKED_STRIPS)])
    groups = [] if strips is None else [strips]
    if tiles.panels_first:
        strip, tile = tile, strip  # a column of tiles, whose panel stays near
    sch.reorder(*tasks, *slabs, *groups, strip, tile, *around, depth, *unrolled, row, column)
    return _Nest(shared, tasks[-1], slab, strips, strip, tile, [*unrolled, row], column)


def _finish(
    sch: Schedule,
    group: Group,
    out: BlockRV,
    sums: str,
    nest: _Nest,
    tiles: Tiles,
    program: Program,
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
    for place, copy in enumerate(after):
        is_of_tile = place == 0 and (copy is out or not costly)
        where = nest.tile if is_of_tile else nest.strip
        sch.reverse_compute_at(copy, where)
        *rows, columns = loops_below(sch, copy, where)
        in_registers = is_of_tile and writer is block
        if in_registers:
            sch.set_scope(block, 0, "local")
            for row in rows:
                sch.unroll(row)
        if is_of_tile:
            sch.sink_alloc(writer, sums)
        vectors(sch, columns, tiles.lanes, unrolled=in_registers)
    if costly and after[0] is out and not program.is_output(result):
        sch.sink_alloc(out, result.name)


def _whole_tiles(sch: Schedule, block: BlockRV, nest: _Nest, tiles: Tiles) -> BlockRV:
    """Sums leave the registers as whole vectors, for a tile in memory: part of a vector has no place in a register."""
    copy = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(copy, nest.tile)
    *rows, columns = loops_below(sch, copy, nest.tile)
    sch.sink_alloc(block, sch.get(block).writes[0].buffer.name)
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


def _pack(sch: Schedule, packing: BlockRV, place: LoopRV, product: Product, tiles: Tiles) -> None:
    """Copy a few rows of a panel, then of the next: reads and writes both run along memory."""
    dimension = product.column_dimension
    assert dimension is not None
    loops = loops_below(sch, packing, place)
    columns = loop_of_axis(sch, packing, dimension, loops)
    if columns is None:
        return  # a single column
    others = [loop for loop in loops if loop is not columns]
    panel, column = sch.split(columns, [None, tiles.nr])
    depth = const(sch.get(others[-1]).extent) if others else None
    few = next((rows for rows in PACKED_ROWS if depth is not None and depth % rows == 0), 1)
    if columns is not loops[-1]:  # B lies the other way: short runs are read along it
        few = PACKED_RUN if depth is None else few
        group, run = sch.split(others[-1], [None, few])
        sch.reorder(panel, group, column, run)
        return
    if few > 1:
        group, row = sch.split(others[-1], [None, few])
        sch.reorder(group, panel, row, column)
    elif others:
        sch.reorder(panel, others[-1], column)
    vectors(sch, column, tiles.lanes, unrolled=True)


def _pack_strips(sch: Schedule, block: BlockRV, product: Product, place: LoopRV, tiles: Tiles) -> None:
    """Copy some strips of A, so that the numbers of one step are neighbours; whole lines of it are read at a time."""
    dimension = product.row_dimension
    assert dimension is not None
    indices = [f"d{k}" for k in range(len(product.row_operand.indices))]
    own = indices[dimension]
    others = [index for index in indices if index != own]
    order = [f"{own} // {tiles.mr}", *others, f"{own} % {tiles.mr}"]
    layout = f"lambda {', '.join(indices)}: ({', '.join(order)})"
    strips = sch.stage(block, place, product.row_operand.buffer.name, layout=layout)
    loops = loops_below(sch, strips, place)
    rows = loops[dimension]
    strip, row = sch.split(rows, [None, tiles.mr])
    sch.reorder(*[loop for loop in loops if loop is not rows], strip, row)
    sch.unroll(row)
