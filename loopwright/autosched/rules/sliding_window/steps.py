"""The schedule of a window: ordinary steps.

Along the movement (NCHW), rows are copied with their padding, so that all loads are whole vectors:

    for n, c:                                        shared out to threads
        for band:
            copy some rows of data, zeros around them
            for tile down, tile across:
                for all taps, rows, places: sum += data * weight         written out, in vectors, sums in registers
                element-wise work on the sums, and out

Where the data is the same for some of the outer axes (output channels of one input channel), and small, all of it is
copied once before these run.

Across it (NHWC), each vector is whole anyway, and the padding is asked about in place; lowering cuts the loops so that
only tiles at the border ask:

    for n, y, tile of x, channels:  …
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from loopwright.autosched.program import Program
from loopwright.autosched.rules.sliding_window.fused_blocks import MatchedBlocks
from loopwright.autosched.rules.sliding_window.tiles import Tiles
from loopwright.autosched.rules.sliding_window.window import Window
from loopwright.autosched.small_steps import extent_of, loops_below, loops_by_axis, sink_result
from loopwright.ir.annotations import VECTOR_LANES
from loopwright.schedule import BlockRV, LoopRV, Schedule, ScheduleError


class _Nest(NamedTuple):
    """The loops of a tiled window, by what they do."""

    shared: list[LoopRV]  # directly in one another, outermost first: threads may share them out
    around: list[LoopRV]  # those around the tiles, outermost first
    copied_in: LoopRV | None  # where data is copied with its padding; None for before all loops
    tile: LoopRV  # the innermost loop over tiles
    written_out: list[LoopRV]
    vector: LoopRV


def schedule_window(sch: Schedule, used: MatchedBlocks, program: Program, tiles: Tiles, pieces: int) -> list[LoopRV]:
    """Do it; the loops that threads may share out, outermost first: of about `pieces` iterations, where there are."""
    window = used.window
    block = sch.get_block(window.facts.name)
    after = _results(sch, block, used, program)
    padding = sch.get_block(used.padding.name) if used.padding is not None else None
    if padding is not None and not copies_padding(window):
        sch.compute_inline(padding)
        padding = None
    if window.is_along:
        nest = _along(sch, block, window, padding, tiles, pieces)
    else:
        nest = _across(sch, block, window, tiles, pieces)
    for reader in after:
        sch.reverse_compute_at(reader, nest.tile, preserve_unit_loops=True)
    if padding is not None and nest.copied_in is not None:
        sch.compute_at(padding, nest.copied_in)
        sink_result(sch, padding)
    sink_result(sch, block)
    for loop in nest.written_out:
        sch.unroll(loop)
    sch.vectorize(nest.vector)
    for index, reader in enumerate(after):
        _write_out(sch, reader, nest.tile, window, tiles.lanes)
        if index + 1 < len(after) and not program.is_output(sch.get(reader).writes[0].buffer):
            sink_result(sch, reader)
    if padding is not None:
        row = sch.get_loops(padding)[-1]
        sch.vectorize(row)
        sch.annotate(row, VECTOR_LANES, tiles.lanes)
    return nest.shared


def copies_padding(window: Window) -> bool:
    """Whether padded data is copied: along the movement, if there are loops in which to do it for a few rows."""
    return window.is_along and bool(window.outer or len(window.movements) > 1)


def _results(sch: Schedule, block: BlockRV, used: MatchedBlocks, program: Program) -> list[BlockRV]:
    """Sums in a buffer of their own; the blocks that bring them out, of which the first reads it."""
    after = [sch.get_block(entry.name) for entry in used.epilogue]
    out = sch.cache_write(block, 0, "local")
    if after and not program.is_output(used.window.facts.write.buffer):
        sch.compute_inline(out)
        return after
    return [out, *after]


def _along(sch: Schedule, block: BlockRV, window: Window, padding: BlockRV | None, tiles: Tiles, pieces: int) -> _Nest:
    """Vectors along the movement of the window."""
    loops = loops_by_axis(sch, block, window.facts)
    repeated = window.repeated if padding is not None and tiles.copies_once else ()
    different = [axis for axis in window.outer if axis not in repeated]
    outer = [loops[axis.var] for axis in (*different, *repeated)]
    around = [*outer, *[loops[movement.axis.var] for movement in window.deep]]
    taps = [loops[axis.var] for axis in window.facts.reduce]
    is_wide = padding is not None and _widen(sch, padding, window, tiles)
    down: list[LoopRV] = []
    row: list[LoopRV] = []
    if window.down is not None:
        band, *down = sch.split(loops[window.down.axis.var], [None, tiles.band, tiles.rows])
        around.append(band)
        row = [down.pop()]
    widths = [None, tiles.places, tiles.lanes]
    tile, location, vector = sch.split(loops[window.lane.var], widths, tail="pad" if is_wide else "guard")
    sch.reorder(*around, *down, tile, *taps, *row, location, vector)
    shared, copied_in = around, around[-1] if around else None
    if repeated:
        copied_in = outer[len(different) - 1] if different else None
        is_enough = pieces > 1 and prod(axis.extent or 1 for axis in different) >= pieces
        shared = around[: len(different)] if is_enough else around[len(different) :]
    return _Nest(shared, around, copied_in, tile, [*taps[len(taps) - tiles.written_out :], *row, location], vector)


def _widen(sch: Schedule, padding: BlockRV, window: Window, tiles: Tiles) -> bool:
    """Pad further, so that the last vector of a row of results is whole, whatever it computes; whether that is done."""
    movement = window.movements[-1]
    width = tiles.places * tiles.lanes
    locations = -(-window.lane_extent // width) * width
    loop = sch.get_loops(padding)[movement.dimension]
    now, wanted = extent_of(sch, loop), movement.first + movement.reach(locations)
    if now is None:
        return False
    if now < wanted:
        try:
            sch.split(loop, [1, wanted], tail="pad")
        except ScheduleError:
            return False  # there is nothing to pad with: cells beyond are not asked about
    return True


def _across(sch: Schedule, block: BlockRV, window: Window, tiles: Tiles, pieces: int) -> _Nest:
    """Vectors across the movement."""
    loops = loops_by_axis(sch, block, window.facts)
    outer = [loops[axis.var] for axis in window.outer]
    deep = [loops[movement.axis.var] for movement in window.deep]
    taps = [loops[axis.var] for axis in window.facts.reduce]
    assert window.down is not None
    across, row = sch.split(loops[window.down.axis.var], [None, tiles.rows])
    tile, location, vector = sch.split(loops[window.lane.var], [None, tiles.places, tiles.lanes])
    written_out = [*taps[len(taps) - tiles.written_out :], row, location]
    copies = prod(axis.extent or 1 for axis in window.outer)
    if copies < pieces and copies * (extent_of(sch, tile) or 1) >= pieces:
        shared = [*outer, tile]
        around, tile = [*shared, *deep], across
    elif copies < pieces and deep:
        # Pieces of several rows: lowering then cuts the loop inside, and only the first and last row ask.
        share, first = sch.split(deep[0], [min(-(-pieces // copies), extent_of(sch, deep[0]) or 1), None])
        shared = [*outer, share]
        around = [*shared, first, *deep[1:], across]
    else:
        shared = outer or [*deep, across]
        around = [*outer, *deep, across]
    sch.reorder(*around, tile, *taps, row, location, vector)
    return _Nest(shared, around, None, tile, written_out, vector)


def _write_out(sch: Schedule, reader: BlockRV, tile: LoopRV, window: Window, lanes: int) -> None:
    """What is done with the sums of a tile: in vectors, written out."""
    loops = loops_below(sch, reader, tile)
    vector = loops.pop([axis.var for axis in window.facts.spatial].index(window.lane.var))
    several, lane = sch.split(vector, [None, lanes])
    sch.vectorize(lane)
    for loop in (*loops, several):
        if extent_of(sch, loop) != 1:
            sch.unroll(loop)
