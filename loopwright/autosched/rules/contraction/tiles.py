"""Tiles: the sizes of a packed GEMM, chosen by counting cycles.

    parallel for jc, ic:                      a task: `task_columns` panels of B, `task_rows` tiles of A
        for pc:                               slabs of the reduction, one if B's panels stay in L2
            pack the slab of B                `slab` × panels, `nr` columns next to each other; zeros at the edge
            for ir:                           strips of `mr` rows; A's is packed if it does not run along the reduction
                for jr:                       tiles: `mr` × `nr` sums in registers
                    for p:                    `unroll` steps a turn
                        mr × nr multiply-adds

A candidate is a choice of all sizes; its cost is what the slowest core computes, loads and packs. The smallest wins.
Where the number of rows is known only when the program runs, it is taken to be large; a product of few rows has tiles
of its own, where copying B would cost more than all the rest (`few_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd
from typing import NamedTuple

from loopwright.autosched.cost import EDGE, OVERHEAD, UNHIDDEN, on_threads, tile_step, turns_of
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.rules.contraction.turned_panels import turned_tile
from loopwright.autosched.tile_search import TWO_AHEAD, cheapest, register_tiles

HEIGHTS = (1, 8, 64)  # numbers of rows that a product of unknown height should be good at, beside many
NEARLY = 1.06  # what that may cost where there are many
MOST_CASES = 8  # rows of a tile of which the last may have any number: each is a kernel, which takes compiling
PACKED_STRIPS = 8  # of A, copied together: whole lines of it are read at a time
BUSY = 0.8  # of what the best register tile does in a cycle
TURN = 4  # steps of the reduction that are written out in one turn of its loop
TURNS = (TURN, 2, 3, 5)  # the numbers of steps that leave none over, the best first
FOUR_BYTES = 4  # of an element whose copies `moves` counts
NOW_AND_THEN = 16  # steps, of which one finds its line of A gone
NEAR_PAGES = 32  # whose addresses are known, whatever else a kernel reads
ALL_ROWS = 1 << 30  # tiles of rows in a task that has all of them, however many


@dataclass(frozen=True)
class Tiles:
    """The sizes that were chosen, and what they should cost in cycles of one core."""

    mr: int
    vectors: int
    lanes: int
    slab: int
    task_rows: int  # tiles of rows in a task
    task_columns: int  # panels of columns in a task
    unroll: int
    packs: bool
    threads: int
    turns: int  # tasks that a thread gets
    cycles: float
    panels_first: bool = False  # a panel of B, read in place, stays in L1 while all strips of A pass by
    reads_rows: bool = False  # A is read in place too, also where it does not run along the reduction
    turned: int = 0  # rows of the tiles in which B is transposed into its panels; 0 where it goes element by element

    @property
    def nr(self) -> int:
        return self.vectors * self.lanes

    @property
    def register_tile(self) -> int:
        return self.mr * self.vectors


class Size(NamedTuple):
    """`batch` matmuls of `m` × `k` by `k` × `n`."""

    m: int
    n: int
    k: int
    batch: int
    dtype: str
    row_stride: int  # elements from one row of B to the next; 0 when its rows do not lie along memory
    packs_rows: bool = False  # A does not run along the reduction: a strip of it is copied so that it does
    is_prepacked: bool = False  # B is a constant: it lies in panels when the call begins
    lies_along: bool = True  # rows of B lie along memory, or are computed as they are packed
    can_turn: bool = False  # else tiles of B could be transposed in registers
    knows_m: bool = True  # else `m` is a guess
    knows_n: bool = True
    knows_k: bool = True


def choose_tiles(size: Size, machine: Machine) -> Tiles:
    """The tiles that cost least."""
    return cheapest(tile_candidates(size, machine))


@lru_cache(maxsize=64)
def tile_candidates(size: Size, machine: Machine) -> Sequence[Tiles]:
    """The tiles that there are, with what they cost."""
    threads = machine.threads_for(work_of(size, machine))
    result = [
        costed(size, machine, threads, mr, vectors, packs, down, across, reads_rows)
        for mr, vectors in tiles_in_registers(size, machine)
        for packs in packings(size, vectors * machine.lanes(size.dtype))
        for down, across in dict.fromkeys(tasks_of(size, machine, threads, mr, vectors))
        for reads_rows in ((False, True) if size.packs_rows and size.knows_m and size.knows_k else (False,))
    ]
    if not size.knows_m and size.is_prepacked:
        result = _good_for_few_rows(size, machine, result)
    return tuple(result)


def work_of(size: Size, machine: Machine) -> float:
    """Cycles of one core, all of it multiply-adds."""
    return size.m * size.n * size.k * size.batch / (machine.fma_per_cycle * machine.lanes(size.dtype))


def _good_for_few_rows(size: Size, machine: Machine, result: Sequence[Tiles]) -> list[Tiles]:
    """Of the tiles that are about the best for many rows, those that are least behind the best for fewer."""
    enough = NEARLY * min(tiles.cycles for tiles in result)
    kinds = dict.fromkeys((tiles.mr, tiles.vectors, tiles.packs) for tiles in result if tiles.cycles <= enough)
    behind = dict.fromkeys(kinds, 1.0)
    for rows in HEIGHTS:
        at = size._replace(m=rows)
        costs = {
            (mr, vectors, packs): min(  # the last tile has the rows that are left
                costed(at, machine, 1, min(mr, rows), vectors, packs, down, across).cycles
                for down, across in tasks_of(at, machine, 1, min(mr, rows), vectors)
            )
            for mr, vectors, packs in kinds
        }
        for kind, cost in costs.items():
            behind[kind] *= cost / min(costs.values())
    best = min(behind, key=lambda kind: (behind[kind], -kind[0] * kind[1]))
    return [tiles for tiles in result if (tiles.mr, tiles.vectors, tiles.packs) == best]


def tiles_in_registers(size: Size, machine: Machine, busy: float = BUSY) -> list[tuple[int, int]]:
    """Tiles that registers hold, those that keep the units of the machine busy: nobody else can be the best."""
    lanes = machine.lanes(size.dtype)
    rates: dict[tuple[int, int], float] = {}
    most_rows, most_vectors = min(size.m, 16 if size.knows_m else MOST_CASES), min(6, ceil(size.n / lanes))
    # Steps that are left over are written out after the loop, and what they need of A is loaded before it.
    is_whole = not size.knows_k or any(size.k % count == 0 for count in TURNS)
    for mr, vectors in register_tiles(machine, most_rows, most_vectors, TWO_AHEAD if is_whole else 2 * TWO_AHEAD):
        whole = rounded_up(size.m, mr) * rounded_up(size.n, vectors * lanes)
        useful = size.m * size.n / whole
        rates[mr, vectors] = useful * mr * vectors / tile_step(machine, mr, vectors)
    enough = busy * max(rates.values())
    return [tile for tile, rate in rates.items() if rate >= enough]


def packings(size: Size, nr: int) -> tuple[bool, ...]:
    """Whether to copy B: at an edge that is no whole panel, or when B lies the other way, there is no other way."""
    must = size.is_prepacked or not size.knows_n or size.n % nr or not size.row_stride
    return (True,) if must else (True, False)


def _skip(size: Size, machine: Machine, nr: int) -> float:
    """What reading B in place costs for each line, since the next row of a panel lies elsewhere.

    From L2 a line takes about as long wherever it lies, as long as its page is known. Beyond, short strides are seen,
    and prefetched up to the end of the page: half a page and more is no stride to the hardware, and a quarter is cut
    off so often that half of the rows come late.
    """
    if size.row_stride == nr:
        return 0.0
    width = bytes_of(size.dtype)
    stride = size.row_stride * width
    moves = machine.moves
    whole = size.k * size.n * width
    if whole <= machine.l2 // 2:
        is_near = whole <= NEAR_PAGES * machine.page and size.k <= rows_that_stay(stride, machine)
        near = moves.line_skipped if is_near else moves.line_of_panel
        return near if stride < machine.page else max(near, moves.line_of_page)
    late = min(1.0, stride / (machine.page // 2))
    return (1 - late) * moves.line_of_panel + late * moves.line_of_page_far


def rows_that_stay(stride: int, machine: Machine) -> int:
    """How many rows so far apart have a line each in L1: of a stride that divides a page, few places are theirs."""
    return machine.l1 * 3 // 4 // max(machine.line, gcd(stride, machine.page))


def _lost_rows(size: Size, machine: Machine, mr: int) -> float:
    """What a step takes longer where rows of A, read in place, put each other out of L1 before a line is used up."""
    if size.packs_rows or not size.knows_k:
        return 0.0
    way = machine.l1 // machine.moves.ways
    places = machine.moves.ways * (way // gcd(size.k * bytes_of(size.dtype), way))
    lost = mr * machine.line / machine.l2_bytes_per_cycle / 2
    # A panel passes by, too: of rows that need half of the places, it puts out a line now and then.
    return lost if mr > places else lost / NOW_AND_THEN if 2 * mr >= places else 0.0


def _read_across(size: Size, machine: Machine, mr: int, slab: int, across: int) -> float:
    """What a strip of A takes longer where it lies across the reduction: a line or two of each of its rows.

    They wait in L1 for the next panel, if all of a slab have a place there.
    """
    width = bytes_of(size.dtype)
    stride = size.m * width
    lines = max(1.0, mr * width / machine.line) if stride > machine.line else stride / machine.line
    far = size.k * stride > machine.l2 // 2
    skipped = machine.moves.line_of_page_far if far and stride >= machine.page // 2 else machine.moves.line_of_panel
    brought = machine.line / machine.bytes_per_cycle(size.k * stride) + (skipped if stride > 2 * machine.line else 0.0)
    stays = slab * lines <= rows_that_stay(stride, machine)
    return size.k * lines * brought * (1 if stays else across)


def tasks_of(size: Size, machine: Machine, threads: int, mr: int, vectors: int) -> Iterator[tuple[int, int]]:
    """Tiles of rows and panels of columns that one task may have."""
    nr = vectors * machine.lanes(size.dtype)
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    panel = nr * size.k * bytes_of(size.dtype)
    fitting = max(1, machine.l2 // 2 // panel)  # panels that stay in half of L2
    if threads == 1:
        # Twice as many stay there when the reduction is done in two slabs, and so on.
        for slabs in (1, 2, 4, 8):
            parts = ceil(wide / min(wide, fitting * slabs))
            # Equal tasks have one kernel; a shorter last one has kernels of its own at each edge, which take compiling.
            yield tall, ceil(wide / next((even for even in range(parts, parts + 3) if wide % even == 0), parts))
        return
    if tall * wide * size.batch < threads:  # a long reduction: there are fewer tiles than threads
        yield 1, 1
    for turns in (1, 2, 3, 4):
        for across in range(1, min(wide, turns * threads) + 1):
            parts = ceil(turns * threads / (across * size.batch))
            if parts <= tall:
                down = ceil(tall / parts)
                # Strips are packed together within a task.
                down = rounded_up(down, PACKED_STRIPS) if size.packs_rows and down > PACKED_STRIPS else down
                yield min(tall, down), ceil(wide / across)


def costed(
    size: Size,
    machine: Machine,
    threads: int,
    mr: int,
    vectors: int,
    packs: bool,
    down: int,
    across: int,
    reads_rows: bool = False,
    more_slabs: int = 1,
) -> Tiles:
    """The tiles with these tasks, and what they cost; `reads_rows` where A lies across, and is read in place.

    `more_slabs` is how many times as many slabs are done as panels in L2 need.
    """
    lanes, width = machine.lanes(size.dtype), bytes_of(size.dtype)
    nr = vectors * lanes
    tall, wide = ceil(size.m / mr), ceil(size.n / nr)
    # Panels of B stay in half of L2 while all rows of the task pass by.
    stays = not packs and not size.packs_rows and size.k * nr * width <= machine.l1 * 3 // 4 and down > 1
    stays = stays and size.k <= rows_that_stay(size.row_stride * width, machine)
    slabs = max(1, ceil(size.k * nr * across * width / (machine.l2 // 2))) if down > 1 and size.knows_k else 1
    slabs = 1 if stays else slabs * more_slabs
    # Whole turns: where the last one of a slab is cut short, its block cannot tell which slab it is in.
    slab = size.k if slabs == 1 else min(size.k, rounded_up(ceil(size.k / slabs), TURN))
    step = tile_step(machine, mr, vectors) + _lost_rows(size, machine, mr)
    moves, stride = machine.moves, size.row_stride * width
    if slab * nr * across * width > machine.l1 // 2 and not stays:
        step += moves.panel_share * nr * width / machine.l2_bytes_per_cycle
    if slab * nr * width > machine.l1 // 2:
        step = max(step, nr * width / machine.l2_bytes_per_cycle)
    if size.k * mr * width >= machine.l1 // 2 and across > 1 and not (stays or size.packs_rows):
        # Panels put the strip of A out of L1.
        step += UNHIDDEN * moves.panel_share * mr * width / machine.l2_bytes_per_cycle
    if not packs:
        lines = max(1.0, nr * width / machine.line)
        total = size.k * size.n * width
        arrival, skipped = nr * width / machine.bytes_per_cycle(total), lines * _skip(size, machine, nr)
        # Lines that jump from page to page in memory arrive no sooner because multiply-adds go on.
        jumps_late = machine.is_late and total > machine.l3 // 2
        first = max(step, arrival) + skipped if jumps_late else max(step + skipped, arrival)
        # One strip brings the panel, the others find it, if not the addresses of all its pages.
        again = max(0.0, moves.line_of_panel - moves.line_skipped) if size.k * stride > NEAR_PAGES * machine.page else 0
        step += lines * again
        step = step + max(0.0, first - step) / down if stays else max(first, step)
    tile = size.k * step + slabs * (OVERHEAD + 2 * mr * vectors * (1 if slabs == 1 else 2))
    task = down * across * tile
    turned = 0
    if packs and not size.is_prepacked:
        # Each task packs equally much, and slabs would take seconds to be proved.
        is_whole = wide % across == 0 and slab == size.k
        turned = turned_tile(slab, size.dtype, lanes) if size.can_turn and is_whole else 0
        far = size.k * size.n * width > machine.l2 // 2
        each = moves.packed_far if far else moves.packed
        if not size.lies_along:
            each += moves.packed_turned if turned else moves.packed_across
        task += size.k * across * nr * each * width / FOUR_BYTES
    if reads_rows:
        task += down * _read_across(size, machine, mr, slab, across)
    elif size.packs_rows:
        task += size.k * down * mr * moves.packed_far * width / FOUR_BYTES
    tasks = ceil(tall / down) * ceil(wide / across) * size.batch
    if threads == 1:
        whole = task * (tall / down) * (wide / across) * size.batch  # the last task may be smaller
    else:
        whole = on_threads(machine, task, tasks, threads)
    if size.m % mr:
        whole *= EDGE
    if threads == 1 and not size.knows_m:
        down = ALL_ROWS
    unroll = next((count for count in TURNS if slab % count == 0), TURN) if slab > 8 and size.knows_k else 1
    turns = turns_of(tasks, threads)
    return Tiles(
        mr, vectors, lanes, slab, down, across, unroll, packs, threads, turns, whole, stays, reads_rows, turned
    )
