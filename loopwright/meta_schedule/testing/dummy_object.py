"""Builders, runners and mutators that only pretend."""

from __future__ import annotations

import random
from collections.abc import Sequence

from loopwright.meta_schedule.builder import BuilderInput, BuilderResult, PyBuilder
from loopwright.meta_schedule.mutator import PyMutator
from loopwright.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerFuture, RunnerInput, RunnerResult
from loopwright.schedule import Trace


class DummyRunnerFuture(PyRunnerFuture):
    """Times by chance."""

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult([random.uniform(5, 30) for _ in range(random.randint(1, 10))], None)


class DummyBuilder(PyBuilder):
    """Says that everything was built."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        return [BuilderResult("nothing", None) for _ in build_inputs]


class DummyRunner(PyRunner):
    """Says that everything ran."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [DummyRunnerFuture() for _ in runner_inputs]


class DummyMutator(PyMutator):
    """Leaves all decisions open."""

    def apply(self, trace: Trace) -> Trace | None:
        return Trace(trace.insts, {})
