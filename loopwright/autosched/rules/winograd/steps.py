"""The schedule of a convolution by winograd: ordinary steps on the blocks that the step `winograd` makes.

parallel for strip:                       some rows of tiles (in phases: three nests, each shared out by itself)
    turned = data, channels last          tiles of 16 × 16 in registers, where channels lie apart
    wide = padded
    for tile, 16 channels:                data transformed in registers, by columns, then by rows
    for position, panel, 6 tiles:         a product of matrices, sums in registers
    for tile, 16 channels:                results transformed in registers
    out = turned back                     with bias, activation and whatever else comes element by element
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loopwright.autosched.facts import Access, const, loads_of
from loopwright.autosched.program import Program
from loopwright.autosched.rules.contraction.places import loop_of_axis, loops_below, vectors
from loopwright.autosched.rules.winograd.layer import Taken
from loopwright.autosched.rules.winograd.sizes import Sizes
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.transform.tensor_intrinsics import built_in_names

UNROLLED = 4  # steps of the reduction written out


@dataclass
class _Blocks:
    """The blocks of a convolution by winograd, in the order of the program."""

    weight: list[BlockRV]  # by columns, by rows
    wide: BlockRV
    data: list[BlockRV]
    product: BlockRV
    result: list[BlockRV]
    last: BlockRV  # writes the result, and does what comes element by element


def schedule_winograd(sch: Schedule, taken: Taken, program: Program, sizes: Sizes) -> list[str]:
    """Do it; the buffers that are turned, channels to the end or back."""
    first = sch.get_block(taken.block.name)
    made = sch.winograd(first, sizes.tile)
    blocks = _Blocks(made[0:2], made[2], made[3:5], made[5], made[6:8], first)
    if taken.before is not None:
        sch.compute_inline(sch.get_block(taken.before.name))
    for entry in taken.after:
        sch.compute_inline(blocks.last)
        blocks.last = sch.get_block(entry.name)
    _weights(sch, blocks, taken, sizes)
    turned = _turn_data(sch, blocks, program, sizes)
    out = sch.cache_write(blocks.product, 0, "global")
    divide = _phases if sizes.rows is None else _strips
    outer = divide(sch, blocks, [item.block for item in turned], out, sizes)
    for item in turned:
        if not item.size:
            _copy_elements(sch, item.block, outer.data, item.dimension)
    vectors(sch, sch.get_loops(blocks.wide)[-1], sizes.lanes)
    names = [item.name for item in turned]
    if _write_out(sch, blocks.last, sch.get(blocks.result[1]).writes[0].buffer, outer.result, sizes.lanes):
        names.append(sch.get(blocks.last).writes[0].buffer.name)
    if sizes.threads > 1:
        for loop in outer.shared:
            sch.parallel(loop)
            sch.annotate(loop, "parallel_dynamic", 1)  # a core that is late leaves its tasks to the others
    return names


# --- weights ------------------------------------------------------------------------------------------------------


def _weights(sch: Schedule, blocks: _Blocks, taken: Taken, sizes: Sizes) -> None:
    """Weights are transformed into panels: the channels of one tile of sums next to each other, for each input."""
    columns, rows = blocks.weight
    layout = f"lambda a, b, c, f: (a, b, f // {sizes.nr}, c, f % {sizes.nr})"
    sch.transform_layout(rows, ("write", 0), layout)
    first, second, inputs, outputs = sch.get_loops(rows)
    several, lane = sch.split(outputs, [None, sizes.lanes])
    sch.reorder(inputs, several, first, second, lane)
    _below(sch, columns, rows, several, sizes.lanes)
    if sizes.threads > 1 and not taken.layer.is_constant:
        sch.parallel(inputs)


# --- the order of everything --------------------------------------------------------------------------------------


@dataclass
class _Outer:
    """The loops in which data and results are transformed, and those that threads share out."""

    data: LoopRV
    result: LoopRV
    shared: list[LoopRV]


def _strips(sch: Schedule, blocks: _Blocks, turned: Sequence[BlockRV], out: BlockRV, sizes: Sizes) -> _Outer:
    first, second, *batch, down, across, outputs, inputs = sch.get_loops(blocks.product)
    strip, row = sch.split(down, [None, sizes.rows])
    nest = _product(sch, [*batch, strip], [first, second], [row, across], outputs, inputs, sizes)
    sch.compute_at(blocks.data[1], strip)
    _in_registers(sch, blocks.data, strip, 2, sizes.lanes)  # first: what it reads is one whole buffer still
    for block in (blocks.wide, *turned):
        sch.compute_at(block, strip)
    _sums(sch, blocks.product, out, nest, sizes)
    for block in blocks.result:
        sch.reverse_compute_at(block, strip)
    _in_registers(sch, blocks.result, strip, 0, sizes.lanes)
    sch.reverse_compute_at(blocks.last, strip)
    for block in (*turned, blocks.wide, blocks.data[1], out, blocks.result[1]):
        _sink(sch, block)
    if sizes.threads > 1 and batch:
        strip = sch.fuse(*batch, strip)
    return _Outer(strip, strip, [strip])


def _phases(sch: Schedule, blocks: _Blocks, turned: Sequence[BlockRV], out: BlockRV, sizes: Sizes) -> _Outer:
    first, second, *tiles, outputs, inputs = sch.get_loops(blocks.product)
    nest = _product(sch, [], [first, second], tiles, outputs, inputs, sizes)
    _sums(sch, blocks.product, out, nest, sizes)

    a, b, *batch, down, across, channels = sch.get_loops(blocks.data[1])
    sch.reorder(*batch, down, a, b, across, channels)
    row = sch.fuse(*batch, down) if batch else down
    _in_registers(sch, blocks.data, row, 2, sizes.lanes)
    for block in (blocks.wide, *turned):
        sch.compute_at(block, row)
    for block in (*turned, blocks.wide):
        _sink(sch, block)

    *batch, down = sch.get_loops(blocks.result[1])[:-4]
    line = sch.fuse(*batch, down) if batch else down
    _in_registers(sch, blocks.result, line, 0, sizes.lanes)
    sch.reverse_compute_at(blocks.last, line)
    _sink(sch, blocks.result[1])
    panels = sch.fuse(*nest.around)
    return _Outer(row, line, [row, panels, line])


@dataclass
class _Nest:
    around: list[LoopRV]  # positions and panels
    tile: LoopRV  # of sums


def _product(
    sch: Schedule,
    outer: Sequence[LoopRV],
    positions: Sequence[LoopRV],
    tiles: Sequence[LoopRV],
    outputs: LoopRV,
    inputs: LoopRV,
    sizes: Sizes,
) -> _Nest:
    panel, column = sch.split(outputs, [None, sizes.nr])
    *images, down, across = tiles
    if sizes.mr <= sizes.counts[1]:
        tile, row = sch.split(across, [None, sizes.mr])
        around, inside = [*images, down, tile], [row]
    else:  # some whole rows
        tile, row = sch.split(down, [None, sizes.mr // sizes.counts[1]])
        around, inside = [*images, tile], [row, across]
    step, few = sch.split(inputs, [None, UNROLLED])
    sch.reorder(*outer, *positions, panel, *around, step, few, *inside, column)
    for loop in (few, *inside):
        sch.unroll(loop)
    vectors(sch, column, sizes.lanes, unrolled=True)
    return _Nest([*positions, panel], tile)


def _sums(sch: Schedule, product: BlockRV, out: BlockRV, nest: _Nest, sizes: Sizes) -> None:
    """Sums are in registers until a tile of them is done."""
    sch.reverse_compute_at(out, nest.tile)
    sch.set_scope(product, 0, "local")
    _sink(sch, product)
    *rows, columns = loops_below(sch, out, nest.tile)
    for row in rows:
        sch.unroll(row)
    vectors(sch, columns, sizes.lanes, unrolled=True)


def _sink(sch: Schedule, block: BlockRV) -> None:
    sch.sink_alloc(block, sch.get(block).writes[0].buffer.name)


# --- transforms ---------------------------------------------------------------------------------------------------


def _in_registers(sch: Schedule, blocks: Sequence[BlockRV], place: LoopRV, positions: int, lanes: int) -> None:
    """Both passes of a transform for one tile and a vector of channels; positions come first, or before channels."""
    columns, rows = blocks
    *loops, channels = loops_below(sch, rows, place)
    inside, tiles = (loops[:positions], loops[positions:]) if positions else (loops[-2:], loops[:-2])
    several, lane = sch.split(channels, [None, lanes])
    sch.reorder(*tiles, several, *inside, lane)
    _below(sch, columns, rows, several, lanes)


def _below(sch: Schedule, columns: BlockRV, rows: BlockRV, place: LoopRV, lanes: int) -> None:
    """The first pass at a loop of the second, what lies between them in registers, everything written out."""
    sch.compute_at(columns, place)
    _sink(sch, columns)
    sch.set_scope(columns, 0, "local")
    for block in (columns, rows):
        *inside, lane = loops_below(sch, block, place)
        for loop in inside:
            sch.unroll(loop)
        sch.vectorize(lane)


# --- channels last, and back --------------------------------------------------------------------------------------


class _Turned(NamedTuple):
    """A copy of the data with channels last."""

    block: BlockRV
    name: str
    dimension: int  # of the channels before
    size: int  # of the tiles that are turned in registers; 0 where it goes element by element


def _turn_data(sch: Schedule, blocks: _Blocks, program: Program, sizes: Sizes) -> list[_Turned]:
    """Copies of the data with channels last, where they lie apart."""
    now = program.after(sch)
    facts = next(entry.facts for entry in now.entries if entry.name == sch.get(blocks.wide).name_hint)
    assert facts is not None
    channel = facts.axes[-1].var
    found: list[_Turned] = []
    for access in {access.buffer: access for access in facts.reads}.values():
        dimension = access.own_dimension(channel)
        if dimension is None or dimension == len(access.indices) - 1:
            continue
        position = [region.buffer for region in sch.get(blocks.wide).reads].index(access.buffer)
        block = sch.cache_read(blocks.wide, position, "global", [blocks.wide])
        names = [f"d{k}" for k in range(len(access.indices))]
        order = [name for name in names if name != names[dimension]] + [names[dimension]]
        sch.transform_layout(block, ("write", 0), f"lambda {', '.join(names)}: ({', '.join(order)})")
        extents = [const(access.buffer.shape[k]) or 1 for k in (dimension, -1)]
        size = _tile_of(extents, access.buffer.ndim - dimension - 2, str(access.buffer.dtype), sizes.lanes)
        if size:
            block = _in_tiles(sch, block, access.buffer, dimension, size)
        found.append(_Turned(block, access.buffer.name, dimension, size))
    return found


def _intrinsic(size: int, between: int, dtype: str) -> str:
    return f"transpose_{size}{'x1' * between}x{size}_{dtype}"


def _tile_of(extents: Sequence[int], between: int, dtype: str, lanes: int) -> int:
    """The largest tiles that registers can turn and that fill both extents; 0 when there are none."""
    known = set(built_in_names())
    for size in (16, 8, 4):
        whole = all(extent % size == 0 for extent in extents)
        if whole and size <= max(lanes, 4) and _intrinsic(size, between, dtype) in known:
            return size
    return 0


def _in_tiles(sch: Schedule, block: BlockRV, buffer: Buffer, dimension: int, size: int) -> BlockRV:
    """Turn tiles of a copy in registers; the block that is over whole tiles."""
    loops = sch.get_loops(block)
    channels, column = loops[dimension], loops[-1]
    others = [loop for loop in loops if loop is not channels and loop is not column]
    groups, channel = sch.split(channels, [None, size])
    tiles, place = sch.split(column, [None, size])
    sch.reorder(*others, tiles, groups, channel, place)
    sch.tensorize(channel, _intrinsic(size, buffer.ndim - dimension - 2, str(buffer.dtype)))
    return sch.get_block(f"{sch.get(block).name_hint}_o")


def _copy_elements(sch: Schedule, block: BlockRV, place: LoopRV, dimension: int) -> None:
    """A copy that is not made in tiles goes along the channels, so that it writes whole lines."""
    loops = loops_below(sch, block, place)
    channels = loop_of_axis(sch, block, dimension, loops)
    if channels is not None and channels is not loops[-1]:
        sch.reorder(*[loop for loop in loops if loop is not channels], channels)


def _write_out(sch: Schedule, last: BlockRV, source: Buffer, place: LoopRV, lanes: int) -> bool:
    """The result, in vectors along its own memory; whether it is turned for that."""
    loops = loops_below(sch, last, place)
    block = sch.get(last)
    load = next(load for load in loads_of(block.body) if load.buffer is source)
    own = [axis.var for axis in block.iter_vars]
    channels = loop_of_axis(sch, last, own.index(load.indices[-1]), loops)  # type: ignore[arg-type]
    column = loops[-1]
    if channels is None or channels is column:
        vectors(sch, column, lanes)
        return False
    extents = [const(sch.get(loop).extent) or 1 for loop in (channels, column)]
    along = loop_of_axis(sch, last, own.index(load.indices[-2]), loops)  # type: ignore[arg-type]
    size = _tile_of(extents, 0, str(source.dtype), lanes)
    if not size or along is not column:
        vectors(sch, column, lanes)
        return True
    others = [loop for loop in loops if loop is not channels and loop is not column]
    groups, row = sch.split(channels, [None, size])
    tiles, lane = sch.split(column, [None, size])
    sch.reorder(*others, tiles, groups, row, lane)
    names = [f"d{k}" for k in range(source.ndim)]
    layout = f"lambda {', '.join(names)}: ({', '.join([*names[:-2], names[-1], names[-2]])})"
    staged = sch.stage(last, groups, source.name, "local", layout=layout)
    sch.tensorize(sch.get_loops(staged)[-2], _intrinsic(size, 0, str(source.dtype)))
    sch.unroll(row)
    sch.vectorize(lane)
    return True
