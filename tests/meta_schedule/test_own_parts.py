"""Classes of the user's in place of parts of the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import meta_schedule as ms
from loopwright.meta_schedule.testing.dummy_object import DummyBuilder, DummyRunner
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
