"""Sketch: a schedule whose sizes are open: its trace, and the domain of each sample in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopwright.schedule import Schedule, Trace
from loopwright.tune.sketches.samples import Ints, Sample, samples_of


@dataclass(frozen=True, eq=False)
class Sketch:
    """Steps that are proved anew for each set of decisions; `text` says what distinguishes it from other sketches."""

    trace: Trace
    text: str

    @classmethod
    def of(cls, sch: Schedule, text: str) -> Sketch:
        """The sketch that a schedule is one instance of."""
        return cls(Trace(sch.trace.insts, dict(sch.trace.decisions)), text)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        return samples_of(self.trace)

    def draw(self, random: np.random.Generator, count: int) -> Ints:
        """Rows of decisions at random, (count, samples): for each sample a row of its table."""
        if not self.samples:
            return np.zeros((1, 0), dtype=np.int64)
        return np.stack([sample.draw(random, count) for sample in self.samples], axis=1)

    def decisions(self, rows: Sequence[int] | Ints) -> tuple[object, ...]:
        """A row of `draw` as plain data, lists as tuples."""
        made = [sample.decision(int(row)) for sample, row in zip(self.samples, rows, strict=True)]
        return tuple([tuple(one) if isinstance(one, list) else one for one in made])

    def rows(self, decisions: Sequence[object]) -> Ints | None:
        """The row that decisions are; None where a table lacks one."""
        found = [sample.row(one) for sample, one in zip(self.samples, decisions, strict=True)]
        return None if None in found else np.asarray(found, dtype=np.int64)

    def trace_with(self, decisions: Sequence[object]) -> Trace:
        """The steps with these decisions."""
        trace = self.trace.copy()
        for sample, decision in zip(self.samples, decisions, strict=True):
            trace.decisions[sample.position] = list(decision) if isinstance(decision, (list, tuple)) else decision
        return trace
