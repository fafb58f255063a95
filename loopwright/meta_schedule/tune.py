"""tune_tasks: search several tasks, by the search of `loopwright.tune` where all parts are the usual ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral, Real
from typing import Any

from loopwright.meta_schedule.builder import Builder
from loopwright.meta_schedule.cost_model import CostModel
from loopwright.meta_schedule.database import Database
from loopwright.meta_schedule.errors import BadTuningArgument, NothingToTune, NotInitialized
from loopwright.meta_schedule.measure_callback import MeasureCallback
from loopwright.meta_schedule.profiler import Profiler
from loopwright.meta_schedule.runner import Runner
from loopwright.meta_schedule.session_tuning import is_usual, tune_in_session
from loopwright.meta_schedule.task_scheduler import TaskScheduler
from loopwright.meta_schedule.tune_context import TuneContext
from loopwright.tune.errors import NothingToSpend


def tune_tasks(
    *,
    tasks: Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    module_equality: str = "structural",
) -> Database:
    """Search until `max_trials_global` candidates were measured; what was measured is in the database.

    With the usual builder, runner, rules and strategy, candidates race the rules' own schedule in interleaved pairs, as
    `lw.tune` has it. Parts of your own are asked as the peer asks them.
    """
    if not tasks:
        raise NothingToTune("the list of tasks is empty")
    if len(tasks) != len(task_weights):
        raise NothingToTune(f"there are {len(tasks)} tasks, and {len(task_weights)} weights")
    if max_trials_per_task is None:
        max_trials_per_task = max_trials_global
    _check_tasks(tasks, task_weights)
    limits = (max_trials_global, max_trials_per_task, num_trials_per_iter)
    for name, count in zip(("max_trials_global", "max_trials_per_task", "num_trials_per_iter"), limits, strict=True):
        if not isinstance(count, Integral) or isinstance(count, bool):
            raise BadTuningArgument(name, count, "a whole number")
        if count < 1:
            raise NothingToSpend(f"{name} is {count}")
    for parts, part in ((CostModel, cost_model), (TaskScheduler, task_scheduler)):
        if isinstance(part, str):
            parts.create(part)  # or it is no name
    kept = _database(database, work_dir, module_equality, tasks)
    usual = [cost_model, measure_callbacks, task_scheduler]
    if is_usual(tasks, builder, runner, usual):
        with Profiler.timeit("Search"):
            return tune_in_session(tasks, task_weights, kept, limits, str(task_scheduler), cost_model)
    scheduler = TaskScheduler.create(task_scheduler)
    scheduler.tune(
        tasks,
        task_weights,
        max_trials_global,
        max_trials_per_task,
        num_trials_per_iter,
        Builder.create(builder),
        Runner.create(runner),
        MeasureCallback.create(measure_callbacks),
        kept,
        CostModel.create(cost_model) if isinstance(cost_model, str) else cost_model,
    )
    return kept


def _check_tasks(tasks: Sequence[TuneContext], weights: Sequence[float]) -> None:
    for task, weight in zip(tasks, weights, strict=True):
        if not hasattr(task, "space_generator"):
            raise BadTuningArgument("a task", task, "a TuneContext")
        for part, given in (("program", task.mod), ("target", task.target)):
            if given is None:
                option = "mod" if part == "program" else part
                raise NotInitialized(f"the context of {task.task_name!r} has no {part}", f"give {option}=")
        if not isinstance(weight, Real) or not 0 < weight < inf:
            raise BadTuningArgument("a weight", weight, "a number above 0")


def _database(given: Any, work_dir: str, equality: str, tasks: Sequence[TuneContext]) -> Database:
    if given == "json":
        return Database.create("json", work_dir=work_dir, module_equality=equality)
    if given == "memory":
        return Database.create("memory", module_equality=equality)
    if hasattr(given, "add_workload") and not isinstance(given, Database):  # one of loopwright.tune
        return Database.create(given, target=tasks[0].target)
    return Database.create(given)
