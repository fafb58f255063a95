"""Streamed: few rows of A times a matrix that is read as it lies, a few of its rows at a time.

    for pc:                                   slabs of some rows of B
        for ir:                               strips of `mr` rows of A
            for jr:                           tiles: `mr` × `nr` sums, loaded and stored again
                for p:                        along these rows of B: each is a stream that prefetchers follow
                    mr × nr multiply-adds

Packing B would read and write all of it to save what a few strips wait for it. A panel of all its rows, read in place,
is a line here and a line there, each on another page. A slab of few rows is neither: the tiles of a strip run along
memory in B and in C. Columns need not fill whole tiles, since nothing is padded: the last tile is narrower.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from loopwright.autosched.cost import EDGE, TILE, at_once, on_threads, tile_step, turns_of
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.contraction.tiles import Size, Tiles, tiles_in_registers, work_of

MOST_STEPS: Final = 8  # of a slab
LEAST_STEPS: Final = 4
ONE_STREAM: Final = 32  # steps of a slab where all of B is one panel
SUM: Final = 2.0  # cycles to load a vector of sums and store it again
FIRST_SUM: Final = 1.0  # to store the zero that it starts from
MOST_STREAMED: Final = 64  # rows: packing pays long before


def streamed_tiles(size: Size, machine: Machine) -> list[Tiles]:
    """The ways to do so; none where B does not lie along its rows, or there are too many rows, or too few steps."""
    is_known = size.knows_n and size.knows_k
    if not is_known or not size.row_stride or size.is_prepacked or size.m > MOST_STREAMED or size.k <= MOST_STEPS:
        return []
    threads = machine.threads_for(work_of(size, machine))
    lanes = machine.lanes(size.dtype)
    return [
        _costed(size, machine, threads, mr, vectors)
        for mr, vectors in tiles_in_registers(size, machine)
        # A guard that no loop can be parted by, in a task or among unknown rows, would send the sums to memory.
        if (threads == 1 and size.knows_m) or size.n % (vectors * lanes) == 0
    ]


def _costed(size: Size, machine: Machine, threads: int, mr: int, vectors: int) -> Tiles:
    lanes, width = machine.lanes(size.dtype), bytes_of(size.dtype)
    nr = vectors * lanes
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    # Rows of B and of C are streams.
    slab = min(MOST_STEPS, max(LEAST_STEPS, (machine.streams - mr) // 2 * 2))
    if wide == 1 and size.row_stride == size.n:
        slab = min(size.k, ONE_STREAM)  # rows of B lie one after the other: they are one stream
    # The sums of all rows stay in half of L1 from slab to slab, and so do the rows of B from strip to strip.
    row = nr * width * (size.m + slab)
    across = max(1, min(wide, machine.l1 // 2 // row))
    across = ceil(wide / ceil(wide / across))
    tasks = ceil(wide / across) * size.batch
    if threads > 1 and tasks < threads:
        across = max(1, ceil(wide / ceil(threads / size.batch)))
        tasks = ceil(wide / across) * size.batch
    slabs = ceil(size.k / slab)
    step = tile_step(machine, mr, vectors)
    sums = size.k * step + slabs * (TILE + mr * vectors * SUM) + mr * vectors * FIRST_SUM
    brought = size.k * nr * width / machine.bytes_per_cycle(size.k * size.n * width * size.batch)
    task = across * (at_once(tall * sums, brought))
    if threads == 1:
        panels = ceil(size.n / lanes) / vectors  # the last one may have fewer vectors
        whole = task * (panels / across) * size.batch * (EDGE if size.n % nr else 1.0)
    else:
        whole = on_threads(machine, task, tasks, threads)
    whole *= EDGE if size.m % mr else 1.0
    unroll = slab if slab <= LEAST_STEPS else 2 if slab <= MOST_STEPS else LEAST_STEPS
    turns = turns_of(tasks, threads)
    return Tiles(mr, vectors, lanes, slab, tall, across, unroll, False, threads, turns, whole, reads_rows=True)
