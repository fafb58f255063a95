"""What a sketch leaves open: the domain of each of its samples, drawn in bulk.

    SamplePerfectTile   loop of 512, 4 factors, the last ≤ 64     a table of all factorisations, drawn by row
    SampleCategorical   [0, 16, 64, 512]                          a position, by its probability
    SampleComputeLocation                                         a depth; replay takes the next one that fits

A decision is what the trace holds: a list of factors, a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt

from loopwright.schedule import Trace
from loopwright.schedule.primitives.sample.sampling import drawn_tile
from loopwright.tune.sketches.notes import PLACES

Ints = npt.NDArray[np.int64]
MOST_TILES: Final = 20_000  # of a table; where there are more, it holds as many that were drawn
_PLACES: Final = (3.0, 6.0, 4.0, 3.0, 2.0, 1.0, 1.0)  # how often a block stays where it is, or goes to loop 0, 1 …


@dataclass(frozen=True)
class Sample:
    """A sampled instruction: its position in the trace, and a row of numbers for each decision there is."""

    position: int
    kind: str
    table: Ints  # (decisions, numbers of one)
    weights: tuple[float, ...] = ()  # none: all alike
    most: int = -1  # of the last factor of a tile; -1 for any
    known: dict[int, Ints] = field(default_factory=dict, compare=False, repr=False)  # neighbours that were asked for

    def draw(self, random: np.random.Generator, count: int) -> Ints:
        """Positions in the table."""
        if self.weights:
            shares = np.asarray(self.weights) / sum(self.weights)
            return random.choice(len(self.table), count, p=shares).astype(np.int64)
        return random.integers(0, len(self.table), count)

    def decision(self, row: int) -> list[int] | int:
        """What the trace holds for a row of the table."""
        numbers = [int(number) for number in self.table[row]]
        return numbers if self.kind == "SamplePerfectTile" else numbers[0]

    def nearest(self, decision: object) -> int:
        """Where the table has a decision, or the one that differs from it in the least factors."""
        wanted = np.asarray(decision, dtype=float).reshape(-1)[: self.table.shape[1]]
        wanted = np.concatenate([wanted, np.ones(self.table.shape[1] - len(wanted))])
        if self.kind == "SamplePerfectTile":
            apart = np.abs(np.log2(self.table) - np.log2(np.maximum(wanted, 1))).sum(axis=1)
        else:
            apart = np.abs(self.table - wanted).sum(axis=1)
        return int(apart.argmin())

    def neighbours(self, row: int) -> Ints:
        """The decisions that one divisor moved from a factor to another makes; all others where it is no tile."""
        result = self.known.get(row)
        if result is None:
            if self.kind != "SamplePerfectTile":
                result = np.flatnonzero(np.arange(len(self.table)) != row)
            else:
                result = np.flatnonzero((self.table != self.table[row]).sum(axis=1) == 2)
            self.known[row] = result
        return result


def samples_of(trace: Trace) -> tuple[Sample, ...]:
    """The samples of a trace, in its order."""
    result = []
    places = len(_PLACES)
    for position, inst in enumerate(trace.insts):
        kind, decision = str(inst.kind), trace.decisions.get(position, [])
        if kind == "SamplePerfectTile":
            extent = prod(decision)
            if extent >= 0:  # else symbolic: nothing to choose
                most = int(inst.attrs["max_innermost_factor"])
                result.append(Sample(position, kind, tile_table(extent, len(decision), most), most=most))
        elif kind == "SampleCategorical":
            count = len(inst.attrs["candidates"])
            weights = tuple([float(share) for share in inst.attrs["probs"]])
            result.append(Sample(position, kind, np.arange(count).reshape(-1, 1), weights))
        elif kind == "SampleComputeLocation":
            count = 1 + min(len(_PLACES) - 1, places)
            result.append(Sample(position, kind, np.arange(-1, count - 1).reshape(-1, 1), _PLACES[:count]))
        elif kind == "Annotate" and inst.attrs["ann_key"] == PLACES:
            places = int(inst.attrs["ann_val"])  # of the location that is sampled next
    return tuple(result)


@lru_cache(256)
def tile_table(extent: int, n: int, most: int) -> Ints:
    """All ways to write `extent` as `n` ordered factors, the last at most `most` (-1: any).

    >>> tile_table(4, 2, 2).tolist()
    [[4, 1], [2, 2]]
    """
    rows = _factorisations(extent, n, extent if most == -1 else most)
    if len(rows) > MOST_TILES:
        random = Random(extent)
        rows = [drawn_tile(random, extent, n, extent if most == -1 else most) for _ in range(MOST_TILES)]
    return np.asarray(rows, dtype=np.int64)


def _factorisations(extent: int, n: int, most: int) -> list[list[int]]:
    """As many of them as a table holds, and one more where there are too many."""
    rows: list[tuple[int, list[int]]] = [(extent, [])]
    for position in range(n - 1):
        limit = most if position == 0 else extent
        rows = [
            (rest // factor, [factor, *chosen])
            for rest, chosen in rows
            for factor in _divisors(rest)
            if factor <= limit
        ]
        if len(rows) > MOST_TILES:
            return [[]] * (MOST_TILES + 1)
    return [[rest, *chosen] for rest, chosen in rows]


@lru_cache(4096)
def _divisors(number: int) -> Sequence[int]:
    if number < 1:
        return [1]
    low = [factor for factor in range(1, int(number**0.5) + 1) if number % factor == 0]
    return sorted({*low, *[number // factor for factor in low]})
