"""Tiles: the sizes of a direct convolution, chosen by counting cycles.

parallel for images, bands, channel tasks:      a band: `band` lines of the result
    copy the lines of the image                 with its padding; lines of one channel after those of another
    for panels:                                 `nr` channels, whose weights stay in L2
        for lines, tiles:                       `mr` pixels × `nr` channels are summed in registers
            for c, dy, dx:
                mr × nr multiply-adds
        turn the panel's pixels into lines      where channels are not neighbours in the result
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from loopwright.autosched.cost import EDGE, OVERHEAD, UNHIDDEN, on_threads, tile_step, turns_of
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.contraction.tiles import NEAR_PAGES
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.tile_search import ONE_AHEAD, TWO_AHEAD, cheapest, divisors, register_tiles

MOST_VECTORS = 3  # of a tile that leaves no register free


@dataclass(frozen=True)
class Tiles:
    """The sizes that were chosen, and what they should cost in cycles of one core."""

    mr: int
    vectors: int
    lanes: int
    band: int  # lines of the result that are done together
    panels: int  # of channels, in one task
    copies_image: bool  # lines are copied, so that loads of the reduction are contiguous
    threads: int
    turns: int
    cycles: float

    @property
    def nr(self) -> int:
        return self.vectors * self.lanes

    @property
    def register_tile(self) -> int:
        return self.mr * self.vectors


def choose_tiles(window: Window, machine: Machine, pads: bool) -> Tiles:
    """The tiles that cost least. A padded image is copied in any case."""
    lanes = machine.lanes(window.facts.dtype)
    work = window.batch * window.k * window.places * window.channels / (machine.fma_per_cycle * lanes)
    threads = machine.threads_for(work)
    result = (
        _costed(window, machine, copies, lanes, threads, mr, vectors, band, image, panels)
        for band, image in [(band, _image(window, band)) for band in _bands(window)]
        for mr, vectors in _register_tiles(window, machine, lanes)
        for panels in divisors(ceil(window.channels / (vectors * lanes)))
        for copies in ((True,) if pads else (True, False))
    )
    return cheapest(result)


def _register_tiles(window: Window, machine: Machine, lanes: int) -> Iterator[tuple[int, int]]:
    most = extent(window.row)
    most_vectors = min(6, ceil(window.channels / lanes))
    # Where multiply-adds do not read pixels themselves, neighbours are loaded in pairs: one more is on its way.
    loads_pairs = window.image.stride(window.row.var) == 1
    for mr, vectors in register_tiles(machine, min(most, 30), most_vectors, ONE_AHEAD):
        is_full = mr * vectors + vectors + TWO_AHEAD > machine.registers
        if is_full and not machine.cpu.units.has_memory_operands and (loads_pairs or vectors > MOST_VECTORS):
            continue
        # Only the smallest of those that make as many tiles: the others leave the last one shorter.
        if mr == 1 or ceil(most / mr) < ceil(most / (mr - 1)):
            yield mr, vectors


def _bands(window: Window) -> list[int]:
    """Lines that may be done together: all bands have as many."""
    return divisors(extent(window.pixels[-2])) if len(window.pixels) > 1 else [1]


def _transpose_cost(window: Window, machine: Machine, pixels: int, nr: int, lanes: int) -> float:
    """What it costs to turn the sums of one channel; a padded panel waits in memory once more."""
    rest = pixels % lanes
    transposed = (pixels - rest) * machine.moves.transposed * (2 if window.channels % nr else 1)
    return transposed + rest * machine.element_cycles


def _skipped(window: Window, machine: Machine, mr: int, width: int) -> float:
    """What a step costs that reads the image in place, where the next number of a pixel lies elsewhere."""
    jump = window.reduction_jump * width
    if jump < machine.line:
        return 0.0
    lines = ceil(window.span(window.row, mr) * width / machine.line)
    moves = machine.moves
    return lines * (moves.line_skipped if jump < machine.page // 2 else moves.line_of_page_somewhere)


def _far_apart(window: Window, machine: Machine, mr: int, image: int) -> float:
    """What a tile waits for lines of a copied image, where those of one channel lie far from those of the next.

    Long lines of many channels: each is on a page of its own, and no prefetcher goes on to the next page.
    """
    width = bytes_of(window.facts.dtype)
    jump = window.span(window.row, extent(window.row)) * width
    if jump < machine.page // 4 or image <= NEAR_PAGES * machine.page:
        return 0.0
    moves = machine.moves
    late = min(1.0, jump / (machine.page // 2)) if image > machine.l2 // 2 else 0.0
    lines = ceil(window.span(window.row, mr) * width / machine.line)
    return window.lines * lines * (late * moves.line_of_page_far + (1 - late) * moves.line_of_panel)


def _copying(window: Window, machine: Machine, lanes: int) -> float:
    """What it costs to copy an element of the image into the band."""
    if window.channel_block(lanes) > 1:
        return machine.moves.copied_whole
    # Where channels are neighbours in the image, pixels are in the band.
    return machine.moves.transposed_short if window.reads_channels_last else machine.moves.copied


def _image(window: Window, band: int) -> int:
    """How many numbers of the image a band of lines is made of."""
    count = window.image_channels * window.span(window.row, extent(window.row))
    for axis in window.pixels[:-2]:
        count *= window.span(axis, 1)
    return count * window.span(window.pixels[-2], band) if len(window.pixels) > 1 else count


def _costed(
    window: Window,
    machine: Machine,
    copies: bool,
    lanes: int,
    threads: int,
    mr: int,
    vectors: int,
    band: int,
    image: int,
    panels: int,
) -> Tiles:
    width = bytes_of(window.facts.dtype)
    nr = vectors * lanes
    line = extent(window.row)
    step = tile_step(machine, mr, vectors)
    weights = window.k * nr * width
    if weights > machine.l1 // 2:
        brought = nr * width / machine.bytes_per_cycle(weights)
        step = max(step, brought) + machine.moves.panel_share * min(step, brought)
    if not copies:
        step += _skipped(window, machine, mr, width)
    tile = window.k * step + OVERHEAD
    image *= width
    if copies:
        tile += _far_apart(window, machine, mr, image)
    sums = band * line * nr * width
    # Each panel reads the lines of the image once from where they are, and its sums come back to be turned.
    passing = image / machine.bytes_per_cycle(image) + sums / machine.bytes_per_cycle(sums)
    pixels = band * line
    is_plain = window.writes_channels_last
    out = nr * (pixels * machine.moves.stored if is_plain else _transpose_cost(window, machine, pixels, nr, lanes))
    task = panels * (band * ceil(line / mr) * tile + out + UNHIDDEN * passing)
    if copies:
        task += image / width * _copying(window, machine, lanes)
    others = window.places // (line * band)
    tasks = window.batch * others * (ceil(window.channels / nr) // panels)
    # Weights come from further away once for each task, those of all channels in it.
    task += UNHIDDEN * weights * panels / machine.l3_bytes_per_cycle
    whole = on_threads(machine, task, tasks, threads) * (EDGE if line % mr else 1.0)
    return Tiles(mr, vectors, lanes, band, panels, copies, threads, turns_of(tasks, threads), whole)
