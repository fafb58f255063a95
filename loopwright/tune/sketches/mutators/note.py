"""MutateNote: another candidate of the sampled number that an annotation of the root block holds."""

from __future__ import annotations

import numpy as np

from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.samples import Ints
from loopwright.tune.sketches.sketch import Sketch


class MutateNote(Mutator):
    """The keys of the annotation are all that differs."""

    keys: tuple[str, ...]

    def apply(self, sketch: Sketch, row: Ints, random: np.random.Generator) -> Ints | None:
        column = sketch.noted(self.keys)
        if column is None:
            return None
        others = sketch.samples[column].neighbours(int(row[column]))
        return self.changed(row, column, self.one_of(others, random)) if len(others) else None
