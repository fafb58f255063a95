"""MutateTileSize: moves a divisor from one factor of a tile to another, or changes the width of a vector load."""

from __future__ import annotations

from math import prod

from loopwright.meta_schedule.mutator.mutator import Mutator, annotated_samples, steps_of
from loopwright.schedule import Trace


class MutateTileSize(Mutator):
    """[4, 32, 4, 1] → [4, 8, 16, 1]."""

    def apply(self, trace: Trace) -> Trace | None:
        tiles = [one for one in steps_of(trace, "SamplePerfectTile") if prod(trace.decisions[one]) > 1]
        tiles = [one for one in tiles if len(trace.decisions[one]) > 1]
        widths = annotated_samples(trace, "meta_schedule.cooperative_fetch")
        widths = [one for one in widths if len(one.attrs["candidates"]) > 1]
        if not tiles and not widths:
            return None
        chosen = self.random.choice([*tiles, *widths])
        if any(chosen is one for one in widths):
            count, now = len(chosen.attrs["candidates"]), trace.decisions[chosen]
            return trace.with_decision(chosen, self.random.choice([one for one in range(count) if one != now]))
        sizes = [int(size) for size in trace.decisions[chosen]]
        most = int(chosen.attrs["max_innermost_factor"])
        for _ in range(64):
            source, sink = self.random.sample(range(len(sizes)), 2)
            divisors = [number for number in range(2, sizes[source] + 1) if sizes[source] % number == 0]
            if not divisors:
                continue
            moved = self.random.choice(divisors)
            if sink == len(sizes) - 1 and most != -1 and sizes[sink] * moved > most:
                continue
            result = list(sizes)
            result[source] //= moved
            result[sink] *= moved
            return trace.with_decision(chosen, result)
        return None
