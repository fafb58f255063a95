"""tile_size: moves a divisor from one factor of a tile to another: [4, 8, 2, 8] → [4, 2, 8, 8]."""

from __future__ import annotations

import numpy as np

from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.samples import Ints
from loopwright.tune.sketches.sketch import Sketch


class MutateTileSize(Mutator):
    """Two factors change, their product stays."""

    name = "tile_size"

    def apply(self, sketch: Sketch, row: Ints, random: np.random.Generator) -> Ints | None:
        samples = sketch.samples
        tiles = [k for k, one in enumerate(samples) if one.kind == "SamplePerfectTile" and len(one.table) > 1]
        for column in random.permutation(tiles):
            others = samples[column].neighbours(int(row[column]))
            if len(others):
                return self.changed(row, int(column), self.one_of(others, random))
        return None
