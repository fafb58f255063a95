"""MutateComputeLocation: another loop to compute a block at."""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.mutator.mutator import Mutator, steps_of
from loopwright.schedule import Instruction, Schedule, Trace
from loopwright.schedule.primitives.sample.sample_compute_location import compute_locations


class MutateComputeLocation(Mutator):
    """The steps are done on the program of the context, to see which places there are."""

    def apply(self, trace: Trace) -> Trace | None:
        samples = steps_of(trace, "SampleComputeLocation")
        if not samples or self._context is None or self._context.mod is None:
            return None
        sch = Schedule(self._context.mod, enable_check=False, error_render_level="none")
        places: dict[int, list[int]] = {}

        def look(inst: Instruction, inputs: list[Any], attrs: list[Any], decision: Any) -> Any:
            if str(inst.kind) == "SampleComputeLocation":
                view = next(view for view in sch.views().values() if view.current(inputs[0].key) in view.index.blocks)
                places[id(inst)] = compute_locations(view, view.realize(inputs[0].key))
            return decision

        trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=look)
        movable = [one for one in samples if len(places.get(id(one), ())) > 1]
        if not movable:
            return None
        chosen = self.random.choice(movable)
        others = [place for place in places[id(chosen)] if place != trace.decisions[chosen]]
        return trace.with_decision(chosen, self.random.choice(others))
