"""exchange: the statements of a sorting network whose positions are vectors, a row in each lane.

Few positions are sorted in registers, by Batcher's merge exchange for exactly that many. More are cut into runs of 16
that are sorted so, and the runs are merged, two at a time, by bitonic merging: a position is compared with the one
mirrored in the other run, and then with those at distances that halve. Two of these stages go together: four vectors
are read, compared twice and written back; the last three or four stages run in registers. Loops run over positions, so
that code grows with the logarithm of the row.

Every comparison puts the lesser value at the lower position, so positions behind the last one count as greater than
all: they would stay where they are, and the comparisons with them are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, Ramp, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder

_RUN: Final = 16  # positions that are sorted in registers, and a run of those that are merged
_HALF: Final = _RUN // 2  # the number of positions is a multiple of it
_AT_ONCE: Final = 32  # up to so many positions are sorted in registers: a few are spilled, which costs less than loops
_INDEX: Final = "int32"

Pairs = Sequence[tuple[int, int]]
Positions = Callable[[Expr, Expr], list[Expr]]


def padded(size: int, has_places: bool) -> int:
    """How many positions there have to be for `size`; those behind hold the greatest key.

    An eighth more at most: what is odd at the end of a run costs code for each distance.
    """
    unit = max(_HALF, 1 << max(size.bit_length() - 4, 0))
    return size if size <= _at_once(has_places) else -(-size // unit) * unit


def _at_once(has_places: bool) -> int:
    return _AT_ONCE // 2 if has_places else _AT_ONCE  # of pairs there is twice as much in registers, and to compile


def exchange(ib: IRBuilder, size: int, lanes: int, cells: BufferVar, places: BufferVar | None) -> None:
    """Sort the first `size` positions of `cells`, and with them `places`, which decide where cells are equal."""
    network = _Network(ib, lanes, cells, places)
    if size <= _at_once(places is not None):
        network.compare([const(at, _INDEX) for at in range(size)], merge_exchange(size))
        return
    count = padded(size, places is not None)
    run = _RUN if places is None else _HALF
    whole, level = count // run * run, 0
    with ib.for_range(0, count // run, "run") as at:
        network.compare_block(at * run, run, merge_exchange(run))
    if count > whole:
        with ib.new_scope():
            network.compare_block(const(whole, _INDEX), _HALF, merge_exchange(_HALF))
    while run < count:
        _flip(network, run, count)
        distance = run // 4
        for _ in range(level // 2):
            _halve_twice(network, distance, count)
            distance //= 4
        block = 2 * distance  # a run, or half of one
        with ib.for_range(0, count // block, "block") as at:
            network.compare_block(at * block, block, halvings(block))
        if count % block:
            with ib.new_scope():
                network.compare_block(const(whole, _INDEX), _HALF, halvings(_HALF))
        run, level = 2 * run, level + 1


def merge_exchange(size: int) -> list[tuple[int, int]]:
    """Batcher's network for `size` positions: runs of 1, 2, 4, … are merged by distances that halve."""
    pairs, run = [], 1
    while run < size:
        step = run
        while step:
            for start in range(step % run, size - step, 2 * step):
                for first in range(start, min(start + step, size - step)):
                    if first // (2 * run) == (first + step) // (2 * run):
                        pairs.append((first, first + step))
            step //= 2
        run *= 2
    return pairs


def halvings(size: int) -> list[tuple[int, int]]:
    """What sorts a bitonic sequence: each position is compared with those at half the size, a quarter, …"""
    pairs, step = [], size // 2
    while step:
        pairs += [(at, at + step) for at in range(size) if not at & step]
        step //= 2
    return pairs


@dataclass(frozen=True)
class _Network:
    ib: IRBuilder
    lanes: int
    cells: BufferVar
    places: BufferVar | None

    def compare_block(self, first: Expr, size: int, pairs: Pairs) -> None:
        """Compare pairs of neighbouring positions."""
        start = self.ib.let("first", first)
        self.compare([start + at for at in range(size)], pairs)

    def compare(self, positions: Sequence[Expr], pairs: Pairs) -> None:
        """Read the positions, compare pairs of them one after the other, and write them back."""
        ib, whole = self.ib, Ramp(const(0, _INDEX), const(1, _INDEX), self.lanes)
        cells = [ib.let("cell", self.cells[at, whole]) for at in positions]
        if self.places is None:
            for i, j in pairs:
                a, b = cells[i], cells[j]
                cells[i], cells[j] = ib.let("low", minimum(a, b)), ib.let("high", maximum(a, b))
        else:
            places = [ib.let("place", self.places[at, whole]) for at in positions]
            for i, j in pairs:
                (a, p), (b, q) = (cells[i], places[i]), (cells[j], places[j])
                swap = ib.let("swap", any_of(b < a, all_of(b.equal(a), q < p)))
                cells[i], cells[j] = ib.let("low", select(swap, b, a)), ib.let("high", select(swap, a, b))
                places[i], places[j] = ib.let("low", select(swap, q, p)), ib.let("high", select(swap, p, q))
            for at, place in zip(positions, places, strict=True):
                self.places[at, whole] = place
        for at, cell in zip(positions, cells, strict=True):
            self.cells[at, whole] = cell

    def over_pairs(
        self, distance: int, count: int, positions: Positions, begin: int, end: int, pairs: Pairs
    ) -> None:
        """For each whole pair of blocks of that size."""
        ib = self.ib
        with ib.for_range(0, count // (2 * distance), "pair") as pair, ib.for_range(begin, end, "i") as i:
            self.compare(positions(pair * (2 * distance), i), pairs)

    def over_last(self, base: int, positions: Positions, begin: int, end: int, pairs: Pairs) -> None:
        """For the last pair, of which not all is there; `begin` is not before `end` where nothing is."""
        if begin < end:
            with self.ib.for_range(begin, end, "i") as i:
                self.compare(positions(const(base, _INDEX), i)[: 1 + max(j for _, j in pairs)], pairs)


def _flip(network: _Network, run: int, count: int) -> None:
    """Positions of a run with those mirrored in the next one, and then at half the distance of the runs."""
    half = run // 2

    def positions(base: Expr, i: Expr) -> list[Expr]:
        last = base + (2 * run - 1) - i
        return [base + i, base + i + half, last - half, last]

    network.over_pairs(run, count, positions, 0, half, [(0, 3), (1, 2), (0, 1), (2, 3)])
    base, there = count // (2 * run) * (2 * run), count % (2 * run)
    fourth = max(min(2 * run - there, half), 0)  # is there from here on
    third = max(min(run + half - there, half), 0)
    second = max(min(there - half, third), 0)  # is there up to here
    network.over_last(base, positions, 0, second, [(0, 1)])
    network.over_last(base, positions, third, fourth, [(1, 2), (0, 1)])
    network.over_last(base, positions, fourth, half, [(0, 3), (1, 2), (0, 1), (2, 3)])


def _halve_twice(network: _Network, distance: int, count: int) -> None:
    """Positions at this distance, and at half of it."""
    half = distance // 2

    def positions(base: Expr, i: Expr) -> list[Expr]:
        return [base + i, base + i + half, base + i + distance, base + i + distance + half]

    network.over_pairs(distance, count, positions, 0, half, [(0, 2), (1, 3), (0, 1), (2, 3)])
    base, there = count // (2 * distance) * (2 * distance), count % (2 * distance)
    fourth = max(min(there - distance - half, half), 0)  # is there up to here
    third = max(min(there - distance, half), fourth)
    second = max(min(there - half, half), third)
    network.over_last(base, positions, 0, fourth, [(0, 2), (1, 3), (0, 1), (2, 3)])
    network.over_last(base, positions, fourth, third, [(0, 2), (0, 1)])
    network.over_last(base, positions, third, second, [(0, 1)])
