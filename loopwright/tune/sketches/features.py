"""Features and prior cost of candidates of one sketch: those of its tilings, together."""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright.autosched.machine import Machine
from loopwright.tune.sketches.notes import PARALLEL, UNROLL, UNROLL_IMPLICIT
from loopwright.tune.sketches.prior import NAMES as OF_A_TILING
from loopwright.tune.sketches.prior import Floats, Ints, tiling_features
from loopwright.tune.sketches.sketch import Sketch

NAMES: Final = (*OF_A_TILING, "tiled blocks", "most tasks", "statements in a row")


def features_of(sketch: Sketch, rows: Ints, machine: Machine) -> tuple[Floats, Floats]:
    """Cycles and features of each row; those of several tiled blocks are added up."""
    count = len(rows)
    limit, unroll = _noted(sketch, rows, (PARALLEL,)), _noted(sketch, rows, (UNROLL, UNROLL_IMPLICIT))
    cycles, features = np.zeros(count), np.zeros((count, len(OF_A_TILING)))
    for tiling, columns in sketch.tilings:
        parts = [sketch.samples[column].table[rows[:, column]] for column in columns]
        more, own = tiling_features(tiling, parts, limit, unroll, machine)
        cycles += more
        features += own
    rest = [np.full(count, float(len(sketch.tilings))), np.log2(1 + limit), np.log2(1 + unroll)]
    return cycles, np.concatenate([features, np.stack(rest, axis=1)], axis=1)


def _noted(sketch: Sketch, rows: Ints, keys: tuple[str, ...]) -> Floats:
    """The sampled number that an annotation holds; 1 where there is none."""
    column = sketch.noted(keys)
    if column is None:
        return np.ones(len(rows))
    sample = sketch.samples[column]
    candidates = np.asarray(sketch.trace.insts[sample.position].attrs["candidates"], dtype=float)
    return np.asarray(candidates[sample.table[rows[:, column], 0]])
