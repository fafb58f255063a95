"""tile_size: moves a factor from one tile of a loop to another: [4, 8, 2, 8] → [4, 2, 8, 8]."""

from __future__ import annotations

from random import Random

from loopwright.tune.sketches.mutators.mutator import Decisions, Mutator
from loopwright.tune.sketches.sketch import Sketch


class MutateTileSize(Mutator):
    """A divisor of one factor goes to another."""

    name = "tile_size"

    def apply(self, sketch: Sketch, decisions: Decisions, random: Random) -> Decisions | None:
        tiles = [k for k, sample in enumerate(sketch.samples) if sample.kind == "SamplePerfectTile"]
        tiles = [k for k in tiles if len(sketch.samples[k].table) > 1]
        random.shuffle(tiles)
        for position in tiles:
            changed = _moved(list(decisions[position]), sketch.samples[position].most, random)  # type: ignore[call-overload]
            if changed is not None:
                return (*decisions[:position], tuple(changed), *decisions[position + 1 :])
        return None


def _moved(factors: list[int], most: int, random: Random) -> list[int] | None:
    """The factors after a divisor has moved; None where the last factor would pass `most` whichever moves."""
    moves = [
        (giver, taker, size)
        for giver, factor in enumerate(factors)
        for size in range(2, factor + 1)
        if factor % size == 0
        for taker in range(len(factors))
        if taker != giver and (taker < len(factors) - 1 or most == -1 or factors[taker] * size <= most)
    ]
    if not moves:
        return None
    giver, taker, size = random.choice(moves)
    result = list(factors)
    result[giver] //= size
    result[taker] *= size
    return result
