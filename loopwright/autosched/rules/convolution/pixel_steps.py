"""The schedule of a convolution by vectors of pixels: ordinary steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry
from loopwright.autosched.rules.convolution.pixel_tiles import PixelTiles
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.small_steps import extent_of, loops_below, loops_by_axis, operand_of, sink_result, vectors
from loopwright.ir.annotations import VECTOR_LANES
from loopwright.schedule import BlockRV, LoopRV, Schedule, ScheduleError

WRITTEN_OUT_COPY: Final = 256  # bytes: a copy of fewer, of a number that is known, becomes a run of loads and stores


class _Nest(NamedTuple):
    """The loops, by what they do."""

    shared: list[LoopRV]  # directly in one another, outermost first: threads may share them out
    near: LoopRV  # the innermost around all slabs of a band
    slab: LoopRV | None
    tile: LoopRV
    written_out: list[LoopRV]
    vector: LoopRV


def schedule_pixels(
    sch: Schedule, window: Window, padding: Entry | None, epilogue: Sequence[Entry], tiles: PixelTiles
) -> list[LoopRV]:
    """Tile, keep the sums in registers, pad and finish band by band; the loops that threads may share out."""
    block = sch.get_block(window.facts.name)
    after = [sch.cache_write(block, 0, "local" if not tiles.has_slabs else "global")]
    after += [sch.get_block(entry.name) for entry in epilogue]
    for step in after[:-1]:
        sch.compute_inline(step)
    last = after[-1]
    image = sch.get_block(padding.name) if padding is not None else None
    is_wide = image is not None and _widen(sch, image, window, tiles)
    if image is None and tiles.copies_image:
        image = sch.cache_read(block, operand_of(sch, block, window.image.buffer), "global", [block])
    nest = _tile(sch, block, window, tiles, is_wide)
    sums = sch.get(block).writes[0].buffer.name
    sch.reverse_compute_at(last, nest.near if tiles.has_slabs else nest.tile, preserve_unit_loops=True)
    init = sch.decompose_reduction(block, nest.slab) if nest.slab is not None else None
    if image is not None:
        sch.compute_at(image, nest.slab or nest.near)
        sink_result(sch, image)
    sch.sink_alloc(block, sums)
    if init is not None:
        _in_registers(sch, block, sums, nest, tiles)
        vectors(sch, sch.get_loops(init)[-1], tiles.lanes)
        vectors(sch, sch.get_loops(last)[-1], tiles.lanes)
    else:
        *others, row = loops_below(sch, last, nest.tile)
        for loop in others:
            if extent_of(sch, loop) != 1:
                sch.unroll(loop)
        vectors(sch, row, tiles.lanes, unrolled=True)
    for loop in nest.written_out:
        sch.unroll(loop)
    sch.vectorize(nest.vector)
    if image is not None:
        row = sch.get_loops(image)[-1]
        size = (extent_of(sch, row) or WRITTEN_OUT_COPY) * bytes_of(window.facts.dtype)
        if len(window.pixels) < 3 and size < WRITTEN_OUT_COPY:
            vectors(sch, row, tiles.lanes)
        else:
            sch.vectorize(row)
            sch.annotate(row, VECTOR_LANES, tiles.lanes)
    return nest.shared


def _widen(sch: Schedule, image: BlockRV, window: Window, tiles: PixelTiles) -> bool:
    """Pad further, so that the last vector of a line is whole, whatever it computes; whether that is done."""
    width = tiles.width * tiles.block
    wanted = window.span(window.row, -(-extent(window.row) // width) * width)
    loop = sch.get_loops(image)[-1]
    now = extent_of(sch, loop)
    if now is None:
        return False
    if now < wanted:
        try:
            sch.split(loop, [1, wanted], tail="pad")
        except ScheduleError:
            return False  # there is nothing to pad with
    return True


def _tile(sch: Schedule, block: BlockRV, window: Window, tiles: PixelTiles, is_wide: bool) -> _Nest:
    loops = loops_by_axis(sch, block, window.facts)
    around = [loops[axis.var] for axis in (*window.around, *window.pixels[:-2])]
    tail = "pad" if is_wide else "guard"
    widths = [None, tiles.block, tiles.places, tiles.lanes]
    part, tile, location, vector = sch.split(loops[window.row.var], widths, tail=tail)
    down: list[LoopRV] = []
    row: list[LoopRV] = []
    if len(window.pixels) > 1:
        band, *down = sch.split(loops[window.pixels[-2].var], [None, tiles.band, tiles.rows])
        around.append(band)
        row = [down.pop()]
    own, channel = sch.split(loops[window.channel.var], [None, tiles.channels])
    first, *taps = [loops[axis.var] for axis in window.reduce]
    slab = None
    if tiles.has_slabs:
        slab, first = sch.split(first, [None, tiles.slab])
    slabs = [] if slab is None else [slab]
    shared = [*around, part]
    if not tiles.has_slabs and not tiles.copies_image:  # nothing is done once for all channels
        is_ragged = extent(window.row) % (tiles.width * tiles.block) != 0 and any(
            extent_of(sch, loop) != 1 for loop in around
        )
        # Fused with the loops around it, a part would hide which of them is the shorter last one.
        shared = [*around, own, part] if is_ragged else [*around, part, own]
    else:
        slabs.append(own)
    sch.reorder(*shared, *slabs, *down, tile, first, *taps, channel, *row, location, vector)
    written_out = [*taps[len(taps) - tiles.written_out :], channel, *row, location]
    if shared[-1] is part and own in shared:
        shared.pop()
    return _Nest(shared, part, slab, tile, written_out, vector)


def _in_registers(sch: Schedule, block: BlockRV, sums: str, nest: _Nest, tiles: PixelTiles) -> None:
    """Sums wait in memory from slab to slab: each tile is loaded into registers and stored again."""
    load = sch.stage(block, nest.tile, sums, "local")
    store = sch.get_block(f"{sums}_unstage")
    for copy in (load, store):
        *others, row = loops_below(sch, copy, nest.tile)
        for loop in others:
            sch.unroll(loop)
        vectors(sch, row, tiles.lanes, unrolled=True)
