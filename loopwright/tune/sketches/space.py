"""SketchSpace: schedules of a task that no rule had to know: sketches, and decisions for their samples.

    space = SketchSpace(task)
    rows = space.sample(64, random)                 drawn and scored in bulk, nothing is built
    candidate = space.candidate(rows[0])            the decisions as plain data
    schedule = space.schedule(candidate)            its steps, done and proved
    others = space.mutate(rows, random)             one decision of each changed

A row has the number of a sketch first, then a position in the table of each of its samples, and zeros to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from loopwright.autosched.machine import Machine
from loopwright.schedule import Schedule
from loopwright.tune.candidate import Candidate
from loopwright.tune.measure.children import each_child
from loopwright.tune.measure.failure import Failure
from loopwright.tune.measure.limits import Limits
from loopwright.tune.sketches.errors import RejectedByPostproc
from loopwright.tune.sketches.features import NAMES, features_of
from loopwright.tune.sketches.generator import PostOrderApply
from loopwright.tune.sketches.mutators import llvm_mutators
from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.postprocs import llvm_postprocs
from loopwright.tune.sketches.postprocs.postproc import Postproc
from loopwright.tune.sketches.rules import llvm_rules
from loopwright.tune.sketches.rules.rule import ScheduleRule
from loopwright.tune.sketches.sketch import Sketch
from loopwright.tune.space import Batch
from loopwright.tune.space.space import Integers
from loopwright.tune.task import Task

_PATIENCE: Final = 120.0  # seconds for all sketches
_GIVES_WAY: Final = 5  # niceness of who makes sketches: they are needed later than what is built and measured
_POOL: Final = 4096  # rows that are drawn and scored for one sample
_TEMPERATURE: Final = 0.15  # a candidate that should take 15 % longer is chosen 1/e as often


class _Rejected(Exception):
    """By a postproc. It is no error of a step, after which a replay would try the steps again, one proof at a time."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class SketchSpace:
    """The rules make sketches, the postprocs finish their instances, the mutators change decisions."""

    name = "sketches"

    def __init__(
        self,
        task: Task,
        rules: Sequence[ScheduleRule] | None = None,
        postprocs: Sequence[Postproc] | None = None,
        mutators: Sequence[tuple[Mutator, float]] | None = None,
    ) -> None:
        self.task = task
        self.machine = Machine.of(task.target)
        self.rules = list(llvm_rules() if rules is None else rules)
        self.postprocs = [one.on(self.machine) for one in (llvm_postprocs() if postprocs is None else postprocs)]
        self._coming: Iterator[tuple[int, Any]] | None = None
        self.mutators = [(one.on(self.machine), share) for one, share in (mutators or llvm_mutators())]

    def prepare(self) -> None:
        """Begin to make sketches, in a process of its own: other candidates are measured meanwhile.

        Rules of users may tell more than sketches: they are applied here, when it is their turn.
        """
        if "sketches" not in self.__dict__ and all([_is_own(rule) for rule in self.rules]):
            limits = Limits(_PATIENCE, nice=_GIVES_WAY)
            self._coming = each_child([lambda _: self._generate()], limits, "sketches")

    @cached_property
    def sketches(self) -> Sequence[Sketch]:
        """What the rules make of the task."""
        coming, self._coming = self._coming, None
        for _, result in coming or ():
            if not isinstance(result, Failure):
                return list(result)
        return self._generate()

    def _generate(self) -> list[Sketch]:
        return PostOrderApply(self.rules).generate(self.task.mod, self.machine)

    @property
    def size(self) -> float:
        return float(sum([np.prod([float(len(one.table)) for one in sketch.samples]) for sketch in self.sketches]))

    @cached_property
    def _width(self) -> int:
        return 1 + max([len(sketch.samples) for sketch in self.sketches])

    def first(self) -> Integers:
        """The best of a few thousand by the formulas."""
        return self._first.copy()

    @cached_property
    def _first(self) -> Integers:
        pool = self._drawn(_POOL, np.random.default_rng(0))
        return pool[int(self.describe(pool).prior.argmin())]

    def openings(self) -> Integers:
        """None: what is drawn is of all kinds."""
        return np.empty((0, self._width), dtype=np.int64)

    def sample(self, count: int, random: np.random.Generator) -> Integers:
        pool = self._drawn(max(_POOL, 8 * count), random)
        pool = np.unique(pool, axis=0)
        prior = self.describe(pool).prior
        # Gumbel's trick: the largest of log-chances with noise are a draw without replacement.
        keys = -(prior - prior.min()) / _TEMPERATURE + random.gumbel(size=len(pool))
        chosen = pool[np.argsort(-keys)[:count]]
        missing = count - len(chosen)
        return chosen if missing <= 0 else np.concatenate([chosen, chosen[random.integers(0, len(chosen), missing)]])

    def _drawn(self, count: int, random: np.random.Generator) -> Integers:
        """Rows at random: sketches alike, and in each the decisions alike."""
        rows = np.zeros((count, self._width), dtype=np.int64)
        rows[:, 0] = random.integers(0, len(self.sketches), count)
        for index, sketch in enumerate(self.sketches):
            own = np.flatnonzero(rows[:, 0] == index)
            rows[own, 1 : 1 + len(sketch.samples)] = sketch.draw(random, len(own))
        return rows

    def mutate(self, rows: Integers, random: np.random.Generator) -> Integers:
        """For each row another one, by a mutator drawn by its probability; rows that none can change stay."""
        if not len(rows):
            return rows
        # The least of exponential numbers, each divided by its share, is drawn by its share.
        shares = np.asarray([share for _, share in self.mutators])
        orders = (random.standard_exponential((len(rows), len(shares))) / shares).argsort(axis=1)
        return np.stack([self._mutated(row, order, random) for row, order in zip(rows, orders.tolist(), strict=True)])

    def _mutated(self, row: Integers, order: Sequence[int], random: np.random.Generator) -> Integers:
        """The row changed by the first of the mutators that can."""
        sketch = self.sketches[int(row[0])]
        used = 1 + len(sketch.samples)
        for which in order:
            changed = self.mutators[which][0].apply(sketch, row[1:used], random)
            if changed is not None:
                result = row.copy()
                result[1:used] = changed
                return result
        return row

    def describe(self, rows: Integers) -> Batch:
        features = np.zeros((len(rows), len(NAMES)))
        prior = np.zeros(len(rows))
        for index in np.unique(rows[:, 0]):
            sketch = self.sketches[int(index)]
            own = np.flatnonzero(rows[:, 0] == index)
            cycles, features[own] = features_of(sketch, rows[own, 1 : 1 + len(sketch.samples)], self.machine)
            prior[own] = np.log(np.maximum(cycles, 1.0))
        return Batch(rows, features, NAMES, prior)

    def candidate(self, row: Integers) -> Candidate:
        sketch = self.sketches[int(row[0])]
        return Candidate(self.name, (int(row[0]), *sketch.decisions(row[1 : 1 + len(sketch.samples)])))

    def row(self, candidate: Candidate) -> Integers:
        index, *decisions = candidate.choices
        index = min(int(index), len(self.sketches) - 1)
        sketch = self.sketches[index]
        result = np.zeros(self._width, dtype=np.int64)
        result[0] = index
        if len(decisions) == len(sketch.samples):
            result[1 : 1 + len(decisions)] = sketch.row(decisions)
        return result

    def schedule(self, candidate: Candidate) -> Schedule:
        """The schedule, proved. Raises ScheduleError where a step is refused for these sizes."""
        try:
            return self._proved(candidate)
        except _Rejected as rejection:
            raise RejectedByPostproc(rejection.name) from None

    def _proved(self, candidate: Candidate) -> Schedule:
        index, *decisions = candidate.choices
        trace = self.sketches[int(index)].trace_with(decisions)
        sch = Schedule(self.task.mod, seed=1, error_render_level="none")

        def steps() -> None:
            trace.apply_to_schedule(sch)
            sch.enter_postproc()
            for postproc in self.postprocs:
                if not postproc.apply(sch):
                    raise _Rejected(postproc.name)

        sch.replay(steps)
        return sch

    def describe_choice(self, candidate: Candidate) -> str:
        """A candidate in words."""
        index, *decisions = candidate.choices
        return f"{self.sketches[int(index)].text} · {_numbers(decisions)}"


def _numbers(decisions: Sequence[Any]) -> str:
    return " ".join(["×".join(map(str, one)) if isinstance(one, (tuple, list)) else str(one) for one in decisions])


def _is_own(rule: ScheduleRule) -> bool:
    return type(rule).__module__.startswith("loopwright.")
