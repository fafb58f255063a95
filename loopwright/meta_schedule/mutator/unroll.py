"""MutateUnroll: another number of statements that may stand in a row."""

from __future__ import annotations

from loopwright.meta_schedule.mutator.mutator import Mutator, annotated_samples
from loopwright.schedule import Trace


class MutateUnroll(Mutator):
    """One of the sampled numbers that annotations for unrolling hold."""

    def apply(self, trace: Trace) -> Trace | None:
        samples = annotated_samples(trace, "meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")
        samples = [one for one in samples if len(one.attrs["candidates"]) > 1]
        if not samples:
            return None
        chosen = self.random.choice(samples)
        count, now = len(chosen.attrs["candidates"]), trace.decisions[chosen]
        return trace.with_decision(chosen, self.random.choice([one for one in range(count) if one != now]))
