"""The schedule of a direct convolution: ordinary steps, in the order a person would write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.layouts import dimensions, folded, layout, swapped_last
from loopwright.autosched.machine import Machine
from loopwright.autosched.parallelize import deal_out
from loopwright.autosched.prefetch import prefetch_weights
from loopwright.autosched.program import Entry
from loopwright.autosched.register_transpose import transpose_intrinsic
from loopwright.autosched.rules.convolution.tiles import Tiles
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.small_steps import (
    extent_of,
    loops_below,
    loops_by_axis,
    operand_of,
    sink_result,
    vectors,
)
from loopwright.schedule import BlockRV, LoopRV, Schedule


def schedule_window(
    sch: Schedule,
    window: Window,
    padding: Entry | None,
    epilogue: Sequence[Entry],
    tiles: Tiles,
    renamed: Sequence[str],
    machine: Machine,
) -> str:
    """Tile, keep the sums in registers, and pad and finish band by band; the block that packs the weights first."""
    block = sch.get_block(window.facts.name)
    blocks = window.channel_block(tiles.lanes) if padding is not None or tiles.copies_image else 1
    packing, out = _copies(sch, block, window, tiles, blocks)
    for name in renamed:
        sch.compute_inline(sch.get_block(name))
    last = _last(sch, out, epilogue)
    registers = transposed_tile = None
    if window.writes_channels_last:
        sch.set_scope(block, 0, "local")  # sums go to where they belong from their registers
    else:
        registers, transposed_tile = _channels_apart(sch, block, last, window, tiles)
    image = None
    if padding is not None:
        image = sch.get_block(padding.name)
    elif tiles.copies_image:
        image = sch.cache_read(block, operand_of(sch, block, window.image.buffer), "global", [block])
    if image is not None:
        sch.transform_layout(image, ("write", 0), _lines(window, blocks))

    nest = _tile(sch, block, window, tiles, blocks)
    if image is not None:
        sch.compute_at(image, nest.task)
        sink_result(sch, image)
        vectors(sch, sch.get_loops(image)[-1], tiles.lanes)
    _finish(sch, block, registers, transposed_tile, last, nest, tiles, window)
    sch.unroll(nest.pixel)
    vectors(sch, nest.channel, tiles.lanes, unrolled=True)
    prefetch_weights(sch, block, nest.step, sch.get(packing).writes[0].buffer, tiles.nr, window.places, machine)
    if tiles.threads > 1:
        deal_out(sch, sch.fuse(*nest.shared), tiles.turns)
    return packing.name


def _copies(sch: Schedule, block: BlockRV, window: Window, tiles: Tiles, blocks: int) -> tuple[BlockRV, BlockRV]:
    """The blocks that copy the weights into panels of channels, and the sums to where they belong."""
    operand = operand_of(sch, block, window.weights.buffer)
    if window.channels % tiles.nr:
        sch.pad_einsum(block, [tiles.nr if axis is window.channel else 1 for axis in window.facts.axes])
        padded = sch.get(block).reads[operand].buffer
        packing = next(result for result in sch.get_producers(block) if sch.get(result).writes[0].buffer is padded)
        out = sch.get_consumers(block)[0]
    else:
        packing = sch.cache_read(block, operand, "global", [block])
        out = sch.cache_write(block, 0, "global")
    names = dimensions(len(window.weights.indices))
    own = names[window.channel_dimension]
    inner = [names[k] for k in window.weight_reduce_dimensions]
    others = [name for name in names if name != own and name not in inner]
    if blocks > 1:
        inner = [f"{inner[0]} // {blocks}", *inner[1:], f"{inner[0]} % {blocks}"]
    order = [*others, f"{own} // {tiles.nr}", *inner, f"{own} % {tiles.nr}"]
    sch.transform_layout(packing, ("write", 0), layout(names, order))
    return packing, out


def _last(sch: Schedule, out: BlockRV, epilogue: Sequence[Entry]) -> BlockRV:
    """The block that writes the result, all other work on the sums in it."""
    after = [out, *[sch.get_block(entry.name) for entry in epilogue]]
    for step in after[:-1]:
        sch.compute_inline(step)
    return after[-1]


def _channels_apart(
    sch: Schedule, block: BlockRV, last: BlockRV, window: Window, tiles: Tiles
) -> tuple[BlockRV, BlockRV | None]:
    """Pixels are neighbours in the result: sums wait in a panel, channels next to each other, to be turned.

    Where the last panel is padded, it is turned whole, also channels that are copied no further: so it waits once more.
    """
    order = list(window.facts.write.indices)
    names = dimensions(len(order))
    pixels = [names[order.index(axis.var)] for axis in window.pixels]
    channel = names[order.index(window.channel.var)]
    others = [name for name in names if name != channel and name not in pixels]
    pixel = folded(pixels, [extent(axis) for axis in window.pixels])
    registers = sch.cache_write(block, 0, "local")
    transposed_tile = sch.cache_write(registers, 0, "global") if window.channels % tiles.nr else None
    by_pixel, by_channel = layout(names, [*others, pixel, channel]), layout(names, [*others, channel, pixel])
    unfolded = layout(names, [*others, *pixels, channel])
    sch.transform_layout(block, ("write", 0), unfolded)
    sch.transform_layout(registers, ("write", 0), by_pixel)
    sch.transform_block_layout(registers, unfolded)
    if transposed_tile is not None:
        sch.transform_layout(transposed_tile, ("write", 0), by_channel)
        sch.transform_block_layout(transposed_tile, by_channel)
    sch.transform_block_layout(last, by_channel)
    return registers, transposed_tile


def _lines(window: Window, blocks: int) -> str:
    """The layout of a copied image: lines of one channel after those of another, so that a step stays near.

    Where channels are neighbours, lines of a block of them: a vector of channels is copied as it is.
    """
    names = dimensions(len(window.image.indices))
    if blocks > 1:
        *others, own = names
        pixel = names[window.image_dimension(window.row) or 0]
        around = [name for name in others if name != pixel]
        return layout(names, [*around, f"{own} // {blocks}", pixel, f"{own} % {blocks}"])
    line = window.image_dimension(window.row)
    assert line is not None
    channels = [
        dimension
        for dimension in (window.image_dimension(axis) for axis in window.reduce)
        if dimension is not None and dimension not in [window.image_dimension(axis) for axis in window.pixels]
    ]
    rest = [name for k, name in enumerate(names) if k != line and k not in channels]
    return layout(names, [*rest, *[names[k] for k in channels], names[line]])


class _Nest(NamedTuple):
    """The loops of the tiled convolution, by what they do."""

    shared: list[LoopRV]  # those whose iterations threads share out among them
    task: LoopRV
    panel: LoopRV
    tile: LoopRV
    step: LoopRV  # the innermost of the reduction
    pixel: LoopRV
    channel: LoopRV


def _tile(sch: Schedule, block: BlockRV, window: Window, tiles: Tiles, blocks: int) -> _Nest:
    loops = loops_by_axis(sch, block, window.facts)
    panels, channel = sch.split(loops[window.channel.var], [None, tiles.nr])
    channel_task, panel = sch.split(panels, [None, tiles.panels])
    tile, pixel = sch.split(loops[window.row.var], [None, tiles.mr])
    lines = [loops[axis.var] for axis in window.pixels[:-1]]
    inner = []
    if lines:
        lines[-1], line = sch.split(lines[-1], [None, tiles.band])
        inner.append(line)
    shared = [*[loops[axis.var] for axis in window.around], *lines, channel_task]
    reduce = [loops[axis.var] for axis in window.reduce]
    if blocks > 1:
        outer, inner_channel = sch.split(reduce[0], [None, blocks])
        reduce = [outer, *reduce[1:], inner_channel]
    sch.reorder(*shared, panel, *inner, tile, *reduce, pixel, channel)
    return _Nest(shared, channel_task, panel, tile, reduce[-1], pixel, channel)


def _finish(
    sch: Schedule,
    block: BlockRV,
    registers: BlockRV | None,
    transposed_tile: BlockRV | None,
    last: BlockRV,
    nest: _Nest,
    tiles: Tiles,
    window: Window,
) -> None:
    """Bring the sums out of the registers, and do the element-wise work on them."""
    sums = sch.get(block).writes[0].buffer.name
    if registers is None:
        _to_memory(sch, last, nest, tiles)
        sch.sink_alloc(block, sums)
        return
    # First all lines of a band, so that the next step sees them whole.
    steps = [step for step in (registers, transposed_tile, last) if step is not None]
    for step in steps:
        sch.reverse_compute_at(step, nest.panel)
    for step in steps[:-1]:
        sink_result(sch, step)
    panel = sch.get(registers).writes[0].buffer.name
    _to_memory(sch, registers, nest, tiles)
    sch.sink_alloc(block, sums)
    size = tiles.lanes
    intrinsic = transpose_intrinsic(size, 0, window.facts.dtype)
    loops = loops_below(sch, last, nest.panel)
    if len(loops) < 2 or _extent(sch, loops[-1]) < size or intrinsic is None:
        return  # what fills no tile goes element by element
    if transposed_tile is None:
        _transpose_and_finish(sch, last, panel, nest, size, intrinsic)
        return
    pixels = _extent(sch, loops[-1])
    if pixels % size == 0 or pixels == window.places:
        # Else squares would start where no whole number of them went before.
        _transpose_accumulators(sch, transposed_tile, nest, size, intrinsic)
    vectors(sch, loops[-1], size)


def _to_memory(sch: Schedule, copy: BlockRV, nest: _Nest, tiles: Tiles) -> None:
    """Store a tile, vector by vector."""
    sch.reverse_compute_at(copy, nest.tile)
    *rows, columns = loops_below(sch, copy, nest.tile)
    for row in rows:
        sch.unroll(row)
    vectors(sch, columns, tiles.lanes, unrolled=True)


def _transpose_and_finish(sch: Schedule, last: BlockRV, panel: str, nest: _Nest, size: int, intrinsic: str) -> None:
    """The last work, on tiles of the panel transposed in registers; what fills no tile goes element by element."""
    *_, channel, pixel = loops_below(sch, last, nest.panel)
    pixels, pixel, channel = _squares(sch, pixel, channel, size)
    rank = len(sch.get(last).iter_vars)
    stage = sch.stage(last, pixels, panel, "local", layout=swapped_last(rank))
    sch.tensorize(sch.get_loops(stage)[-2], intrinsic)
    sch.vectorize(pixel)
    sch.unroll(channel)


def _transpose_accumulators(sch: Schedule, transposed_tile: BlockRV, nest: _Nest, size: int, intrinsic: str) -> None:
    """The copy of a panel that turns it, tile by tile."""
    *_, channel, pixel = loops_below(sch, transposed_tile, nest.panel)
    _, pixel, channel = _squares(sch, pixel, channel, size)
    sch.reorder(pixel, channel)
    sch.tensorize(pixel, intrinsic)


def _squares(sch: Schedule, pixel: LoopRV, channel: LoopRV, size: int) -> tuple[LoopRV, LoopRV, LoopRV]:
    """The two loops in squares: that over squares of pixels, and in a square those over pixels and channels."""
    is_whole = _extent(sch, pixel) % size == 0
    pixels, pixel = sch.split(pixel, [None, size], tail="guard" if is_whole else "peel")[:2]
    channels, channel = sch.split(channel, [None, size])
    if not is_whole:
        sch.fission(channels)
    sch.reorder(pixels, channel, pixel)
    return pixels, pixel, channel


def _extent(sch: Schedule, loop: LoopRV) -> int:
    result = extent_of(sch, loop)
    assert result is not None  # all sizes of a convolution are known
    return result
