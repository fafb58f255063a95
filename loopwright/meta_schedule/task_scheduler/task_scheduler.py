"""TaskScheduler: rounds of candidates, built, run and reported; subclasses say which task comes next.

This is the loop for parts of the user's own. Where all parts are the usual ones, `session_tuning.py` searches instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from loopwright.meta_schedule.builder import Builder, BuilderInput, BuilderResult
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind, as_many
from loopwright.meta_schedule.measure_callback import MeasureCallback
from loopwright.meta_schedule.runner import Runner, RunnerFuture, RunnerInput, RunnerResult


@dataclass
class TaskRecord:
    """What is known of a task while it is searched."""

    ctx: Any
    task_weight: float = 1.0
    flop: float = 1.0
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    measure_candidates: Sequence[Any] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None
    latency_ms: list[float] = field(default_factory=list)

    @property
    def best_ms(self) -> float:
        """The shortest time so far, or a very long one."""
        return min(self.latency_ms, default=1e9)


class TaskScheduler(Part):
    """Derive from `PyTaskScheduler` and define `next_task_id` for one of yours."""

    TaskSchedulerType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself
    tasks_: list[TaskRecord] = []
    measure_callbacks_: list[MeasureCallback] = []
    database_: Any = None
    cost_model_: Any = None
    remaining_tasks_: int = 0

    def next_task_id(self) -> int:
        """The number of the task whose turn it is; -1 when all are done."""
        raise MethodNotDefined(f"{type(self).__name__}'s next_task_id is not defined")

    def tune(
        self,
        tasks: Sequence[Any],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Builder,
        runner: Runner,
        measure_callbacks: Sequence[MeasureCallback],
        database: Any,
        cost_model: Any,
    ) -> None:
        """Search until `max_trials_global` candidates were sent to be measured, or nothing is left to try."""
        self.tasks_ = [TaskRecord(ctx, float(weight)) for ctx, weight in zip(tasks, task_weights, strict=True)]
        self.measure_callbacks_ = MeasureCallback.create(list(measure_callbacks))
        self.database_, self.cost_model_ = database, cost_model
        self.remaining_tasks_ = len(self.tasks_)
        for task in self.tasks_:
            task.ctx.pre_tuning(
                max_trials=max_trials_per_task,
                num_trials_per_iter=num_trials_per_iter,
                design_spaces=task.ctx.generate_design_space(),
                database=database,
                cost_model=cost_model,
            )
        trials = 0
        while trials < max_trials_global:
            number = self.next_task_id()
            if number == -1:
                break
            task = self.tasks_[number]
            candidates = task.ctx.generate_measure_candidates()
            if candidates is None:
                self.terminate_task(number)
                continue
            trials += len(candidates)
            task.measure_candidates = candidates
            self._send_to_builder(task, builder)
            self._send_to_runner(task, runner)
        for number, task in enumerate(self.tasks_):
            if not task.is_terminated:
                if task.runner_futures is not None:
                    self.join_running_task(number)
                self.terminate_task(number)
            task.ctx.post_tuning()

    def terminate_task(self, task_id: int) -> None:
        """Nothing more is tried for a task."""
        self.tasks_[task_id].is_terminated = True
        self.remaining_tasks_ -= 1

    def touch_task(self, task_id: int) -> None:
        """Take in results that are there."""
        task = self.tasks_[task_id]
        is_running = not task.is_terminated and task.runner_futures is not None
        if is_running and all(future.done() for future in task.runner_futures or ()):
            self.join_running_task(task_id)

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the results of a task, and report them."""
        task = self.tasks_[task_id]
        assert task.runner_futures is not None
        assert task.measure_candidates is not None
        results = [future.result() for future in task.runner_futures]
        task.ctx.notify_runner_results(task.measure_candidates, results)
        for callback in self.measure_callbacks_:
            callback.apply(self, task_id, task.measure_candidates, task.builder_results or [], results)
        for built, result in zip(task.builder_results or [], results, strict=True):
            if result.error_msg is None and result.run_secs:
                task.latency_ms.append(1000.0 * sum(result.run_secs) / len(result.run_secs))
            else:
                task.latency_ms.append(1e9)
                task.build_error_count += built.error_msg is not None
                task.run_error_count += built.error_msg is None
        task.measure_candidates = task.builder_results = task.runner_futures = None
        return results

    def _send_to_builder(self, task: TaskRecord, builder: Builder) -> None:
        inputs = [BuilderInput(one.sch.mod, task.ctx.target) for one in task.measure_candidates or ()]
        results = builder.build(inputs)
        task.builder_results = as_many(builder, ".build", results, len(inputs), "BuilderResults")

    def _send_to_runner(self, task: TaskRecord, runner: Runner) -> None:
        pairs = list(zip(task.measure_candidates or (), task.builder_results or (), strict=True))
        device = str(task.ctx.target.kind)
        good = [(one, built) for one, built in pairs if built.error_msg is None]
        inputs = [RunnerInput(str(built.artifact_path), device, one.args_info or []) for one, built in good]
        futures = runner.run(inputs) if inputs else []
        running = iter(as_many(runner, ".run", futures, len(inputs), "RunnerFutures"))
        task.runner_futures = [
            next(running) if built.error_msg is None else _failed(built.error_msg) for _, built in pairs
        ]

    @staticmethod
    def create(kind: Any = "gradient", *args: Any, **kwargs: Any) -> TaskScheduler:
        """A scheduler of a kind: "gradient" or "round-robin"."""
        if isinstance(kind, TaskScheduler):
            return kind
        if kind not in TaskScheduler.kinds:
            raise UnknownKind("task scheduler", kind, list(TaskScheduler.kinds))
        made: TaskScheduler = TaskScheduler.kinds[kind](*args, **kwargs)
        return made


create = TaskScheduler.create


class PyTaskScheduler(TaskScheduler):
    """What schedulers of the user's derive from."""


def _failed(message: str) -> RunnerFuture:
    return RunnerFuture(lambda: True, lambda: RunnerResult(None, message))
