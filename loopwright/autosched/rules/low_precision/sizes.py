"""Sizes: how a product is cut up for a unit, chosen by counting cycles.

    parallel for jc, ic:                      a task: `columns` of B's panels, `rows` of A
        pack B's panels of the task           or before all tasks, where several of them read the same ones
        for pc:                               slabs of the reduction, one unless a panel is longer than a cache
            for ir, jr:                       blocks of `mr` × `nr`, each an intrinsic that keeps its sums in registers

With tiles (AMX) a block is a whole task: the intrinsic goes through its tiles itself, and configures them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from loopwright.autosched.cost import OVERHEAD, on_threads, tile_step
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.rules.low_precision.units import AMX_DOT, Unit
from loopwright.autosched.tile_search import ONE_AHEAD, cheapest, register_tiles
from loopwright.transform.tensor_intrinsics.x86_amx import ROWS

FAR = 1.1  # times a block whose A does not wait in L2 for the next panel
LONGEST_SLAB = 1 << 15  # bytes of the reduction
MOST_ROWS = 16  # of a block in vector registers


class Size(NamedTuple):
    """`batch` GEMMs of `m` × `k` by `k` × `n`."""

    m: int
    n: int
    k: int
    batch: int
    a_must_move: bool  # A is copied whatever its size: it lies the other way, or has another type
    b_lies_along: bool  # B's columns are neighbours in memory
    a_is_aligned: bool  # it is made by this program: its rows begin with a cache line
    a_is_early: bool  # it is a constant: its copies are made by the compiler
    is_prepacked: bool  # so are B's panels
    has_epilogue: bool

    def moving_a(self) -> Size:
        """The same, where A becomes another type."""
        return self._replace(a_must_move=True)


@dataclass(frozen=True)
class Sizes:
    """The sizes that were chosen, and what they should cost in cycles of one core."""

    unit: Unit
    mr: int
    nr: int
    slab: int
    task_rows: int  # of whole blocks
    task_columns: int
    panel: int  # columns of B that are packed together
    threads: int
    copies_a: bool
    cycles: float
    tasks: int

    @property
    def register_tile(self) -> int:
        return self.mr * self.nr

    def padded(self, rows: int, columns: int, k: int) -> tuple[int, int, int]:
        """The sizes rounded up to whole tasks and slabs."""
        step = self.slab if self.slab < k else self.unit.k
        return rounded_up(rows, self.task_rows), rounded_up(columns, self.task_columns), rounded_up(k, step)


def choose_sizes(size: Size, unit: Unit, machine: Machine) -> Sizes:
    """The sizes that cost least with a unit."""
    work = size.m * size.n * size.k * size.batch / unit.products_per_cycle(machine)
    threads = machine.threads_for(work)
    candidates = _tile_blocks(size, unit, machine, threads) if unit.is_tile else _vector_blocks(size, unit, machine)
    result = [
        _costed(size, unit, machine, threads, mr, nr, down, across)
        for mr, nr in candidates
        for down, across in dict.fromkeys(_tasks(size, unit, machine, threads, mr, nr))
    ]
    return cheapest(result)


def _vector_blocks(size: Size, unit: Unit, machine: Machine) -> Iterator[tuple[int, int]]:
    """Blocks that registers hold."""
    most_rows, most_vectors = min(size.m, MOST_ROWS), min(4, ceil(size.n / unit.lanes))
    for mr, vectors in register_tiles(machine, most_rows, most_vectors, ONE_AHEAD + unit.adds_after):
        yield mr, vectors * unit.lanes


def _tile_blocks(size: Size, unit: Unit, machine: Machine, threads: int) -> Iterator[tuple[int, int]]:
    """Whole tasks, cut into equal parts: any number of rows will do, columns are whole tiles."""
    wide = rounded_up(size.n, unit.lanes)
    for parts_down in dict.fromkeys((1, 2, 4, 8, threads, 2 * threads, 4 * threads, ceil(size.m / 256))):
        for parts_across in dict.fromkeys((1, 2, 4, 8, threads, 2 * threads, ceil(size.n / 512))):
            mr, nr = ceil(size.m / parts_down), rounded_up(ceil(wide / parts_across), unit.lanes)
            if (mr >= 16 or parts_down == 1) and (nr >= 32 or parts_across == 1):
                yield mr, nr


def _tasks(size: Size, unit: Unit, machine: Machine, threads: int, mr: int, nr: int) -> Iterator[tuple[int, int]]:
    """Blocks down and across that one task may have."""
    if unit.is_tile:
        yield 1, 1
        return
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    fitting = max(1, machine.l2 // 2 // (nr * size.k * bytes_of(unit.b)))  # panels in half of L2
    if threads == 1:
        yield tall, ceil(wide / ceil(wide / min(wide, fitting)))
        return
    for turns in (1, 2, 4):
        for across in range(1, min(wide, turns * threads) + 1):
            parts = ceil(turns * threads / (across * size.batch))
            if parts <= tall:
                yield ceil(tall / parts), ceil(wide / across)  # the last task is padded to the size of the others


def _costed(size: Size, unit: Unit, machine: Machine, threads: int, mr: int, nr: int, down: int, across: int) -> Sizes:
    width = bytes_of(unit.b)
    slabs = ceil(size.k * width / LONGEST_SLAB)
    slab = rounded_up(ceil(size.k / slabs), unit.k)
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    k = rounded_up(size.k, unit.k)
    copies_a = size.a_must_move or size.m % (down * mr) != 0 or size.k % slab != 0
    copied = 0 if size.a_is_early else size.m * size.k * bytes_of(unit.a)
    copying = copied * machine.moves.byte_copied * size.batch / threads
    if unit.is_tile:
        block = _tile_cycles(unit, machine, mr, nr, k, 1.0)
        astray = _tile_cycles(unit, machine, mr, nr, k, 1.0 if size.a_is_aligned else AMX_DOT.astray)
        copies_a = copies_a or (astray - block) * tall * wide * size.batch / threads > copying
        block = block if copies_a else astray
        if mr * k * bytes_of(unit.a) > machine.l2 // 2:
            block *= FAR
    else:
        block = _vector_cycles(unit, machine, mr, nr, k)
    sums = mr * nr * bytes_of(unit.c) / machine.l1_bytes_per_cycle * 2
    is_direct = not size.has_epilogue and size.m % (down * mr) == 0 and size.n % (across * nr) == 0
    if unit.is_tile and not is_direct:
        # The sums wait in memory for what comes after.
        sums *= 1 if mr * nr * bytes_of(unit.c) <= machine.l2 // 2 else 4
        block += sums * machine.moves.accumulator
    elif not unit.is_tile:
        block += mr * nr // unit.lanes * machine.moves.accumulator
    block += slabs * OVERHEAD
    task = down * across * block
    rows_shared = down < tall
    packing = 0.0
    if not size.is_prepacked:
        each = machine.moves.byte_packed if size.b_lies_along else machine.moves.byte_packed_across
        packing = size.k * width * size.n * each * size.batch / threads
        if rows_shared:
            packing *= 1.3  # it goes out to memory, and comes back
    parts = ceil(tall / down), ceil(wide / across)
    if copies_a:
        packing += copying
    tasks = parts[0] * parts[1] * size.batch
    whole = on_threads(machine, task, tasks, threads) + packing
    panel = unit.lanes if unit.is_tile else nr
    return Sizes(unit, mr, nr, slab, down * mr, across * nr, panel, threads, copies_a, whole, tasks)


def _tile_cycles(unit: Unit, machine: Machine, mr: int, nr: int, k: int, rows_cost: float) -> float:
    """Pairs of tiles each way: so many products and loads a step; `rows_cost` is what a tile of A costs more."""
    tall, wide = ceil(mr / ROWS), nr // unit.lanes
    loads = rows_cost * tall * ceil(wide / 2) + wide * ceil(tall / 2)
    return k / unit.k * AMX_DOT.cycles(machine, tall * wide, loads)


def _vector_cycles(unit: Unit, machine: Machine, mr: int, nr: int, k: int) -> float:
    return k / unit.group * tile_step(machine, mr, nr // unit.lanes, 2 if unit.adds_after else 1)
