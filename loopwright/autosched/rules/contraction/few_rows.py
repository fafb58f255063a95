"""Few rows: the tiles of a product whose height is known only when the program runs, for when there is little of it."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import NamedTuple

from loopwright.autosched.machine import Machine
from loopwright.autosched.rules.contraction.streamed import streamed_tiles
from loopwright.autosched.rules.contraction.tiles import (
    ALL_ROWS,
    MOST_CASES,
    Size,
    Tiles,
    costed,
    packings,
    tasks_of,
    work_of,
)
from loopwright.autosched.tile_search import TWO_AHEAD

FEW_ROWS = (8, 16, 32, 64)  # up to one of these, a product of unknown height reads B in place, if that costs less


class FewRows(NamedTuple):
    """Tiles for a product of unknown height that has few rows after all: up to `most`."""

    tiles: Tiles
    most: int


def tiles_for_few_rows(size: Size, machine: Machine, otherwise: Tiles) -> FewRows | None:
    """Tiles that read B in place, and up to how many rows that costs less than `otherwise`, which copies it.

    None when copying costs less even for one tile of rows, or when B has to be copied.
    """
    result: FewRows | None = None
    for rows in FEW_ROWS:
        few = size._replace(m=rows)
        threads = machine.threads_for(work_of(few, machine))
        down = ceil(rows / MOST_CASES)
        candidates = [
            costed(few, machine, threads, MOST_CASES, vectors, False, down, across)
            for vectors in range(1, 7)
            if MOST_CASES * vectors + vectors + TWO_AHEAD <= machine.registers
            and False in packings(size, vectors * machine.lanes(size.dtype))
            for _, across in dict.fromkeys(tasks_of(few, machine, threads, MOST_CASES, vectors))
        ]
        candidates += streamed_tiles(few, machine)
        best = min(candidates, key=lambda tiles: tiles.cycles, default=None)
        down = ceil(rows / otherwise.mr)
        packed = costed(
            few, machine, threads, otherwise.mr, otherwise.vectors, otherwise.packs, down, otherwise.task_columns
        )
        if best is None or packed.cycles <= best.cycles:
            break
        result = FewRows(replace(best, task_rows=ALL_ROWS), rows)
    return result
