"""The usual callbacks: records are kept, files are removed, the cost model learns."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

from loopwright.meta_schedule.builder import BuilderResult
from loopwright.meta_schedule.database import TuningRecord
from loopwright.meta_schedule.database.record import NO_TIME
from loopwright.meta_schedule.measure_callback.measure_callback import MeasureCallback
from loopwright.meta_schedule.runner import RunnerResult


class AddToDatabase(MeasureCallback):
    """Each candidate becomes a record; those that failed have a time beyond all reason."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        database = task_scheduler.database_
        if database is None:
            return
        task = task_scheduler.tasks_[task_id].ctx
        workload = database.commit_workload(task.mod)
        for candidate, result in zip(measure_candidates, runner_results, strict=True):
            seconds = result.run_secs if result.error_msg is None and result.run_secs else [NO_TIME]
            record = TuningRecord(candidate.sch.trace, workload, seconds, task.target, candidate.args_info)
            database.commit_tuning_record(record)


class RemoveBuildArtifact(MeasureCallback):
    """What a builder made is not needed any more; a temporary folder goes with its file."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        for result in builder_results:
            path = result.artifact_path
            if path is None or not os.path.isfile(path):
                continue
            folder = os.path.dirname(os.path.abspath(path))
            os.remove(path)
            if os.path.dirname(folder) == os.path.abspath(tempfile.gettempdir()) and not os.listdir(folder):
                shutil.rmtree(folder)


class UpdateCostModel(MeasureCallback):
    """The cost model sees what was built and run."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        model = task_scheduler.cost_model_
        if model is None:
            return
        context = task_scheduler.tasks_[task_id].ctx
        triples = zip(measure_candidates, builder_results, runner_results, strict=True)
        seen = [(candidate, result) for candidate, built, result in triples if built.error_msg is None]
        model.update(context, [candidate for candidate, _ in seen], [result for _, result in seen])


MeasureCallback.kinds.update(  # in the order in which they are called by default
    add_to_database=AddToDatabase, remove_build_artifact=RemoveBuildArtifact, update_cost_model=UpdateCostModel
)
