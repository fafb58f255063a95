"""Tiles: how many results of a window are computed together, and for how many rows padded data is copied at a time.

Results that are computed together share the data between them: `rows` results of a window three high need `rows + 2`
rows of data, where one by one they would load 3 each. More than keep the units busy are not needed, and registers must
hold them: one for each vector of results, and along the movement one for each weight, which stays there while the
window moves. Of a large window, only the inner taps are written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from loopwright.autosched.choices import pick
from loopwright.autosched.cost import LOOP, TILE, UNALIGNED
from loopwright.autosched.lanes import vectors_under_way
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import common_lanes, instructions
from loopwright.autosched.rules.sliding_window.window import Window

SHUFFLES = 0.75  # of those that pick lanes a few cells apart: the others are part of loads
SPARE_REGISTERS = 4  # for data on its way
MOST_PLACES = 4  # vectors of a tile across
MOST_UPDATES = 180  # of a tile, which is written out
MOST_IN_PLACE = 80  # where padding is asked for in place: it is written out for each border then; 40 of three axes


@dataclass(frozen=True)
class Tiles:
    """The sizes that were chosen, and what all tiles should cost in cycles of one core."""

    lanes: int
    rows: int  # results down, in registers
    places: int  # results across, each a vector, in registers
    band: int  # tiles down for which data is copied together, with its padding
    copied: int  # bytes of such a copy
    copies_once: bool  # all the data that the repeated axes read, before they run; else a copy in each of their turns
    written_out: int  # of the reduction's axes, the last ones: the taps of all others are a loop
    cycles: float


def choose_tiles(window: Window, machine: Machine, copies: bool) -> Tiles:
    """The tiles that cost least; `copies` says that the data is copied on the way, with its padding."""
    lanes = _lanes(window, machine)
    costs = {tile: _cost(window, machine, lanes, tile) for tile in _candidates(window, machine, lanes)}
    tile = pick("tiles", list(costs), costs.__getitem__, lambda tile: (costs[tile], tile.rows * tile.places))
    turns = prod(axis.extent or 1 for axis in (*window.outer, *[movement.axis for movement in window.deep]))
    cycles = costs[tile] * turns
    if not copies:
        return Tiles(lanes, tile.rows, tile.places, 1, 0, False, tile.written_out, cycles)
    once = _copied_once(window, machine, lanes * tile.places)
    if once is not None:
        different = prod(axis.extent or 1 for axis in window.outer if axis not in window.repeated)
        cycles += different * once / (machine.cpu.vector_bits / 8)
        return Tiles(lanes, tile.rows, tile.places, -(-window.rows // tile.rows), once, True, tile.written_out, cycles)
    band, copied = _band(window, machine, lanes, tile)
    cycles += turns * _copying(window, machine, tile.rows * band, copied)
    return Tiles(lanes, tile.rows, tile.places, band, copied, False, tile.written_out, cycles)


class _Tile(NamedTuple):
    rows: int
    places: int
    written_out: int


def _lanes(window: Window, machine: Machine) -> int:
    """Lanes of the widest type that takes part; for a short row no more than it needs."""
    lanes = common_lanes(window.facts, machine)
    while lanes > 1 and lanes // 2 >= window.lane_extent:
        lanes //= 2
    return lanes


def _candidates(window: Window, machine: Machine, lanes: int) -> Iterator[_Tile]:
    """Tiles that registers hold, and that are not too long when they are written out."""
    axes = len(window.facts.reduce)
    most = MOST_UPDATES if window.is_along else MOST_IN_PLACE // max(1, len(window.movements) - 1)
    for written_out in range(axes + 1):
        taps = prod(axis.extent or 1 for axis in window.facts.reduce[axes - written_out :])
        kept = 0 if not window.weights else min(taps, machine.registers // 2) if window.is_along else 1
        room = min(vectors_under_way(machine), max(2, machine.registers - SPARE_REGISTERS - kept))
        if _picked(window) > 1:  # the vectors that lanes are picked from stay for the taps of a row
            room = max(1, min(room, (machine.registers - SPARE_REGISTERS) // (1 + _picked(window))))
        room = min(room, most // taps)
        if window.is_along and not _shares_rows(window):
            # Nothing ties the sums of a tile to each other then: where registers do not hold all weights, LLVM orders
            # the updates sum by sum, each waiting for the one before it.
            room = min(room, machine.registers - taps)
        for rows in range(1, min(room, window.rows) + 1):
            for locations in range(1, min(MOST_PLACES, room // rows, -(-window.lane_extent // lanes)) + 1):
                yield _Tile(rows, locations, written_out)


def _shares_rows(window: Window) -> bool:
    """Whether adjacent windows read some row of data both: those of a dilated window do not, unless they are as far."""
    return window.down is None or window.down.cells(2) < 2 * (window.down.tap.extent or 1)


def _picked(window: Window) -> int:
    """How many vectors the lanes of one are picked from: as many as places lie between them; 1 for neighbours."""
    return window.movements[-1].stride if window.is_along else 1


def _cost(window: Window, machine: Machine, lanes: int, tile: _Tile) -> float:
    """Cycles for all tiles down and across, data in L1."""
    rows, locations, written_out = tile
    down, results = window.down, rows * locations
    reduce = window.facts.reduce
    turns = prod(axis.extent or 1 for axis in reduce[: len(reduce) - written_out])  # of what is written out
    taps = window.taps // turns
    is_shared = down is not None and down.tap in reduce[len(reduce) - written_out :]
    if is_shared and down is not None:
        loads = float(down.cells(rows) * (taps // (down.tap.extent or 1)) * locations)
    else:
        loads = float(results * taps)
    picking = 0.0
    if _picked(window) > 1:
        picking = loads * (_picked(window) - 1) * SHUFFLES * machine.cpu.microarchitecture.shuffle_cycles
        loads *= _picked(window) / (window.movements[-1].tap.extent or 1)  # the taps of a row share them
    elif window.is_along:
        loads *= UNALIGNED
    else:
        loads += taps * locations  # weights
    busy, latency = _update(window, machine)
    work = max(results * taps * busy, loads / machine.loads_per_cycle, picking)
    waiting = taps * latency  # for each other: updates of one sum
    cycles = turns * (max(work, waiting) + (LOOP if turns > 1 else 0)) + TILE + results
    # The last tile may be smaller; its code is one more to run through, and its vectors are as many.
    return -(-window.rows // rows) * -(-window.lane_extent // (lanes * locations)) * cycles


def _update(window: Window, machine: Machine) -> tuple[float, float]:
    """Cycles that one update of a vector keeps the units busy, and that the next one of the same vector waits."""
    needed = 1 if window.weights else instructions(window.facts, False, machine.cpu.units.has_whole_max)
    if needed == 1:
        return 1 / machine.fma_per_cycle, machine.fma_latency / 2  # half hidden by what comes next
    # An extreme that keeps NaN: they depend on each other, and are so many that what comes next is far away.
    return needed / machine.vector_per_cycle, 2.5 * machine.fma_latency


def _band(window: Window, machine: Machine, lanes: int, tile: _Tile) -> tuple[int, int]:
    """How many tiles down share one copy of padded rows, as many as half of L1 holds; and its bytes."""
    width = lanes * tile.places
    row = window.movements[-1].reach(-(-window.lane_extent // width) * width)
    row *= prod(movement.tap.extent or 1 for movement in window.deep) * bytes_of(str(window.data.buffer.dtype))
    down = window.down
    if down is None:
        return 1, row
    most = -(-window.rows // tile.rows)
    bands = 1
    while bands < most and down.reach(-(-most // bands) * tile.rows) * row > machine.l1 // 2:
        bands += 1
    band = -(-most // bands)
    return band, down.reach(min(window.rows, band * tile.rows)) * row


def _copied_once(window: Window, machine: Machine, width: int) -> int | None:
    """Bytes of all the data that the repeated axes read, if it stays in L2 while they run."""
    if not window.repeated or any(movement.axis.extent is None for movement in window.movements):
        return None
    copied = bytes_of(str(window.data.buffer.dtype))
    copied *= window.movements[-1].reach(-(-window.lane_extent // width) * width)
    for movement in window.movements[:-1]:
        copied *= movement.reach(movement.axis.extent or 1)
    return copied if copied <= machine.l2 // 2 else None


def _copying(window: Window, machine: Machine, height: int, copied: int) -> float:
    """Cycles to copy all the data with its padding: what comes in and goes out, one vector a cycle."""
    return -(-window.rows // height) * copied / (machine.cpu.vector_bits / 8)
