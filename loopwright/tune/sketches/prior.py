"""Prior: what tilings cost by closed formulas, for thousands of sets of tile sizes at once, and features of them.

    cycles = register tiles + traffic between caches + packing + copying results, over the cores that have tasks

Register tiles: multiply-adds, loads and the latency of the sums, whichever is slowest; sums beyond the registers spill.
Traffic: the largest tile that fits a cache is brought there once for each visit. Only ratios matter: what is the same
for all candidates of a task is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from loopwright.autosched.cost import SHARED_LOAD
from loopwright.autosched.machine import Machine
from loopwright.tune.sketches.tiling import TiledAccess, Tiling, slab_level

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAMES: Final = (
    "fma cycles",
    "load cycles",
    "latency cycles",
    "spill cycles",
    "tile visits",
    "l1 traffic",
    "l2 traffic",
    "l3 traffic",
    "packing cycles",
    "copy cycles",
    "accumulators",
    "vectors in a row",
    "rows",
    "lanes used",
    "reduction in registers",
    "tasks",
    "tasks that fill cores",
    "tile bytes 1",
    "tile bytes 2",
    "tile bytes 3",
    "unrolled",
    "copied out",
    "packed first",
    "packed by slab",
)
_OVERLAP: Final = 0.35  # of the traffic that registers tiles do not hide
_LOOP_CYCLES: Final = 1.5
_VISIT_CYCLES: Final = 12.0  # to start a loop over a register tile


def tiling_features(
    tiling: Tiling, parts: Sequence[Ints], limit: Floats, unroll: Floats, machine: Machine
) -> tuple[Floats, Floats]:
    """Cycles of each candidate, and its features; `parts` are the factors of each axis, (candidates, factors)."""
    count = len(parts[0])
    structure = tiling.structure
    trips = _by_level(tiling, parts)  # levels × axes × candidates
    covered = np.cumprod(trips[::-1], axis=0)[::-1]  # by a level and those below it
    inside: Floats = np.concatenate([covered, np.ones((1, *covered.shape[1:]))])
    points = float(np.prod(np.asarray(tiling.extents, dtype=float)))

    lanes = machine.lanes(tiling.dtype)
    tile = trips[-1]
    width = tile[tiling.vector]
    vectors = np.ceil(width / lanes)
    rows = np.prod(tile[: tiling.data - 1], axis=0)
    sums = rows * vectors
    last = structure.rindex("R")
    depth = np.prod(trips[last], axis=0)  # iterations of the reduction over one register tile
    steps = points / (width * rows)

    loads = np.zeros(count)
    for one in tiling.reads:
        used = _uses(tiling, one)
        own = np.prod(tile[: tiling.data - 1][used[: tiling.data - 1]], axis=0) if tiling.data > 1 else np.ones(count)
        if used[tiling.vector]:
            straight = bool(one.packed) or one.strides[tiling.vector] == 1
            loads += own * (
                vectors if straight else width * machine.lane_cycles(one.itemsize) * machine.loads_per_cycle
            )
        else:
            loads += own
    guarded = rows * (width % lanes > 0)  # part of a vector is under a mask, or element by element
    fma = (sums + guarded) / machine.fma_per_cycle
    load = loads / machine.loads_per_cycle
    spilled = np.maximum(0.0, sums + vectors + 1 - machine.registers)
    spill = 4.0 * spilled
    per_step = np.maximum(np.maximum(fma, load), machine.fma_latency) + SHARED_LOAD * loads + spill
    body = np.maximum(1.0, np.minimum(unroll / np.maximum(sums, 1), depth))
    per_step = per_step + _LOOP_CYCLES / body
    visits = steps / depth
    moved = sums if tiling.level < 0 else 2.0 * sums
    computing = steps * per_step + visits * (moved + _VISIT_CYCLES)

    accesses = [*tiling.reads, tiling.write]
    bytes_inside = [_footprint(one, inside, machine.line) for one in accesses]  # each levels × candidates
    totals = np.sum(bytes_inside, axis=0)
    moved_in = _moved_in(tiling, accesses, trips, bytes_inside)
    traffic = [_traffic(moved_in, totals, capacity) for capacity in (machine.l1, machine.l2, machine.l3)]
    moving = (
        traffic[0] / machine.l2_bytes_per_cycle
        + traffic[1] / machine.l3_bytes_per_cycle
        + traffic[2] / machine.memory_bytes_per_cycle
    )

    packing = np.zeros(count)
    slab = slab_level(structure)
    outer = np.prod(trips[:slab].reshape(-1, count), axis=0)
    for one in tiling.reads:
        if not one.packed:
            continue
        if one.packed == "root":
            packing += float(np.prod(one.shape)) * (one.itemsize * 2 / machine.l3_bytes_per_cycle + 2.0 / lanes)
        else:
            along = one.strides[tiling.vector] == 1 and _uses(tiling, one)[tiling.vector]
            each = np.where(width % lanes == 0, 3.0 / lanes, 1.5) if along else np.full(count, 1.5)
            elements = _elements(one, inside[slab])
            packing += outer * elements * each
    copying = np.zeros(count)
    if tiling.level > 0:
        plain = tiling.write.strides[tiling.vector] == 1
        copying += float(np.prod(tiling.write.shape)) * (3.0 / lanes if plain else 1.5)

    tasks = _tasks(tiling, trips, limit, machine.cores)
    rounds = np.ceil(tasks / machine.cores)
    filled = tasks / (rounds * machine.cores)
    serial = np.maximum(computing, moving) + _OVERLAP * np.minimum(computing, moving) + packing + copying
    cycles = serial / (machine.cores * filled) + machine.fork_cycles + 200.0 * rounds
    packed = [one.packed for one in tiling.reads]
    columns = (
        steps * fma,
        steps * load,
        steps * np.full(count, float(machine.fma_latency)),
        steps * spill,
        visits,
        *traffic,
        packing,
        copying,
        sums,
        vectors,
        rows,
        width / (vectors * lanes) * 16,
        depth,
        tasks,
        filled * 16,
        totals[min(1, len(totals) - 1)],
        totals[slab],
        totals[last],
        body,
        np.full(count, float(tiling.level + 1)),
        np.full(count, float(packed.count("root"))),
        np.full(count, float(packed.count("slab"))),
    )
    return cycles, np.log2(1.0 + np.stack(columns, axis=1))


def _by_level(tiling: Tiling, parts: Sequence[Ints]) -> Floats:
    """The factors as levels × axes × candidates; 1 where a level is not of the axis's kind."""
    count = len(parts[0])
    result = np.ones((len(tiling.structure), len(tiling.axes), count))
    for axis, factors in enumerate(parts):
        letter = "S" if axis < tiling.data else "R"
        own = [level for level, other in enumerate(tiling.structure) if other == letter]
        for level, column in zip(own, factors.T, strict=True):
            result[level, axis] = column
    return result


def _uses(tiling: Tiling, access: TiledAccess) -> list[bool]:
    """Which axes move an access."""
    return [any(step[axis] for step in access.steps) for axis in range(len(tiling.axes))]


def _spans(access: TiledAccess, sizes: Floats) -> list[Floats]:
    """How many indices of each dimension a box of the axes touches; sizes are … × axes × candidates."""
    result = []
    for steps, size in zip(access.steps, access.shape, strict=True):
        reach = np.ones((*sizes.shape[:-2], sizes.shape[-1]))
        for axis, step in enumerate(steps):
            if step:
                reach += step * (sizes[..., axis, :] - 1)
        result.append(np.minimum(reach, size))
    return result


def _elements(access: TiledAccess, sizes: Floats) -> Floats:
    spans = _spans(access, sizes)
    return np.prod(spans, axis=0) if spans else np.ones(sizes.shape[-1])


def _footprint(access: TiledAccess, sizes: Floats, line: int) -> Floats:
    """Bytes of the cache lines that a box touches."""
    spans = _spans(access, sizes)
    if not spans:
        return np.full((*sizes.shape[:-2], sizes.shape[-1]), float(access.itemsize))
    if access.packed:
        return np.prod(spans, axis=0) * access.itemsize
    run = np.ceil(spans[-1] * access.itemsize / line) * line
    return np.prod(spans[:-1], axis=0) * run if len(spans) > 1 else run


def _moved_in(tiling: Tiling, accesses: Sequence[TiledAccess], trips: Floats, bytes_inside: Sequence[Floats]) -> Floats:
    """Bytes that come into a cache in which what a level covers stays: levels × candidates."""
    count = trips.shape[-1]
    turns = np.cumprod(np.prod(trips, axis=1), axis=0)  # of the loops down to a level
    visits = np.concatenate([np.ones((2, count)), turns[:-1]])
    moved = np.zeros((len(trips) + 1, count))
    for one, inside in zip(accesses, bytes_inside, strict=True):
        # The loops right around the tile bring in anew only what they move.
        again = np.concatenate([np.ones((1, count)), np.prod(trips[:, _uses(tiling, one)], axis=1)])
        moved += inside * (visits * again)
    return moved


def _traffic(moved_in: Floats, totals: Floats, capacity: int) -> Floats:
    """Bytes that come into a cache: the outermost tile that fits is loaded once for each of its visits."""
    fits = totals <= capacity * 0.75
    fits[-1] = True
    return np.asarray(np.take_along_axis(moved_in, fits.argmax(axis=0)[None], axis=0)[0])


def _tasks(tiling: Tiling, trips: Floats, limit: Floats, cores: int) -> Floats:
    """How many tasks the outer loops make under a limit, as the postproc fuses them."""
    levels = [0] if tiling.level == 1 else [0, 1] if tiling.level >= 0 else range(tiling.structure.index("R"))
    chain = [trips[level, axis] for level in levels if tiling.structure[level] == "S" for axis in range(tiling.data)]
    tasks = np.ones_like(limit)
    done = np.zeros(len(limit), dtype=bool)
    for factor in chain:
        more = tasks * factor
        fits = ~done & (more <= limit)
        over = ~done & ~fits
        cut = over & (tasks < cores)
        tasks = np.where(fits, more, np.where(cut, np.ceil(more / np.ceil(more / limit)), tasks))
        done |= over
    return np.where(tasks < cores, np.maximum(tasks, 1.0), tasks)
