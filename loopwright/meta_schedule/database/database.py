"""Database: workloads and records, under the names of meta_schedule.

    with database:                                   what it knows comes before the rules in builds
        relay.build(mod, target)
    database.query(mod, target, kind="schedule")     the best schedule, proved, or None

`Database.create` gives "json", "memory", "union", "ordered_union" and, from a function, "schedule_fn"; a database of
`loopwright.tune` (a file of SQLite, PostgreSQL) is one too: `Database.create("tune", "tune.db")`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from loopwright.autosched.known import Known, known_schedules, set_known_schedules
from loopwright.ir import IRModule, PrimFunc
from loopwright.meta_schedule.database.record import TuningRecord, Workload
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.meta_schedule.modules import normalized
from loopwright.schedule import Schedule
from loopwright.target import Target
from loopwright.tune.database.json_files import largest_winograd

_entered: ContextVar[tuple[tuple[Database, Any], ...]] = ContextVar("loopwright_ms_databases", default=())


class Database(Part):
    """Where records are kept. Derive from `PyDatabase` to keep them elsewhere."""

    DatabaseType: ClassVar[Any] = object
    kinds: ClassVar[dict[str, Callable[..., Database]]] = {}

    def has_workload(self, mod: IRModule) -> bool:
        """Whether there are records of the program, or may be."""
        raise _undefined(self, "has_workload")

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of the program, which is added where it is new."""
        raise _undefined(self, "commit_workload")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        raise _undefined(self, "commit_tuning_record")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The records with the shortest times on average; failures are not among them."""
        raise _undefined(self, "get_top_k")

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order they came."""
        raise _undefined(self, "get_all_tuning_records")

    def __len__(self) -> int:
        raise _undefined(self, "__len__")

    def __bool__(self) -> bool:
        return True  # also without records

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str = "main") -> TuningRecord | None:
        """The best record of a program."""
        if not self.has_workload(mod):
            return None
        records = self.get_top_k(self.commit_workload(mod), 1)
        return records[0] if records else None

    def query_schedule(self, mod: IRModule, target: Target, workload_name: str = "main") -> Schedule | None:
        """The best schedule of a program, proved."""
        record = self.query_tuning_record(mod, target, workload_name)
        return None if record is None else record.schedule()

    def query_ir_module(self, mod: IRModule, target: Target, workload_name: str = "main") -> IRModule | None:
        """The program as the best schedule has it."""
        sch = self.query_schedule(mod, target, workload_name)
        return None if sch is None else sch.mod

    def query(
        self, mod: IRModule, target: Target, *, workload_name: str = "main", kind: str = "schedule"
    ) -> Schedule | IRModule | TuningRecord | None:
        """The best "schedule", "record" or "ir_module" of a program; None where there is none."""
        questions: dict[str, Callable[..., Any]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        if kind not in questions:
            raise UnknownKind("kind of answer", kind, list(questions))
        return questions[kind](mod, target, workload_name)

    def dump_pruned(self, destination: Database) -> None:
        """Give the best record of every workload to another database."""
        seen: list[Workload] = []
        for record in self.get_all_tuning_records():
            if not any([record.workload is one for one in seen]):
                seen.append(record.workload)
                for best in self.get_top_k(record.workload, 1):
                    workload = destination.commit_workload(record.workload.mod)
                    target, infos = best.target, best.args_info
                    kept = TuningRecord(best.trace, workload, best.run_secs, target, infos)
                    destination.commit_tuning_record(kept)

    def __enter__(self) -> Self:
        """Make it the current database: programs built inside take what it knows."""
        _entered.set((*_entered.get(), (self, known_schedules())))
        set_known_schedules(RecordedSchedules(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered = _entered.get()
        set_known_schedules(entered[-1][1])
        _entered.set(entered[:-1])

    @staticmethod
    def current() -> Database | None:
        """The database of the innermost `with`; None outside of all."""
        entered = _entered.get()
        return entered[-1][0] if entered else None

    @staticmethod
    def create(kind: Any = "json", *args: Any, **kwargs: Any) -> Database:
        """A database of a kind; a function of a schedule makes one that knows what the function does."""
        if isinstance(kind, Database):
            return kind
        if callable(kind):
            return Database.kinds["schedule_fn"](kind, *args, **kwargs)
        if hasattr(kind, "add_workload"):  # one of loopwright.tune
            return Database.kinds["tune"](kind, *args, **kwargs)
        if kind not in Database.kinds:
            raise UnknownKind("database", kind, list(Database.kinds))
        return Database.kinds[kind](*args, **kwargs)


create = Database.create


class PyDatabase(Database):
    """What databases of the user's derive from."""


class RecordedSchedules:
    """What a database knows, as a source of schedules that stands before the rules."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def find(self, function: PrimFunc, target: Target, winograd: int) -> Known | None:
        for mod in (normalized(function), IRModule({"main": function})):  # as tune_tir knows it, or a module
            record = self.database.query_tuning_record(mod, target, "main")
            if record is not None and largest_winograd(record.trace_json) <= winograd:
                return Known("the fastest schedule that was measured", trace=record.trace_json)
        return None

    def key(self, function: PrimFunc, target: Target, winograd: int, count: int = 1) -> str:
        known = self.find(function, target, winograd)
        if known is None:
            return ""
        return f"known={hashlib.blake2b(json.dumps(known.trace).encode(), digest_size=16).hexdigest()}"


def best_of(records: list[TuningRecord], count: int) -> list[TuningRecord]:
    """The valid ones with the shortest times."""
    return sorted([record for record in records if record.is_valid], key=lambda record: record.mean)[:count]


def folder_paths(work_dir: str | Path | None) -> tuple[Path, Path]:
    """The two files of a folder."""
    folder = Path(work_dir or ".")
    return folder / "database_workload.json", folder / "database_tuning_record.json"


def _undefined(database: Database, method: str) -> MethodNotDefined:
    return MethodNotDefined(f"{type(database).__name__}'s {method} is not defined")
