"""unroll, parallel: another candidate of the sampled number that a note on the root block holds."""

from __future__ import annotations

from random import Random

from loopwright.schedule import Instruction
from loopwright.tune.sketches.mutators.mutator import Decisions, Mutator
from loopwright.tune.sketches.rules.parallelize_vectorize_unroll import PARALLEL, UNROLL, UNROLL_IMPLICIT
from loopwright.tune.sketches.sketch import Sketch


class _MutateNote(Mutator):
    keys: tuple[str, ...]

    def apply(self, sketch: Sketch, decisions: Decisions, random: Random) -> Decisions | None:
        for position, sample in enumerate(sketch.samples):
            if sample.kind != "SampleCategorical" or not self._is_noted(sketch, sketch.trace.insts[sample.position]):
                continue
            others = [sample.decision(row) for row in range(len(sample.table))]
            others = [other for other in others if other != decisions[position]]
            if others:
                return (*decisions[:position], random.choice(others), *decisions[position + 1 :])
        return None

    def _is_noted(self, sketch: Sketch, sampled: Instruction) -> bool:
        notes = [inst for inst in sketch.trace.insts if str(inst.kind) == "Annotate"]
        mine = [inst for inst in notes if inst.attrs["ann_key"] in self.keys]
        return any(inst.attrs["ann_val"] is sampled.outputs[0] for inst in mine)


class MutateUnroll(_MutateNote):
    """How many statements may stand in a row."""

    name = "unroll"
    keys = (UNROLL, UNROLL_IMPLICIT)


class MutateParallel(_MutateNote):
    """How many tasks there may be."""

    name = "parallel"
    keys = (PARALLEL,)

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core
