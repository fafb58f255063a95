"""tune_tir and compile_tir: a program's functions are searched; the best schedule of each is taken from a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopwright.ir import IRModule, PrimFunc
from loopwright.meta_schedule.database import Database
from loopwright.meta_schedule.modules import functions_of, normalized
from loopwright.meta_schedule.tune import tune_tasks
from loopwright.meta_schedule.tune_context import TuneContext
from loopwright.schedule import Schedule
from loopwright.target import Target


def tune_tir(
    mod: IRModule | PrimFunc,
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
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Mapping[str, Any] | None = None,
) -> Database:
    """Search schedules for every function of a program; one task each, by name in alphabetical order.

    `special_space` gives the design spaces of some functions by name; None skips the function.
    """
    target = target if isinstance(target, Target) else Target(target)
    special = dict(special_space or {})
    contexts = []
    for number, (name, function) in enumerate(functions_of(mod).items()):
        chosen = special.get(name, space)
        if chosen is None:
            continue
        contexts.append(
            TuneContext(
                function,
                target=target,
                space_generator=chosen.clone() if hasattr(chosen, "clone") else chosen,
                search_strategy=strategy.clone() if hasattr(strategy, "clone") else strategy,
                task_name=name,
                rand_state=-1 if seed is None else seed + number,
                num_threads=num_tuning_cores,
            )
        )
    return tune_tasks(
        tasks=contexts,
        task_weights=[1.0] * len(contexts),
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


def compile_tir(database: Database, mod: IRModule | PrimFunc, target: Target | str) -> Schedule | None:
    """The fastest schedule of a program that a database knows, proved; None where it knows none."""
    target = target if isinstance(target, Target) else Target(target)
    answer = database.query_schedule(normalized(mod), target, "main")
    assert answer is None or isinstance(answer, Schedule)
    return answer
