"""compute_location: another loop to compute a block at."""

from __future__ import annotations

import numpy as np

from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.samples import Ints
from loopwright.tune.sketches.sketch import Sketch


class MutateComputeLocation(Mutator):
    """One of the places that the sample has."""

    name = "compute_location"

    def apply(self, sketch: Sketch, row: Ints, random: np.random.Generator) -> Ints | None:
        places = [k for k, sample in enumerate(sketch.samples) if sample.kind == "SampleComputeLocation"]
        if not places:
            return None
        column = self.one_of(places, random)
        return self.changed(row, column, self.one_of(sketch.samples[column].neighbours(int(row[column])), random))
