"""tune: search schedules for a program, or for the kernels of a model, that are faster than those of the rules.

result = lw.tune(program, trials=64, database="tune.db")
print(result)
lw.compile("model.onnx", database="tune.db")            or lw.build(program, autosched=True) inside `with database:`
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, Final

import numpy as np

from loopwright.frontends.compiling import compile as compile_model
from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.annotations import CONSTANT_PARAMS
from loopwright.runtime.errors import user_stack_level
from loopwright.target import Target, describe
from loopwright.te import Tensor, create_prim_func
from loopwright.tune import Budget, Database, Measurer, Session, Task, open_database
from loopwright.tune.database import MemoryDatabase
from loopwright.tune.errors import BadTuneArgument, NoTasks
from loopwright.tune.extract import is_measurable, recording
from loopwright.tune.measure import UnmeasurableTask
from loopwright.tune.model import CostModel, cost_model
from loopwright.tune.own_parts import CheckedModel, CheckedScheduler, CheckedStrategy
from loopwright.tune.result import Tuned
from loopwright.tune.scheduler import Scheduler
from loopwright.tune.scheduler import scheduler as scheduler_named
from loopwright.tune.session import Observer
from loopwright.tune.strategy import Strategy
from loopwright.tune.strategy import strategy as strategy_named

_MINUTES: Final = 1.0  # where nobody says how much time there is


def tune(
    what: object,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    database: Database | str | os.PathLike[str] | None = None,
    target: Target | str | None = None,
    threads: int | None = None,
    cache: str = "auto",
    seed: int = 0,
    winograd: bool | int = True,
    model: CostModel | str = "auto",
    strategy: Strategy | str = "evolutionary",
    scheduler: Scheduler | str = "gain",
    observers: Sequence[Observer] = (),
    **compile_options: Any,
) -> Tuned:
    """Search for `trials` measurements, or for some minutes; one minute where neither is given.

    `what` is a program (tensors of te, a PrimFunc, an IRModule of them) or whatever `lw.compile` takes, whose options
    may follow. `database` is a path, a URL or an open database: what it knows comes first, and all that is measured is
    added. Without it, records live as long as the result. `threads` is how many a kernel runs on (all, by default);
    `cache` is what the caches hold when a call begins: "warm" what the last call left there, "model" nothing in L2, as
    between the kernels of a model, "cold" nothing at all; "auto" is "model" for models and "warm" for programs. The
    same seed, with the same measurements, makes the same choices.
    """
    trials, minutes, seed = _plain(trials), _plain(minutes), _plain(seed)
    chosen = on_threads(target, _plain(threads))
    if isinstance(trials, float) and trials > 0:
        raise BadTuneArgument("trials", trials, "a whole number")
    budget = Budget(trials, _MINUTES if trials is None and minutes is None else minutes)
    budget.check()
    _require("seed", seed, _is_count(seed), "an integer that is not negative")
    _require("winograd", winograd, isinstance(winograd, bool) or _is_count(winograd), "True, False or the largest tile")
    parts = _checked_parts(model, strategy, scheduler, seed)
    watching = isinstance(observers, Iterable) and all([_has(one, "begin", "trial", "end") for one in observers])
    _require("observers", observers, watching, "a list of objects that have begin, trial and end")
    kept = open_kept(database)
    tasks = tasks_of(what, chosen, winograd, compile_options)
    session = session_of(tasks, kept, cache, seed, *parts, observers=list(observers))
    return Tuned(session.run(budget), kept)


def _plain(number: Any) -> Any:
    """A number of numpy as Python's own."""
    return number.item() if isinstance(number, np.generic) else number


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _checked_parts(
    model: object, strategy: object, scheduler: object, seed: int
) -> tuple[CostModel, Strategy, Scheduler]:
    """The parts of a search by their names, or the user's own; refused before a model is compiled for its tasks."""
    kinds: list[tuple[str, object, Callable[[str], Any], Callable[[Any], Any], tuple[str, ...]]] = [
        ("model", model, lambda name: cost_model(name, seed), CheckedModel, ("fit", "predict")),
        ("strategy", strategy, strategy_named, CheckedStrategy, ("propose",)),
        ("scheduler", scheduler, scheduler_named, CheckedScheduler, ("next",)),
    ]
    parts = []
    for kind, given, named, checked, methods in kinds:
        if not isinstance(given, str):
            _require(kind, given, _has(given, *methods), f"a name, or an object that has {' and '.join(methods)}")
        parts.append(named(given) if isinstance(given, str) else checked(given))
    return parts[0], parts[1], parts[2]


def _has(given: object, *methods: str) -> bool:
    return all([callable(getattr(given, method, None)) for method in methods])


def _require(name: str, given: object, is_fine: bool, wanted: str) -> None:
    if not is_fine:
        raise BadTuneArgument(name, given, wanted)


def on_threads(target: Target | str | None, threads: int | None) -> Target:
    """The target that is meant, with that many cores."""
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    return chosen if threads is None else Target({**_settings(chosen), "num-cores": threads})


def session_of(
    tasks: Sequence[Task],
    database: Database,
    cache: str = "auto",
    seed: int = 0,
    model: CostModel | str = "auto",
    strategy: Strategy | str = "evolutionary",
    scheduler: Scheduler | str = "gain",
    observers: Sequence[Observer] = (),
) -> Session:
    """A search for these tasks, measured on as many threads as their target has cores."""
    cores = describe(tasks[0].target).num_cores
    if cache == "auto":
        cache = "model" if any([CONSTANT_PARAMS in task.function.attrs for task in tasks]) else "warm"
    measurer = Measurer(tasks[0].target, threads=cores, cache=cache, seed=seed)
    return Session(
        _measurable(tasks, measurer), measurer, database, seed, model, strategy, scheduler, observers=observers
    )


def _measurable(tasks: Sequence[Task], measurer: Measurer) -> list[Task]:
    """The tasks that can be measured; a warning names the others, and where there are only such, it is an error."""
    found: list[Task] = []
    problems: list[UnmeasurableTask] = []
    for task in tasks:
        try:
            measurer.require_measurable(task.as_called)
        except UnmeasurableTask as error:
            problems.append(error)
        else:
            found.append(task)
    if not found and problems:
        raise problems[0]
    for problem in problems:
        warnings.warn(f"{problem.problem}; it is left out", stacklevel=user_stack_level())
    return found


def tasks_of(
    what: object, target: Target, winograd: bool | int = True, compile_options: Mapping[str, Any] | None = None
) -> list[Task]:
    """The tasks of a program, one a function, or of a model, which is compiled once to see its kernels."""
    functions = _functions(what)
    if functions is not None:
        for option, value in (compile_options or {}).items():
            raise BadTuneArgument(option, value, "an option of a program: those of `compile` are for models")
        return _tasks_of_functions(functions, target)
    known = signature(compile_model).parameters
    for option, value in (compile_options or {}).items():
        _require(option, value, option in known, "an option of `tune` or `compile`")
    with recording() as recorder:
        compile_model(what, target=target, winograd=winograd, **(compile_options or {}))
    if not recorder.found:
        raise NoTasks("the model has no kernel whose sizes are known")
    return recorder.found


def _tasks_of_functions(functions: Mapping[str, PrimFunc], target: Target) -> list[Task]:
    """A task for each distinct program, which weighs as much as there are of it."""
    tasks: dict[str, Task] = {}
    for name, function in functions.items():
        if is_measurable(function):
            task = Task(name, IRModule({name: function}), target)
            known = tasks.get(task.key)
            tasks[task.key] = task if known is None else replace(known, weight=known.weight + 1)
    if not tasks:
        what = "sizes of the program are not known" if functions else "the module has no program"
        raise NoTasks(what, "bind them to numbers: `PrimFunc.specialize`" if functions else None)
    return list(tasks.values())


def open_kept(database: Database | str | os.PathLike[str] | None) -> Database:
    """The database that is meant; one in memory where none is."""
    if database is None:
        return MemoryDatabase()
    if not isinstance(database, (str, os.PathLike)) and not hasattr(database, "add_workload"):
        raise BadTuneArgument("database", database, "a path, a URL or an open database")
    return open_database(os.fspath(database)) if isinstance(database, (str, os.PathLike)) else database


def _functions(what: object) -> dict[str, PrimFunc] | None:
    """The functions of a program; None for a model."""
    if isinstance(what, Tensor):
        what = [what]
    if isinstance(what, (list, tuple)) and what and all(isinstance(item, Tensor) for item in what):
        what = create_prim_func(what)
    if isinstance(what, PrimFunc):
        return {"main": what}
    if isinstance(what, IRModule):
        functions = {name: one for name, one in what.functions_items() if isinstance(one, PrimFunc)}
        return functions if functions or not list(what.functions_items()) else None
    return None


def _settings(target: Target) -> dict[str, Any]:
    return {**target.attrs, "kind": str(target.kind)}
