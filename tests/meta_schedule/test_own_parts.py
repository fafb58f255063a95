"""Classes of the user's in place of parts of the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import meta_schedule as ms
from loopwright.meta_schedule.testing.dummy_object import DummyBuilder, DummyRunner
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule
from tests.meta_schedule.programs import gemm


def split_rows(sch: Schedule) -> None:
    row, *_ = sch.get_loops("C")
    sch.split(row, sch.sample_perfect_tile(row, 2))


def test_a_function_is_a_design_space(tmp_path: Any):
    database = ms.tune_tir(
        gemm(), "llvm -num-cores=1", str(tmp_path), 6, num_trials_per_iter=3, space=split_rows, strategy="replay-trace",
        builder=DummyBuilder(), runner=DummyRunner(), cost_model="none",
    )  # fmt: skip
    assert len(database) == 6
    assert ms.compile_tir(database, gemm(), "llvm -num-cores=1") is not None


def test_own_rule_model_and_callback(tmp_path: Any):
    seen: list[int] = []

    @ms.derived_object
    class Rows(ms.schedule_rule.PyScheduleRule):
        def apply(self, sch: Schedule, block: Any) -> list[Schedule]:
            if sch.get(block).name_hint == "C":
                split_rows(sch)
            return [sch]

        def clone(self) -> Rows:
            return Rows()

    @ms.derived_object
    class Flat(ms.cost_model.PyCostModel):
        def update(self, context: Any, candidates: Any, results: Any) -> None:
            seen.append(len(candidates))

        def predict(self, context: Any, candidates: Any) -> np.ndarray:
            return np.ones(len(candidates))

    space = ms.space_generator.PostOrderApply(
        sch_rules=[Rows()], postprocs=[], mutator_probs={ms.mutator.MutateTileSize(): 1.0}
    )
    database = ms.tune_tir(
        gemm(), "llvm -num-cores=1", str(tmp_path), 4, num_trials_per_iter=2, space=space, cost_model=Flat(),
        builder=DummyBuilder(), runner=DummyRunner(), database="memory",
    )  # fmt: skip
    assert sum(seen) == len(database) == 4


def test_a_method_that_is_missing_is_named():
    @ms.derived_object
    class Nothing(ms.task_scheduler.PyTaskScheduler):
        pass

    assert str(Nothing()).startswith("meta_schedule.Nothing(0x")
    with pytest.raises(ValueError, match="next_task_id is not defined"):
        Nothing().next_task_id()


def test_the_profiler_adds_up():
    with ms.Profiler() as profiler, ms.Profiler.timeit("part"):
        pass
    assert set(profiler.get()) == {"part", "Total"}
    assert "part" in profiler.table()


def own_rule(answer: Any) -> Any:
    @ms.derived_object
    class Rule(ms.schedule_rule.PyScheduleRule):
        def apply(self, sch: Schedule, block: Any) -> Any:
            return answer

    return ms.space_generator.PostOrderApply(sch_rules=[Rule()], postprocs=[], mutator_probs={})


def own_mutator(answer: Any) -> Any:
    @ms.derived_object
    class Mutator(ms.mutator.PyMutator):
        def apply(self, trace: Any) -> Any:
            return answer

        def clone(self) -> Mutator:
            return Mutator()

    return ms.space_generator.PostOrderApply(sch_rules=own_rows(), postprocs=[], mutator_probs={Mutator(): 1.0})


def own_rows() -> Any:
    @ms.derived_object
    class Rows(ms.schedule_rule.PyScheduleRule):
        def apply(self, sch: Schedule, block: Any) -> list[Schedule]:
            if sch.get(block).name_hint == "C":
                split_rows(sch)
            return [sch]

        def clone(self) -> Rows:
            return Rows()

    return [Rows()]


def own_model(answer: Any) -> Any:
    @ms.derived_object
    class Model(ms.cost_model.PyCostModel):
        def update(self, context: Any, candidates: Any, results: Any) -> None: ...

        def predict(self, context: Any, candidates: Any) -> Any:
            return answer

    return Model()


def own_runner(answer: Any) -> Any:
    @ms.derived_object
    class Runner(ms.runner.PyRunner):
        def run(self, inputs: Any) -> Any:
            return answer

    return Runner()


def own_builder(answer: Any) -> Any:
    @ms.derived_object
    class Builder(ms.builder.PyBuilder):
        def build(self, inputs: Any) -> Any:
            return answer

    return Builder()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"space": lambda sch: 5}, "returned 5, not a schedule, a list of schedules, or None"),
        ({"space": lambda sch: []}, "the space generator made no design space"),
        ({"space": own_rule(None)}, r"Rule.apply returned None, not a list of schedules"),
        ({"space": own_rule([])}, "the space generator made no design space"),
        ({"space": own_mutator(5)}, "Mutator.apply returned 5, not a Trace, or None"),
        ({"cost_model": own_model(None)}, r"Model.predict returned None, not \d+ numbers, one for each candidate"),
        ({"cost_model": own_model([])}, r"Model.predict returned \[\], not \d+ numbers"),
        ({"runner": own_runner(None)}, "Runner.run returned None, not a list of 2 RunnerFutures, one for each input"),
        ({"runner": own_runner([])}, r"Runner.run returned \[\], not a list of 2 RunnerFutures"),
        ({"builder": own_builder([])}, r"Builder.build returned \[\], not a list of 2 BuilderResults"),
    ],
)  # fmt: skip
def test_what_a_part_of_the_user_s_cannot_return_is_named(parts: dict[str, Any], message: str):
    usual = {"space": split_rows, "builder": DummyBuilder(), "runner": DummyRunner(), "cost_model": "random"}
    with pytest.raises(ValueError, match=message) as caught:
        ms.tune_tir(
            gemm(), "llvm -num-cores=1", "unused", 4, num_trials_per_iter=2, database="memory", **{**usual, **parts}
        )  # fmt: skip
    assert isinstance(caught.value, LoopwrightError)


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_postprocs_that_reject_every_candidate_end_the_search(strategy: str):
    @ms.derived_object
    class Never(ms.postproc.PyPostproc):
        def apply(self, sch: Schedule) -> bool:
            return False

        def clone(self) -> Never:
            return Never()

    space = ms.space_generator.ScheduleFn(split_rows, sch_rules=[], postprocs=[Never()], mutator_probs={})
    database = ms.tune_tir(gemm(), "llvm -num-cores=1", "unused", 4, space=space, strategy=strategy, database="memory")
    assert len(database) == 0
