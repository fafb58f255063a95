"""tune: search schedules for a model or for the programs of a file, and keep what was measured in a database.

    loopwright tune model.onnx --minutes 10
    loopwright compile model.onnx -o model.so --database …          takes what was found

Ctrl-C ends a search as a spent budget does: all that was measured is kept, and the same command goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.autosched.known import Known, KnownSchedules, using
from loopwright.cli.compiled_model import BadOption, Options, compile_model
from loopwright.cli.model_files import ReadModel, is_model_file
from loopwright.runtime.artifact_store import store_folder
from loopwright.runtime.together import write_text

if TYPE_CHECKING:
    from loopwright.cli.compile import Written
    from loopwright.ir import PrimFunc
    from loopwright.target import Target
    from loopwright.tune import Budget, Database, Session, Task
    from loopwright.tune.session import Observer

GO_ON: Final = "interrupted: what was measured is in the database; the same command goes on from there"
INTERRUPTED: Final = 130  # the exit status of a command that was ended with Ctrl-C
_FILE: Final = "tuning.db"
_PROGRAM_MINUTES, _MODEL_MINUTES = 1.0, 10.0  # where neither trials nor minutes are given


@dataclass(frozen=True)
class Wishes:
    """The options of the command that say how to search."""

    trials: int | None = None
    minutes: float | None = None
    target: str = "llvm"
    threads: int | None = None
    cache: str = "auto"
    seed: int = 0
    model: str = "auto"
    strategy: str = "evolutionary"
    scheduler: str = "gain"
    winograd: bool = True


@dataclass(frozen=True)
class Tuning:
    """A search that has ended, and where its records are."""

    file: str
    session: Session
    database: str
    is_default: bool  # the database was not named

    @property
    def is_interrupted(self) -> bool:
        return self.session.is_interrupted


def default_database() -> str:
    """A file in the cache folder, beside the compiled code; its folder is made where there is none."""
    folder = store_folder()
    if folder is None:
        raise BadOption("--database", "(none given)", "there is no cache folder to keep records in", "name a file")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder.parent / _FILE)


def budget_of(wishes: Wishes, is_model: bool) -> Budget:
    """What may be spent, checked; some minutes where nobody says."""
    from loopwright.tune import Budget

    minutes = wishes.minutes
    if minutes is None and wishes.trials is None:
        minutes = _MODEL_MINUTES if is_model else _PROGRAM_MINUTES
    budget = Budget(wishes.trials, minutes)
    budget.check()
    return budget


def check(wishes: Wishes) -> None:
    """Refuse names that do not exist before any work is done."""
    from loopwright.tune.model import cost_model
    from loopwright.tune.scheduler import scheduler
    from loopwright.tune.strategy import strategy

    cost_model(wishes.model, wishes.seed)
    strategy(wishes.strategy)
    scheduler(wishes.scheduler)


def tasks_of_model(model: ReadModel, options: Options) -> list[Task]:
    """The kernels of a model, each with how often it runs."""
    from loopwright.tune.errors import NoTasks
    from loopwright.tune.extract import recording

    with recording() as recorder:
        compile_model(model, options)
    if not recorder.found:
        raise NoTasks("the model has no kernel whose sizes are known; --input-shapes gives sizes to its inputs")
    return recorder.found


def tasks_of_programs(file: str, target: Target) -> list[Task]:
    """The programs of a Python file, or the one that FILE:NAME names."""
    from loopwright.cli.programs import choose, load_file, split_name
    from loopwright.frontends.tuning import tasks_of
    from loopwright.tune.errors import NoTasks

    path, wanted = split_name(file)
    programs = choose(load_file(path), wanted, path)
    tasks, problem = [], None
    for program in programs:
        try:
            found = tasks_of(program.module, target)
        except NoTasks as error:
            problem = error
            continue
        alone = len(found) == 1
        tasks += [replace(task, name=program.name) if alone else task for task in found]
    if problem is not None and not tasks:
        raise problem
    return tasks


def is_model(file: str, model_format: str | None) -> bool:
    """Whether FILE is read as a model; else it is a Python file."""
    return model_format is not None or is_model_file(file)


def search(
    file: str,
    tasks: Sequence[Task],
    budget: Budget,
    wishes: Wishes,
    database: str | None,
    observers: Sequence[Observer] = (),
) -> Tuning:
    """Search until the budget is spent or someone presses Ctrl-C."""
    from loopwright.frontends.tuning import session_of
    from loopwright.tune import open_database

    where = database if database is not None else default_database()
    kept = open_database(where)
    _require_writable(kept)
    session = session_of(
        tasks, kept, wishes.cache, wishes.seed, wishes.model, wishes.strategy, wishes.scheduler, observers
    )
    return Tuning(file, session.run(budget), where, database is None)


def _require_writable(database: Database) -> None:
    """Refuse a database that can only be read: what was measured would be lost."""
    from loopwright.tune.database import ReadOnlyDatabase, SqliteDatabase

    if isinstance(database, SqliteDatabase) and database.is_read_only:
        raise ReadOnlyDatabase(database.where, "there is no permission to write to it")


# --- what becomes of it -----------------------------------------------------------------------------------------------


class Counted:
    """A source of schedules that counts the kernels it was asked about, and those that it knew."""

    def __init__(self, source: KnownSchedules) -> None:
        self.source = source
        self.asked: dict[str, bool] = {}

    def find(self, function: PrimFunc, target: Target, winograd: int) -> Known | None:
        known = self.source.find(function, target, winograd)
        self._note(function, known is not None)
        return known

    def key(self, function: PrimFunc, target: Target, winograd: int, count: int = 1) -> str:
        key = self.source.key(function, target, winograd, count)
        self._note(function, bool(key))
        return key

    def _note(self, function: PrimFunc, is_known: bool) -> None:
        from loopwright.tune.workload import key_of

        self.asked[key_of(function)] = is_known

    @property
    def known(self) -> int:
        return sum(self.asked.values())


def require_there(database: str) -> None:
    """Refuse a file that does not exist: opened, it would be an empty database."""
    from loopwright.tune.database import DatabaseUnavailable

    if "://" not in database and database != ":memory:" and not Path(database).expanduser().exists():
        raise DatabaseUnavailable(database, "there is no such file", "loopwright tune MODEL --database FILE fills one")


def counted(database: str) -> Counted:
    """What a database that is there already knows; one that is not is an error, not an empty one."""
    from loopwright.tune import open_database
    from loopwright.tune.database.tuned import TunedSchedules

    require_there(database)
    return Counted(TunedSchedules(open_database(database, read_only=True)))


def write_report(path: str, tuning: Tuning) -> None:
    """The search as a page."""
    from loopwright.tune.report import report_html, summary_of

    write_text(path, report_html(summary_of(tuning.session), f"Tuning {Path(tuning.file).name}"))


def compile_tuned(model: ReadModel, options: Options, output: str, database: str) -> Written:
    """The model with what the database knows, as `loopwright compile -o` writes it."""
    from loopwright.cli.compile import compile_to_files, read_output

    with using(counted(database)):
        return compile_to_files(model, options, read_output(output, target=options.target), 0.0)


def as_json(tuning: Tuning, wrote: Sequence[str]) -> str:
    """For programs."""
    from loopwright.tune.report import summary_of

    facts = {"file": tuning.file, "database": tuning.database, **summary_of(tuning.session).as_data()}
    return json.dumps({**facts, "wrote": list(wrote)}, indent=2)


def as_text(tuning: Tuning, wrote: Sequence[str]) -> str:
    """What was found, where it is kept, and what to do with it."""
    from loopwright.tune.report import as_text as summary_text
    from loopwright.tune.report import summary_of

    summary = summary_of(tuning.session, explained=False)
    lines = [summary_text(summary), f"records: {tuning.database}"]
    lines += [f"wrote {', '.join(wrote)}"] if wrote else []
    if tuning.is_interrupted:
        lines.append(GO_ON)
    elif not wrote and summary.speed_up > 1:
        lines.append(f"use them: {_use(tuning)}")
    return "\n".join(lines)


def _use(tuning: Tuning) -> str:
    """What takes the schedules that were found."""
    from loopwright.target import Target

    target = tuning.session.tasks[0].target
    is_usual = str(target) == str(Target("llvm"))
    if is_model_file(tuning.file):
        return f"loopwright compile {tuning.file} -d {tuning.database}" + ("" if is_usual else f' -t "{target}"')
    options = "autosched=True" if is_usual else f'target="{target}", autosched=True'
    return f'with open_database("{tuning.database}"): lw.build(program, {options})'
