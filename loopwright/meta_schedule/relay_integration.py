"""The kernels of a model: extract them as tasks, search them, and compile the model with what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright import relay
from loopwright.ir import IRModule
from loopwright.ir.passes import PassContext
from loopwright.meta_schedule.database import Database
from loopwright.meta_schedule.database.module_equality import module_equality as equality_named
from loopwright.meta_schedule.errors import UnknownKind
from loopwright.meta_schedule.modules import normalized
from loopwright.meta_schedule.tune import tune_tasks
from loopwright.meta_schedule.tune_context import TuneContext
from loopwright.target import Target
from loopwright.tune.extract import recording


@dataclass
class ExtractedTask:
    """A kernel of a model; `weight` is how often the model runs it, `dispatched` its program."""

    task_name: str
    mod: IRModule
    target: Target
    dispatched: Sequence[IRModule]
    weight: int


def extract_tasks(
    mod: IRModule | relay.Function,
    target: Target | str,
    params: Mapping[str, Any] | None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    executor: Any = None,
    runtime: Any = None,
    module_equality: str = "structural",
    disabled_pass: Any = None,
    instruments: Any = None,
) -> list[ExtractedTask]:
    """The distinct kernels of a model, the one that runs most often first."""
    chosen = target if isinstance(target, Target) else Target(target)
    with recording() as recorder, _context(opt_level, pass_config, disabled_pass, instruments):
        relay.build(mod, target=chosen, params=dict(params or {}))
    equality = equality_named(module_equality)
    tasks: list[ExtractedTask] = []
    for task in recorder.found:
        program = normalized(task.mod)
        same = [one for one in tasks if equality.equal(one.dispatched[0], program)]
        if same:
            same[0].weight += int(task.weight)
        else:
            tasks.append(ExtractedTask(task.name, program, chosen, [program], int(task.weight)))
    return tasks


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str,
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
) -> tuple[list[TuneContext], list[float]]:
    """A context for each task, and their weights."""
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    contexts = [
        TuneContext(
            task.dispatched[0],
            target=task.target,
            space_generator=space.clone() if hasattr(space, "clone") else space,
            search_strategy=strategy.clone() if hasattr(strategy, "clone") else strategy,
            task_name=task.task_name,
            rand_state=-1 if seed is None else seed + number,
            num_threads=num_tuning_cores,
        )
        for number, task in enumerate(extracted_tasks)
    ]
    return contexts, [float(task.weight) for task in extracted_tasks]


def tune_relay(
    mod: IRModule | relay.Function,
    params: Mapping[str, Any] | None,
    target: Target | str,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    seed: int | None = None,
    module_equality: str = "structural",
    num_tuning_cores: int | str = "physical",
    disabled_pass: Any = None,
    instruments: Any = None,
) -> Database:
    """Search schedules for the kernels of a model."""
    extracted = extract_tasks(
        mod, target, params, module_equality=module_equality, disabled_pass=disabled_pass, instruments=instruments
    )
    tasks, weights = extracted_tasks_to_tune_contexts(extracted, work_dir, space, strategy, num_tuning_cores, seed)
    return tune_tasks(
        tasks=tasks,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
    )


def compile_relay(
    database: Database,
    mod: IRModule | relay.Function,
    target: Target | str,
    params: Mapping[str, Any] | None,
    *,
    backend: str = "graph",
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    executor: Any = None,
    disabled_pass: Any = None,
    runtime: Any = None,
    instruments: Any = None,
) -> Any:
    """The model, built with the schedules that a database knows; kernels that it does not know go by rule."""
    if backend not in ("graph", "vm"):
        raise UnknownKind("backend", backend, ["graph", "vm"])
    chosen = target if isinstance(target, Target) else Target(target)
    with chosen, database, _context(opt_level, pass_config, disabled_pass, instruments):
        if backend == "vm":
            return relay.vm.compile(mod, target=chosen, params=dict(params or {}))
        return relay.build(mod, target=chosen, params=dict(params or {}))


def _context(opt_level: int, pass_config: Mapping[str, Any] | None, disabled_pass: Any, instruments: Any) -> ExitStack:
    """The settings that passes run under; those that only say that meta_schedule is used are not needed here."""
    used = {key: value for key, value in (pass_config or {}).items() if not key.startswith("relay.backend.")}
    stack = ExitStack()
    stack.enter_context(
        PassContext(
            opt_level=opt_level,
            config=used,
            disabled_pass=list(disabled_pass or ()),
            instruments=list(instruments or ()),
        )
    )
    return stack
