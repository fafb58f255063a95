"""SketchSpace: schedules of a task that no rule had to know: sketches, and decisions for their samples.

space = SketchSpace()
candidates = space.sample(task, random, 64)         drawn and scored in bulk, nothing is built
schedule = space.instantiate(task, candidates[0])   its steps, done and proved
other = space.mutate(task, candidates[0], random)   one decision changed
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from loopwright.autosched.machine import Machine
from loopwright.schedule import Schedule
from loopwright.tune.candidate import Candidate
from loopwright.tune.sketches.errors import RejectedByPostproc
from loopwright.tune.sketches.generator import PostOrderApply
from loopwright.tune.sketches.mutators import llvm_mutators
from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.postprocs import llvm_postprocs
from loopwright.tune.sketches.postprocs.postproc import Postproc
from loopwright.tune.sketches.rules import llvm_rules
from loopwright.tune.sketches.rules.rule import ScheduleRule
from loopwright.tune.sketches.sketch import Sketch
from loopwright.tune.task import Task

NAME = "sketches"


class SketchSpace:
    """The rules make sketches, the postprocs finish their instances, the mutators change decisions."""

    name = NAME

    def __init__(
        self,
        rules: Sequence[ScheduleRule] | None = None,
        postprocs: Sequence[Postproc] | None = None,
        mutators: Sequence[tuple[Mutator, float]] | None = None,
    ) -> None:
        self.rules = list(llvm_rules() if rules is None else rules)
        self.postprocs = list(llvm_postprocs() if postprocs is None else postprocs)
        self.mutators = list(llvm_mutators() if mutators is None else mutators)
        self._known: dict[tuple[str, str], list[Sketch]] = {}

    def sketches(self, task: Task) -> list[Sketch]:
        """What the rules make of a task; remembered."""
        key = (task.key, task.fingerprint)
        if key not in self._known:
            self._known[key] = PostOrderApply(self.rules).generate(task.mod, Machine.of(task.target))
        return self._known[key]

    def sample(self, task: Task, random: Random, count: int) -> list[Candidate]:
        """`count` candidates at random; sketches alike, and in each the decisions alike."""
        sketches = self.sketches(task)
        draw = np.random.default_rng(random.getrandbits(64))
        which = draw.integers(0, len(sketches), count)
        result = []
        for index, sketch in enumerate(sketches):
            rows = sketch.draw(draw, int((which == index).sum()))
            result += [Candidate(NAME, (index, *sketch.decisions(row))) for row in rows]
        return result

    def instantiate(self, task: Task, candidate: Candidate) -> Schedule:
        """The schedule, proved. Raises ScheduleError where a step is refused for these sizes."""
        index, *decisions = candidate.choices
        assert isinstance(index, int)
        trace = self.sketches(task)[index].trace_with(decisions)
        machine = Machine.of(task.target)
        sch = Schedule(task.mod, seed=1, error_render_level="none")

        def steps() -> None:
            trace.apply_to_schedule(sch)
            sch.enter_postproc()
            for postproc in self.postprocs:
                if not postproc.on(machine).apply(sch):
                    raise RejectedByPostproc(postproc.name)

        sch.replay(steps)
        return sch

    def mutate(self, task: Task, candidate: Candidate, random: Random) -> Candidate | None:
        """A candidate with one decision changed, by a mutator drawn by its probability; None where none applies."""
        index, *decisions = candidate.choices
        assert isinstance(index, int)
        sketch = self.sketches(task)[index]
        mutators = list(self.mutators)
        while mutators:
            chosen = random.choices(range(len(mutators)), [share for _, share in mutators])[0]
            mutator, _ = mutators.pop(chosen)
            changed = mutator.apply(sketch, tuple(decisions), random)
            if changed is not None:
                return Candidate(NAME, (index, *changed))
        return None
