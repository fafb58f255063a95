"""Sketch: a schedule whose sizes are open: its trace, and the domain of each sample in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopwright.schedule import Schedule, Trace
from loopwright.tune.sketches.samples import Ints, Sample, samples_of
from loopwright.tune.sketches.tiling import TILED, Tiling


@dataclass(frozen=True, eq=False)
class Sketch:
    """Steps that are proved anew for each set of decisions. A row is a position in the table of each sample."""

    trace: Trace

    @classmethod
    def of(cls, sch: Schedule) -> Sketch:
        """The sketch that a schedule is one instance of."""
        return cls(Trace(sch.trace.insts, dict(sch.trace.decisions)))

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        return samples_of(self.trace)

    @cached_property
    def tilings(self) -> tuple[tuple[Tiling, tuple[int, ...]], ...]:
        """How blocks are tiled, and which samples are the sizes of each axis."""
        result: list[tuple[Tiling, tuple[int, ...]]] = []
        columns: list[int] = []
        known = {sample.position: column for column, sample in enumerate(self.samples)}
        for position, inst in enumerate(self.trace.insts):
            if str(inst.kind) == "SamplePerfectTile":
                columns.append(known[position])
            elif str(inst.kind) == "Annotate" and inst.attrs["ann_key"] == TILED:
                tiling = Tiling.from_json(inst.attrs["ann_val"])
                result.append((tiling, tuple(columns[-len(tiling.axes) :])))
        return tuple(result)

    @property
    def text(self) -> str:
        """How blocks are tiled, in words."""
        return "; ".join([tiling.text() for tiling, _ in self.tilings]) or "no tiles"

    def noted(self, keys: Sequence[str]) -> int | None:
        """The sample whose number an annotation with one of the keys holds."""
        return next((column for key, column in self._notes if key in keys), None)

    @cached_property
    def _notes(self) -> tuple[tuple[str, int], ...]:
        """The keys of annotations that hold a sampled number, and its sample."""
        made = {id(self.trace.insts[sample.position].outputs[0]): k for k, sample in enumerate(self.samples)}
        notes = [inst.attrs for inst in self.trace.insts if str(inst.kind) == "Annotate"]
        numbers = [(str(note["ann_key"]), made.get(id(note["ann_val"]))) for note in notes]
        return tuple([(key, column) for key, column in numbers if column is not None])

    def draw(self, random: np.random.Generator, count: int) -> Ints:
        """Rows of decisions at random, (count, samples)."""
        columns = [sample.draw(random, count) for sample in self.samples]
        return np.stack(columns, axis=1) if columns else np.zeros((count, 0), dtype=np.int64)

    def decisions(self, row: Sequence[int] | Ints) -> tuple[object, ...]:
        """A row as plain data, lists as tuples."""
        made = [sample.decision(int(position)) for sample, position in zip(self.samples, row, strict=True)]
        return tuple([tuple(one) if isinstance(one, list) else one for one in made])

    def row(self, decisions: Sequence[object]) -> Ints:
        """The row that decisions are, or the nearest one."""
        pairs = zip(self.samples, decisions, strict=True)
        return np.asarray([sample.nearest(decision) for sample, decision in pairs], dtype=np.int64)

    def trace_with(self, decisions: Sequence[object]) -> Trace:
        """The steps with these decisions."""
        trace = self.trace.copy()
        for sample, decision in zip(self.samples, decisions, strict=True):
            trace.decisions[sample.position] = list(decision) if isinstance(decision, (list, tuple)) else decision
        return trace
