"""MutateThreadBinding: another number of threads."""

from __future__ import annotations

from loopwright.meta_schedule.mutator.mutator import Mutator, steps_of
from loopwright.schedule import Trace


class MutateThreadBinding(Mutator):
    """One of the sampled numbers that loops bound to threads are split by."""

    def apply(self, trace: Trace) -> Trace | None:
        bound = [
            inst.inputs["loop"]
            for inst in steps_of(trace, "Bind")
            if str(inst.attrs["thread_axis"]).startswith("threadIdx")
        ]
        splits = [
            inst for inst in steps_of(trace, "Split") if any(one is loop for one in inst.outputs for loop in bound)
        ]
        used = [factor for inst in splits for factor in list(inst.inputs.get("factors", ()) or ())]
        samples = [
            one for one in steps_of(trace, "SampleCategorical") if any(one.outputs[0] is value for value in used)
        ]
        if not samples:
            return None
        chosen = self.random.choice(samples)
        count, now = len(chosen.attrs["candidates"]), trace.decisions[chosen]
        others = [one for one in range(count) if one != now]
        return trace.with_decision(chosen, self.random.choice(others)) if others else None
