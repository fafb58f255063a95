"""Tiles: the sizes of the loops of attention on a CPU, from the description of a machine.

    tiles = choose_tiles(Machine.of("llvm"), "float32", queries=128, keys=128, depth=64, width=64)
    tiles.queries           how many queries a task has: lanes of vectors while scores are computed
    tiles.score_rows        keys of a tile of scores: score_rows × queries sums in registers
    tiles.keys              keys of a block, whose scores stay in L1
    tiles.value_rows        queries of a tile of the result: value_rows × value_vectors sums in registers
    tiles.key_lanes         of a single query, as when text is generated: the vectors are along keys

A tile is chosen for the cycles that one step of its reduction takes for each useful sum; queries that fill up the last
task are not useful.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from loopwright.autosched.cost import tile_step
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.prefetch import prefetch_distance
from loopwright.autosched.tile_search import TWO_AHEAD, register_tiles

_NEARLY = 1.1  # what a tile of fewer queries may cost beside the best one
_MOST_ROWS, _MOST_KEY_VECTORS = 8, 4  # of a tile: each is unrolled, and code takes compiling
_MANY_SCORES = 4096  # queries or keys, where it is not known how many


@dataclass(frozen=True)
class AttentionTiles:
    """The sizes that were chosen; lanes may be fewer than a vector has where there are few queries."""

    lanes: int  # of the vectors of queries
    query_vectors: int
    score_rows: int
    keys: int
    value_lanes: int
    value_rows: int
    value_vectors: int
    is_parallel: bool
    key_lanes: int = 1  # more for a single query: lanes are numbers of a key while scores are computed, then keys
    ahead: int = 0  # keys and values are prefetched so many of them ahead; 0 for none
    line: int = 1  # numbers of a key in a cache line

    @property
    def queries(self) -> int:
        return self.lanes * self.query_vectors


def choose_tiles(
    machine: Machine, dtype: str, heads: int | None, queries: int | None, keys: int | None, depth: int, width: int
) -> AttentionTiles:
    """The tiles that cost least; `heads` are those of all batches, and None is a size that is not known."""
    full = machine.lanes(dtype)
    work = (heads or _MANY_SCORES) * float(queries or _MANY_SCORES) * (keys or _MANY_SCORES) * (depth + width) * 2
    is_parallel = machine.threads_for(work / machine.flops_per_cycle(dtype)) > 1
    if queries == 1 and full > 1:
        return _one_query(machine, dtype, heads, keys, depth, width, is_parallel)
    lanes = full if queries is None else min(full, 1 << max(0, queries - 1).bit_length())
    rows, vectors = _register_tile(machine, lanes, queries)
    together = lanes * vectors
    # A third of L1 for the scores of a block; the queries and what is streamed have the rest.
    fitting = machine.l1 // 3 // (together * bytes_of(dtype))
    most = max(rows, fitting // rows * rows)
    block = most if keys is None else min(most, rounded_up(max(keys, 1), rows))
    value_rows, value_vectors = _value_tile(machine, full, together, width)
    return AttentionTiles(
        lanes,
        vectors,
        rows,
        block,
        min(full, 1 << (max(width, 1).bit_length() - 1)),
        value_rows,
        value_vectors,
        is_parallel,
    )


def _one_query(
    machine: Machine, dtype: str, heads: int | None, keys: int | None, depth: int, width: int, is_parallel: bool
) -> AttentionTiles:
    """Keys and values are read once, at the rate of memory: whole rows of them, so that they come in order."""
    full = machine.lanes(dtype)
    most = max(_MOST_ROWS, machine.l1 // 3 // bytes_of(dtype) // _MOST_ROWS * _MOST_ROWS)
    block = most if keys is None else min(most, rounded_up(max(keys, 1), _MOST_ROWS))
    columns = max(1, width // full)
    passes = ceil(columns / (machine.registers // 2))
    lanes = min(full, 1 << (max(width, 1).bit_length() - 1))
    size = bytes_of(dtype)
    streams = (heads or _MANY_SCORES) * (keys or _MANY_SCORES) * (depth + width) * size > machine.l2
    return AttentionTiles(
        1,
        1,
        _MOST_ROWS,
        block,
        lanes,
        1,
        ceil(columns / passes),
        is_parallel,
        key_lanes=full,
        ahead=rounded_up(ceil(prefetch_distance(machine) / (max(depth, 1) * size)), _MOST_ROWS) if streams else 0,
        line=max(1, machine.line // size),
    )


def _register_tile(machine: Machine, lanes: int, queries: int | None) -> tuple[int, int]:
    """Keys and vectors of queries of a tile of scores."""

    def cost(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        useful = 1.0 if queries is None else ceil(queries / (lanes * vectors)) * lanes * vectors / max(queries, 1)
        return tile_step(machine, rows, vectors) / (rows * vectors) * useful

    costs = {tile: cost(tile) for tile in _tiles(machine)}
    enough = _NEARLY * min(costs.values())
    # Few queries together: more tasks, fewer keys that only some of them may see, more keys in a block.
    return min((tile for tile in costs if costs[tile] <= enough), key=lambda tile: (tile[1], costs[tile]))


def _value_tile(machine: Machine, lanes: int, together: int, width: int) -> tuple[int, int]:
    """Queries and vectors of columns of a tile of the result; the rows divide the queries of a task."""
    columns = max(1, width // lanes)

    def cost(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        useful = ceil(columns / vectors) * vectors / columns
        apart = vectors * machine.moves.vector_of_row  # the rows of a head lie far apart
        return (tile_step(machine, rows, vectors) + apart) / (rows * vectors) * useful

    fitting = [tile for tile in _tiles(machine) if together % tile[0] == 0 and tile[1] <= columns]
    return min(fitting, key=lambda tile: (cost(tile), tile[1]))


def _tiles(machine: Machine) -> list[tuple[int, int]]:
    return list(register_tiles(machine, _MOST_ROWS, _MOST_KEY_VECTORS, TWO_AHEAD))
