"""More tiles: those of a packed GEMM that the cost model would not take, for searches to try.

    tiles in registers that keep the units half busy; tasks of fewer rows or panels; shorter slabs;
    more or fewer steps written out; a panel that stays while all strips pass by, and the other way round

The model prices the sizes as it prices its own. What it does not know, how many steps are written out and which loop
goes around, costs a little more than the rule's own way: a search tries that first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil

from loopwright.autosched.machine import Machine
from loopwright.autosched.rules.contraction.tiles import (
    Size,
    Tiles,
    costed,
    packings,
    tasks_of,
    tiles_in_registers,
    work_of,
)

BUSY_ENOUGH = 0.6  # of what the best register tile does in a cycle
SLABS = (1, 2, 4)  # times as many as panels in L2 need
PARTS = (1, 2, 4)  # of the rows, and of the columns
MOST = 512  # candidates: those that should cost least
UNSURE = 1.03  # times the cycles of the rule's own way
MOST_STEPS = 16  # written out
MOST_ELEMENTS = 512  # multiply-adds written out: more do not fit where instructions are decoded once


@lru_cache(maxsize=64)  # the candidates of a search have them all priced, one after the other
def more_tiles(size: Size, machine: Machine) -> Sequence[Tiles]:
    """The tiles, with what their sizes should cost; some are among the rule's own."""
    if not (size.knows_m and size.knows_n and size.knows_k):
        return ()
    return tuple(sorted(_all(size, machine), key=lambda tiles: tiles.cycles)[:MOST])


def _all(size: Size, machine: Machine) -> Iterator[Tiles]:
    threads = machine.threads_for(work_of(size, machine))
    for mr, vectors in tiles_in_registers(size, machine, BUSY_ENOUGH):
        for packs in packings(size, vectors * machine.lanes(size.dtype)):
            for down, across in dict.fromkeys(_tasks(size, machine, threads, mr, vectors)):
                for slabs in SLABS:
                    tiles = costed(size, machine, threads, mr, vectors, packs, down, across, more_slabs=slabs)
                    if slabs == 1 or tiles.slab < size.k:
                        yield from _written_out(tiles)


def _tasks(size: Size, machine: Machine, threads: int, mr: int, vectors: int) -> Iterator[tuple[int, int]]:
    yield from tasks_of(size, machine, threads, mr, vectors)
    if threads > 1 or size.packs_rows:
        return
    tall, wide = ceil(size.m / mr), ceil(size.n / (vectors * machine.lanes(size.dtype)))
    for parts in PARTS:
        for columns in PARTS:
            if parts <= tall and columns <= wide:
                yield ceil(tall / parts), ceil(wide / columns)


def _written_out(tiles: Tiles) -> Iterator[Tiles]:
    steps = {tiles.unroll, *[count for count in (1, 2, 4, 8, MOST_STEPS) if tiles.slab % count == 0]}
    for unroll in sorted(steps):
        if unroll in (1, tiles.unroll) or unroll * tiles.register_tile <= MOST_ELEMENTS:
            for panels_first in (False, True):
                is_own = (unroll, panels_first) == (tiles.unroll, tiles.panels_first)
                cycles = tiles.cycles * (1.0 if is_own else UNSURE)
                yield replace(tiles, unroll=unroll, panels_first=panels_first, cycles=cycles)
