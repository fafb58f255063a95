"""Sizes of a convolution on bands, chosen by counting cycles; see `row_band_steps.py` for what they cut up.

What a task reads is copied into a band by the task itself: nobody waits for others, and lines that two tasks read are
copied twice. Sums wait in memory for the element-wise work on them, in L1 where they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from loopwright.autosched.cost import on_threads
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.rules.low_precision.row_band import Band
from loopwright.autosched.rules.low_precision.units import AMX_WINDOW, Unit
from loopwright.autosched.tile_search import cheapest, divisors
from loopwright.transform.tensor_intrinsics.x86_amx import PAIR
from loopwright.transform.tensor_intrinsics.x86_amx import ROWS as TILE
from loopwright.transform.tensor_intrinsics.x86_amx_window import WindowShape, depth_of_tiles

MOST_INTERLEAVED = 64  # pixels
MOST_PIXELS = 512  # of a task, where pixels are one long line


@dataclass(frozen=True)
class BandSizes:
    """What a task does, and what everything should cost in cycles of one core."""

    unit: Unit
    all_filters: int  # in whole tiles
    channels: int
    k: int  # channels of one tile
    task_filters: int
    filters: int  # of one call of the intrinsic
    lines: int
    pixels: int  # of a line
    threads: int
    tasks: int
    cycles: float

    @property
    def register_tile(self) -> int:
        return self.filters

    def shape(self, band: Band) -> WindowShape:
        """The convolution of one call of the intrinsic."""
        if band.is_flat:
            return WindowShape(self.filters, (self.pixels,), (1,), self.channels, (1,), (1,))
        strides, dilations, locations = band.strides, band.dilations, band.places
        return WindowShape(self.filters, (self.lines, self.pixels), locations, self.channels, strides, dilations)


def choose_band(band: Band, unit: Unit, machine: Machine) -> BandSizes | None:
    """The sizes that cost least; None where rows of the image cannot be interleaved."""
    alone = _least(band, unit, machine, 1)
    # Copies and sums take a good part of the time, so the products alone do not say how many threads pay.
    threads = 1 if alone is None else machine.threads_for(alone.cycles)
    return alone if threads == 1 else _least(band, unit, machine, threads)


def _least(band: Band, unit: Unit, machine: Machine, threads: int) -> BandSizes | None:
    k = depth_of_tiles(band.channel.extent or 1, unit.kind)
    channels = rounded_up(band.channel.extent or 1, k)
    filters = rounded_up(band.filter.extent or 1, TILE)
    result = [
        _costed(band, unit, machine, threads, (filters, channels, k), task, some, lines, pixels)
        for task in _parts_of(filters, TILE, 4 * threads)
        for some in (_parts_of(task, TILE if task % PAIR else PAIR, 64) if band.is_flat else [task])
        for lines in divisors(band.lines)
        for pixels in _pixels(band)
        if interleaved_at_once(pixels + band.reach()) > 1
    ]
    return cheapest(result) if result else None


def interleaved_at_once(pixels: int) -> int:
    """The largest part of a row that goes through registers at once."""
    return max(part for part in divisors(pixels) if part <= MOST_INTERLEAVED)


def _parts_of(size: int, unit: int, most: int) -> list[int]:
    """The sizes of equal parts, in whole units."""
    return [part * unit for part in divisors(size // unit) if size // (part * unit) <= most]


def _pixels(band: Band) -> Iterator[int]:
    """Parts of a line: those whose windows lie in one cache line of the band, and the whole of it."""
    if band.is_flat:
        yield from [part for part in divisors(band.line) if part % TILE == 0 and part <= MOST_PIXELS]
        if band.line <= MOST_PIXELS or not any(part % TILE == 0 for part in divisors(band.line)):
            yield band.line
        return
    near = [part for part in divisors(band.line) if part + band.reach() <= TILE]
    yield from dict.fromkeys([*near[-1:], band.line])


def _costed(
    band: Band,
    unit: Unit,
    machine: Machine,
    threads: int,
    padded: tuple[int, int, int],
    task: int,
    filters: int,
    lines: int,
    pixels: int,
) -> BandSizes:
    all_filters, channels, k = padded
    width = bytes_of(unit.a)
    moves = machine.moves
    steps = prod(band.places) * channels // k
    tall, wide = filters // TILE, lines * ceil(pixels / TILE)
    crosses = not band.is_flat and pixels + band.reach() > TILE
    weights = PAIR * band.k * width
    from_far = 2.0 if weights > machine.l1 // 2 else 1.0
    loads = from_far * tall * ceil(wide / 2) + (AMX_WINDOW.astray if crosses else 1.0) * wide * ceil(tall / 2)
    call = machine.cpu.microarchitecture.tile_setup_cycles + steps * AMX_WINDOW.cycles(machine, tall * wide, loads)
    line, parted = (pixels, 1) if band.is_flat else (band.line, band.strides[-1])
    parts = line // pixels
    calls = task // filters * parts
    read = band.lines_read(lines) * channels * width * parted
    rows = read * line * moves.byte_packed  # with what feeds the product
    panel = read * (pixels + band.reach()) * parts * moves.byte_interleaved
    sums = filters * lines * line
    room = sums * 4
    after = sums / TILE * _waiting(room, machine) * (task // filters)
    once = call * calls + rows + panel + after
    tasks = band.batch * (all_filters // task) * (band.lines // lines) * (band.line // line)
    if all_filters * band.k * width > machine.l2 * 3 // 4:
        once += task * band.k * width * moves.byte_from_l3
    whole = on_threads(machine, once, tasks, threads)
    return BandSizes(unit, all_filters, channels, k, task, filters, lines, pixels, threads, tasks, whole)


def _waiting(room: int, machine: Machine) -> float:
    """What a vector of sums costs that waits for the epilogue, with `room` bytes of others."""
    moves = machine.moves
    if room <= machine.l1 // 2:
        return moves.tile_accumulator
    return moves.tile_accumulator_l2 if room <= machine.l2 // 2 else moves.tile_accumulator_far
