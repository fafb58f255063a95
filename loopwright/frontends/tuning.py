"""tune: search schedules for a program, or for the kernels of a model, that are faster than those of the rules.

result = lw.tune(program, trials=64, database="tune.db")
print(result)
lw.compile("model.onnx", database="tune.db")            or lw.build(program, autosched=True) inside `with database:`
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopwright.frontends.compiling import compile as compile_model
from loopwright.ir import IRModule, PrimFunc
from loopwright.target import Target, describe
from loopwright.te import Tensor, create_prim_func
from loopwright.tune import Budget, Database, Measurer, Session, Task, open_database
from loopwright.tune.database import MemoryDatabase
from loopwright.tune.errors import BadTuneArgument, NoTasks
from loopwright.tune.extract import is_measurable, recording
from loopwright.tune.result import Tuned
from loopwright.tune.session import Observer

_MINUTES: Final = 1.0  # where nobody says how much time there is


def tune(
    what: object,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    database: Database | str | os.PathLike[str] | None = None,
    target: Target | str | None = None,
    threads: int | None = None,
    cache: str = "warm",
    seed: int = 0,
    winograd: bool | int = True,
    model: str = "auto",
    strategy: str = "evolutionary",
    scheduler: str = "gain",
    observers: Sequence[Observer] = (),
    **compile_options: Any,
) -> Tuned:
    """Search for `trials` measurements, or for some minutes; one minute where neither is given.

    `what` is a program (tensors of te, a PrimFunc, an IRModule of them) or whatever `lw.compile` takes, whose options
    may follow. `database` is a path, a URL or an open database: what it knows comes first, and all that is measured is
    added. Without it, records live as long as the result. `threads` is how many a kernel runs on (all, by default);
    `cache="cold"` measures with caches flushed before each call. The same seed, with the same measurements, makes the
    same choices.
    """
    chosen = on_threads(target, threads)
    budget = Budget(trials, _MINUTES if trials is None and minutes is None else minutes)
    budget.check()
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise BadTuneArgument("seed", seed, "an integer that is not negative")
    kept = open_kept(database)
    tasks = tasks_of(what, chosen, winograd, compile_options)
    session = session_of(tasks, kept, cache, seed, model, strategy, scheduler, observers)
    return Tuned(session.run(budget), kept)


def on_threads(target: Target | str | None, threads: int | None) -> Target:
    """The target that is meant, with that many cores."""
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    return chosen if threads is None else Target({**_settings(chosen), "num-cores": threads})


def session_of(
    tasks: Sequence[Task],
    database: Database,
    cache: str = "warm",
    seed: int = 0,
    model: str = "auto",
    strategy: str = "evolutionary",
    scheduler: str = "gain",
    observers: Sequence[Observer] = (),
) -> Session:
    """A search for these tasks, measured on as many threads as their target has cores."""
    cores = describe(tasks[0].target).num_cores
    measurer = Measurer(tasks[0].target, threads=cores, cache=cache, seed=seed)
    return Session(tasks, measurer, database, seed, model, strategy, scheduler, observers=observers)


def tasks_of(
    what: object, target: Target, winograd: bool | int = True, compile_options: Mapping[str, Any] | None = None
) -> list[Task]:
    """The tasks of a program, one a function, or of a model, which is compiled once to see its kernels."""
    functions = _functions(what)
    if functions is not None:
        tasks = [Task(name, IRModule({name: one}), target) for name, one in functions.items() if is_measurable(one)]
        if not tasks:
            raise NoTasks("sizes of the program are not known; bind them with `PrimFunc.specialize`")
        return tasks
    with recording() as recorder:
        compile_model(what, target=target, winograd=winograd, **(compile_options or {}))
    if not recorder.found:
        raise NoTasks("the model has no kernel whose sizes are known")
    return recorder.found


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
        return functions or None
    return None


def _settings(target: Target) -> dict[str, Any]:
    return {**target.attrs, "kind": str(target.kind)}
