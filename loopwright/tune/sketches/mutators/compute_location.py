"""compute_location: another loop to compute a block at."""

from __future__ import annotations

from random import Random

from loopwright.tune.sketches.mutators.mutator import Decisions, Mutator
from loopwright.tune.sketches.sketch import Sketch


class MutateComputeLocation(Mutator):
    """One of the places that the sample has."""

    name = "compute_location"

    def apply(self, sketch: Sketch, decisions: Decisions, random: Random) -> Decisions | None:
        places = [k for k, sample in enumerate(sketch.samples) if sample.kind == "SampleComputeLocation"]
        if not places:
            return None
        position = random.choice(places)
        sample = sketch.samples[position]
        others = [sample.decision(row) for row in range(len(sample.table))]
        chosen = random.choice([other for other in others if other != decisions[position]])
        return (*decisions[:position], chosen, *decisions[position + 1 :])
