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

from loopwright.autosched.cost import EDGE, OVERHEAD, TILE, at_once, on_threads, tile_step, turns_of
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.rules.contraction.tiles import (
    TURN,
    TURNS,
    Size,
    Tiles,
    rows_that_stay,
    tiles_in_registers,
    work_of,
)

ONE_STREAM: Final = 32  # steps of a slab where all of B is one panel
FAR_STEPS: Final = 16  # of a slab whose rows lie on pages of their own, beyond L2
LEAST_STEPS: Final = 4
SHORT_ROWS: Final = 4  # on a page: they are one stream
FEW_STEPS: Final = 8  # of which the next ones arrive while one is used
RUN: Final = 4  # lines of a row that a tile reads before it jumps to the next: of fewer, prefetchers see little
SHORT_RUN: Final = 5.0  # cycles for each jump to a row of which next to nothing is read
LATE_ROWS: Final = 0.2  # of the shorter of two things that go on at once: more rows than the few that arrive early
SUM: Final = 2.0  # cycles to load a vector of sums and store it again
FIRST_SUM: Final = 1.0  # to store the zero that it starts from
MOST_STREAMED: Final = 64  # rows: packing pays long before


def streamed_tiles(size: Size, machine: Machine) -> list[Tiles]:
    """The ways to do so; none where B does not lie along its rows, or there are too many rows, or too few steps."""
    is_known = size.knows_n and size.knows_k
    whole_turns = size._replace(k=rounded_up(size.k, TURN)) if _has_long_slabs(machine) else size
    if not is_known or not size.row_stride or size.is_prepacked or size.m > MOST_STREAMED or size.k <= FEW_STEPS:
        return []
    threads = machine.threads_for(work_of(size, machine))
    lanes = machine.lanes(size.dtype)
    return [
        _costed(size, machine, threads, mr, vectors)
        for mr, vectors in tiles_in_registers(whole_turns, machine)
        # A guard that no loop can be parted by, in a task or among unknown rows, would send the sums to memory.
        if (threads == 1 and size.knows_m) or size.n % (vectors * lanes) == 0
    ]


def _costed(size: Size, machine: Machine, threads: int, mr: int, vectors: int) -> Tiles:
    lanes, width = machine.lanes(size.dtype), bytes_of(size.dtype)
    nr = vectors * lanes
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    slab = _steps(size, machine, mr, wide == 1)
    across = _panels(size, machine, nr, slab)
    across = min(wide, across)
    across = ceil(wide / ceil(wide / across))
    tasks = ceil(wide / across) * size.batch
    if threads > 1 and tasks < threads:
        across = max(1, ceil(wide / ceil(threads / size.batch)))
        tasks = ceil(wide / across) * size.batch
    slabs = ceil(size.k / slab)
    step = tile_step(machine, mr, vectors)
    sums = size.k * step + mr * vectors * FIRST_SUM
    has_long_slabs = _has_long_slabs(machine)
    sums += OVERHEAD if slabs == 1 and has_long_slabs else slabs * (TILE + mr * vectors * SUM)
    brought = size.k * nr * width / machine.bytes_per_cycle(size.k * size.n * width * size.batch)
    if has_long_slabs and _is_far(size, machine):
        brought += size.k * SHORT_RUN * max(0.0, 1 - nr * width / (RUN * machine.line))
    task = across * at_once(tall * sums, brought)
    if has_long_slabs and slab > FEW_STEPS:  # each row of B is late for its first step
        task += across * LATE_ROWS * min(tall * sums, brought)
    if threads == 1:
        panels = ceil(size.n / lanes) / vectors  # the last one may have fewer vectors
        whole = task * (panels / across) * size.batch * (EDGE if size.n % nr else 1.0)
    else:
        whole = on_threads(machine, task, tasks, threads)
    whole *= EDGE if size.m % mr else 1.0
    unroll = slab if slab <= TURN else _unroll(slab, machine)
    turns = turns_of(tasks, threads)
    return Tiles(mr, vectors, lanes, slab, tall, across, unroll, False, threads, turns, whole, reads_rows=True)


def _panels(size: Size, machine: Machine, nr: int, slab: int) -> int:
    """Panels of a task: half of L1 keeps the sums of all rows from slab to slab, and rows of B from strip to strip."""
    width = bytes_of(size.dtype)
    row = nr * width * (slab + (size.m if slab < size.k else 0))
    across = max(1, machine.l1 // 2 // row)
    if _has_long_slabs(machine) and _is_large(size, machine):  # rows are read far enough to be followed
        followed = ceil(machine.page // 2 / (nr * width))
        across = max(across, min(followed, machine.l1 * 3 // 4 // (nr * width * size.m)))
    return across


def _unroll(slab: int, machine: Machine) -> int:
    """Steps of a slab that are written out in one turn."""
    if not _has_long_slabs(machine):
        return 2 if slab <= FEW_STEPS else TURN
    return next((count for count in TURNS if slab % count == 0), TURN)


def _has_long_slabs(machine: Machine) -> bool:
    """Whether the sums of more than a few steps stay in registers; the prices of that are not known elsewhere."""
    return machine.slab_rows > FEW_STEPS


def _steps(size: Size, machine: Machine, mr: int, is_one_panel: bool) -> int:
    """Rows of B in a slab: as many as prefetchers follow beside the rows of C."""
    if is_one_panel and size.row_stride == size.n:
        return min(size.k, ONE_STREAM)  # rows of B lie one after the other: they are one stream
    followed = max(LEAST_STEPS, machine.streams - mr)
    if not _has_long_slabs(machine):
        return min(machine.slab_rows, followed) // 2 * 2
    stride = size.row_stride * bytes_of(size.dtype)
    of_a_page = machine.page // stride
    most = min(followed * (of_a_page if of_a_page >= SHORT_ROWS else 1), machine.slab_rows)
    most = min(most, FAR_STEPS) if _is_far(size, machine) else most
    if size.k <= most:
        return size.k
    most = min(most, max(FEW_STEPS, rows_that_stay(stride, machine)))
    if most <= FEW_STEPS:
        return most // 2 * 2
    # Equal slabs, of whole turns: a shorter last one has a kernel of its own.
    slabs = ceil(size.k / (most // TURN * TURN))
    return rounded_up(ceil(size.k / slabs), TURN)


def _is_far(size: Size, machine: Machine) -> bool:
    """Whether each row of B is a stream of its own from beyond L2."""
    return _is_large(size, machine) and size.row_stride * bytes_of(size.dtype) >= machine.page // 2


def _is_large(size: Size, machine: Machine) -> bool:
    return size.k * size.n * bytes_of(size.dtype) * size.batch > machine.l2 // 2
