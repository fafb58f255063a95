"""Pixel tiles: the sizes of a convolution by vectors of pixels, chosen by counting cycles.

for images, bands, blocks:                  a band: some lines of the result; a block: some pixels of each
    for slabs:                              some channels of the image: their lines are read along memory, once
        copy the lines of the image         where they are padded, or lie on too many pages
        for tiles:                          rows × places vectors of pixels, of `channels` channels, are in registers
            for c, dy, dx:
                channels × rows × places multiply-adds

The sums of a band stay near from slab to slab. Where all channels of the image stay near, there is one slab, and sums
leave their registers once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import Final, NamedTuple

from loopwright.autosched.cost import EDGE, LOOP, SHARED_LOAD, TILE, UNALIGNED, UNHIDDEN, at_once
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.contraction.streamed import SUM
from loopwright.autosched.rules.contraction.tiles import NEAR_PAGES
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.rules.sliding_window.tiles import SHUFFLES, SPARE_REGISTERS
from loopwright.autosched.tile_search import cheapest, divisors
from loopwright.ir import IntImm

PLACES_ACROSS: Final = 4  # vectors of a tile across
LINES_DOWN: Final = 4
CHANNELS_OF_TILE: Final = 12  # of the result, in one tile
UPDATES_OF_STEP: Final = 110  # of a tile's step, which is written out
UPDATES_AT_BORDERS: Final = 60  # the same where lines are padded, for each border then; half of three axes
FEWEST_IN_SLAB: Final = 24  # products of a sum, between being loaded and stored
FOLLOWED_ROWS: Final = 32  # rows of results that prefetchers follow, from where a strip ends to where the next begins
LATE_LINES: Final = 20  # of a run of results that no prefetcher follows: until one is ahead of the stores
LINE_IN_PARTS: Final = 1024  # pixels of a line that is done in parts, about


@dataclass(frozen=True)
class PixelTiles:
    """The sizes that were chosen, and what they should cost in cycles of all cores, also those without a task."""

    lanes: int
    channels: int
    rows: int
    places: int
    written_out: int  # of the reduction's axes, the last ones
    band: int  # tiles down
    block: int  # tiles across
    slab: int  # channels of the image; all: there is one slab
    has_slabs: bool
    copies_image: bool
    tasks: int  # bands and blocks, and channels where no block is copied for all of them: threads may share these
    cycles: float

    def cycles_on(self, machine: Machine) -> float:
        """What they cost when all threads that find a task are at work."""
        return self.cycles / machine.threads_for(self.cycles)

    @property
    def register_tile(self) -> int:
        return self.channels * self.rows * self.places

    @property
    def width(self) -> int:
        """Pixels of a tile across."""
        return self.places * self.lanes


class _Tile(NamedTuple):
    channels: int
    rows: int
    places: int
    written_out: int


def choose_pixel_tiles(window: Window, machine: Machine, pads: bool) -> PixelTiles:
    """The tiles that cost least; `pads` says that lines are copied in any case, with their padding."""
    lanes = machine.lanes(window.facts.dtype)
    while lanes > 1 and lanes // 2 >= extent(window.row):
        lanes //= 2
    most = UPDATES_AT_BORDERS // max(1, len(window.pixels) - 1) if pads else UPDATES_OF_STEP
    return cheapest(
        _costed(window, machine, copies, lanes, tile, strip)
        for tile in _candidates(window, machine, most)
        for copies in ((True,) if pads else (True, False))
        for strip in _strips(window, machine, lanes, tile)
        if copies or strip.slab < extent(window.reduce[0]) or window.channels % tile.channels == 0
    )


def stride_of(window: Window) -> int:
    """How far neighbouring pixels of the result are from each other in the image."""
    return abs(window.image.stride(window.row.var) or 1)


def _candidates(window: Window, machine: Machine, most: int) -> Iterator[_Tile]:
    room = machine.registers - SPARE_REGISTERS
    lines = extent(window.pixels[-2]) if len(window.pixels) > 1 else 1
    for written_out in range(1, len(window.reduce)):
        taps = _taps(window, written_out)
        if written_out > 1 and taps > most:
            continue
        for channels in _parts(window.channels):
            for rows in range(1, min(LINES_DOWN, lines) + 1):
                if window.channels % channels and lines % rows:
                    continue  # the tiles at either edge are code of their own, and so are those at both
                for places in range(1, PLACES_ACROSS + 1):
                    sums = channels * rows * places
                    is_small = channels <= CHANNELS_OF_TILE and sums + places * stride_of(window) <= room
                    if is_small and (sums * taps <= most or rows * places == 1):
                        yield _Tile(channels, rows, places, written_out)


def _parts(channels: int) -> list[int]:
    """Channels of a tile: those that divide them all, and those of nearly even parts, of which the last has fewer."""
    return sorted(
        {*divisors(channels), *[ceil(channels / ceil(channels / part)) for part in range(2, CHANNELS_OF_TILE + 1)]}
    )


def _taps(window: Window, written_out: int) -> int:
    return prod(extent(axis) for axis in window.reduce[len(window.reduce) - written_out :])


def _slab(window: Window, machine: Machine, near: int) -> int:
    """How many channels of the image are summed before sums are stored; all where `near` bytes of them stay near."""
    count = extent(window.reduce[0])
    if near <= machine.l1 // 2:
        return count
    wanted = ceil(FEWEST_IN_SLAB / (window.k // count))
    return next((part for part in divisors(count) if wanted <= part <= 2 * wanted), min(count, wanted))


class _Strip(NamedTuple):
    """Tiles across and down that are done together, and how many channels of the image at a time."""

    block: int
    band: int
    slab: int
    near: int  # bytes of the cache that the lines of the image wait in


def _lines_of(window: Window, rows: int) -> int:
    """How many lines of a channel of the image `rows` lines of the result read."""
    others = prod(window.span(axis, 1) for axis in window.pixels[:-2])
    return others * (window.span(window.pixels[-2], rows) if len(window.pixels) > 1 else 1)


def _strips(window: Window, machine: Machine, lanes: int, tile: _Tile) -> set[_Strip]:
    """Strips whose sums wait in L1 from slab to slab, and those of all channels, whose sums wait for nothing."""
    rows, places = tile.rows, tile.places
    width, line, inputs = bytes_of(window.facts.dtype), extent(window.row), extent(window.reduce[0])
    lines = extent(window.pixels[-2]) if len(window.pixels) > 1 else 1
    across, tall = ceil(line / (lanes * places)), ceil(lines / rows)

    def image(block: int, band: int) -> int:
        """Bytes of a channel of the image under a strip."""
        return window.span(window.row, min(line, block * lanes * places)) * _lines_of(window, band * rows) * width

    # The sums of a band wait in a quarter of L1, and the lines of a slab lie in half of it.
    quarter = machine.l1 // 4
    room = max(1, quarter // (rows * lanes * places * width * window.channels))
    block = ceil(across / max(ceil(across / room), 1 if line <= 2 * LINE_IN_PARTS else round(line / LINE_IN_PARTS)))
    pixels = min(line, block * lanes * places)
    band = max(1, min(tall, quarter // (pixels * width * window.channels * rows)))
    slab = _slab(window, machine, inputs * image(block, 1))
    while band > 1 and slab * image(block, band) > 2 * quarter:
        band = ceil(band / 2)
    result = {_Strip(block, _even_part(tall, band), slab, machine.l1)}
    if inputs * _lines_of(window, rows) > NEAR_PAGES:
        return result  # so many lines side by side do not come from L2 in time, and short parts of them not from memory
    for near in (machine.l1, machine.l2):
        block = across
        while block > 1 and inputs * image(block, 1) > near // 2:
            block = ceil(block / 2)
        if inputs * image(block, 1) > near // 2:
            continue
        band = tall if block == across else 1
        while band > 1 and inputs * image(block, band) > near // 2:
            band = ceil(band / 2)
        result.add(_Strip(block, _even_part(tall, band), inputs, near))
    return result


def _even_part(count: int, most: int) -> int:
    """About `most` of `count`, so that nothing is left over where that is possible: what is left is code of its own.

    >>> _even_part(24, 10), _even_part(11, 6), _even_part(11, 11)
    (8, 6, 11)
    """
    largest = next(part for part in reversed(divisors(count)) if part <= most)
    return largest if 2 * largest >= most else ceil(count / ceil(count / most))


def _costed(window: Window, machine: Machine, copies: bool, lanes: int, tile: _Tile, strip: _Strip) -> PixelTiles:
    channels, rows, places, written_out = tile
    block, band, slab, near = strip
    width, line, inputs = bytes_of(window.facts.dtype), extent(window.row), extent(window.reduce[0])
    lines = extent(window.pixels[-2]) if len(window.pixels) > 1 else 1
    across, tall = ceil(line / (lanes * places)), ceil(lines / rows)
    has_slabs = slab < inputs

    turns = window.k // inputs // _taps(window, written_out)  # of what is written out, for each channel
    of_tile = slab * turns * (_step(window, machine, tile) + LOOP) + TILE
    of_tile += (2 if has_slabs else 1) * channels * rows * places * SUM
    data = _elements(window) * width
    streams = NEAR_PAGES if data <= machine.l2 else machine.streams
    if not copies and data > machine.l1 and slab * _lines_of(window, rows) > streams:
        of_tile += slab * _lines_of(window, rows) * machine.moves.line_of_page_somewhere
    if near > machine.l1:  # each tile reads its pixels from L2 again
        read = slab * _lines_of(window, rows) * window.span(window.row, lanes * places) * width
        of_tile += UNHIDDEN * read / machine.l2_bytes_per_cycle
    planes = window.batch * (window.places // (line * lines))
    of_tile *= (EDGE if lines % rows else 1.0) * (EDGE if inputs % slab else 1.0)
    of_tile *= EDGE if window.channels % channels else 1.0
    tiles = across * tall * ceil(window.channels / channels) * ceil(inputs / slab) * planes
    cycles = of_tile * tiles
    if copies:
        copied = ceil(tall / band) * _lines_of(window, band * rows) * window.span(window.row, line) * inputs * planes
        cycles += copied * machine.moves.copied
        if near > machine.l1:
            cycles += UNHIDDEN * copied * width / machine.l2_bytes_per_cycle
    parts = ceil(across / block)
    bands = planes * ceil(tall / band)
    results = planes * window.channels * line * lines * width
    if results > machine.l2 and window.channels > FOLLOWED_ROWS and not has_slabs:
        # Each run of a strip's results begins where no prefetcher is yet: it has lost the run that ended there.
        runs = window.channels * bands * parts * (1 if parts == 1 else band * rows)
        cycles += runs * LATE_LINES * machine.moves.line_of_page_far
    cycles = at_once(cycles, data / machine.bytes_per_cycle(data), is_cached=True)
    tasks = bands * parts * (1 if copies or has_slabs else ceil(window.channels / channels))
    cycles *= max(1.0, machine.threads_for(cycles) / tasks)
    return PixelTiles(lanes, channels, rows, places, written_out, band, block, slab, has_slabs, copies, tasks, cycles)


def _elements(window: Window) -> int:
    return prod(int(size.value) for size in window.image.buffer.shape if isinstance(size, IntImm))


def _step(window: Window, machine: Machine, tile: _Tile) -> float:
    """Cycles of what is written out: some taps of a tile, their data in L1."""
    channels, rows, places, written_out = tile
    own = window.reduce[len(window.reduce) - written_out :]
    taps = _taps(window, written_out)
    row_dimension = window.image_dimension(window.row)
    along = prod(extent(axis) for axis in own if window.image_dimension(axis) == row_dimension)
    down = window.pixels[-2] if len(window.pixels) > 1 else None
    shared = down is not None and any(
        window.image_dimension(axis) == window.image_dimension(down) and extent(axis) > 1 for axis in own
    )
    vertical = taps // along
    lines = min(rows * vertical, window.span(down, rows)) if shared and down is not None else rows * vertical
    stride = stride_of(window)
    if stride > 1:
        picked = lines * along * places
        loads = lines * places * (along + stride - 1.0)
        picking = picked * SHUFFLES * (stride - 1) * machine.cpu.microarchitecture.shuffle_cycles
    else:
        loads, picking = lines * places * along * (UNALIGNED if along > 1 else 1.0), 0.0
    loads += channels * taps  # weights
    updates = channels * rows * places * taps
    waiting = taps * machine.fma_latency  # updates of one sum wait for each other
    busy = max(updates / machine.fma_per_cycle, loads / machine.loads_per_cycle, waiting)
    return busy + SHARED_LOAD * loads + picking
