"""TuneDatabase: a database of `loopwright.tune` (SQLite, PostgreSQL, memory) under the names of meta_schedule.

database = ms.database.Database.create("tune", "tune.db")
ms.tune_tir(mod, "llvm", "work", 64, database=database)      every trial is in tune.db, with its noise and settings
"""

from __future__ import annotations

import os
import time
from typing import Any

from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import Database, best_of
from loopwright.meta_schedule.database.record import TuningRecord, Workload
from loopwright.meta_schedule.modules import as_module
from loopwright.target import Target
from loopwright.tune import Record, Task, open_database
from loopwright.tune.database import Database as Kept
from loopwright.tune.database.json_files import likely_settings
from loopwright.tune.database.tuned import standing
from loopwright.tune.task import fingerprint
from loopwright.tune.versions import versions


class TuneDatabase(Database):
    """Programs are one workload where they are the same up to names; records are those of a target's CPU."""

    def __init__(
        self,
        database: Kept | str | os.PathLike[str],
        target: Target | str = "llvm",
        module_equality: str = "structural",
    ) -> None:
        is_path = isinstance(database, (str, os.PathLike))
        self.kept: Kept = open_database(os.fspath(database)) if is_path else database  # type: ignore[arg-type,assignment]
        self.target = target if isinstance(target, Target) else Target(target)
        self._workloads: dict[str, Workload] = {}

    def has_workload(self, mod: IRModule) -> bool:
        return self.kept.workload(self._task(mod).key) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        task = self._task(mod)
        self.kept.add_workload(task)
        return self._workload(task.key, mod)

    def commit_tuning_record(self, record: TuningRecord) -> None:
        target = record.target or self.target
        task = Task("main", record.workload.mod, target)
        error = "" if record.is_valid else "it failed where it was measured"
        seconds: Any = tuple([float(one) for one in record.run_secs or () if one > 0]) if record.is_valid else ()
        machine = versions()["machine"]
        self.kept.add(
            Record(
                task.key,
                task.fingerprint,
                record.trace_json,
                seconds,
                error,
                machine=machine,
                versions=versions(),
                time=time.time(),
                settings=likely_settings(task, record.trace_json),
            )
        )

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        task = self._task(workload.mod)
        records = self.kept.top(task.key, task.fingerprint, top_k)
        return best_of([self._record(one, workload) for one in records], top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        found = []
        for record in self.kept.records():
            workload = self._workloads.get(record.key)
            if workload is None:
                kept = self.kept.workload(record.key)
                workload = None if kept is None else self._workload(record.key, kept.mod)
            if workload is not None:
                found.append(self._record(record, workload))
        return found

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str = "main") -> TuningRecord | None:
        task = Task("main", mod, target)
        for records in (
            self.kept.finals(task.key, fingerprint(target)),
            self.kept.top(task.key, fingerprint(target), 16),
        ):
            traced = [one for one in records if one.trace]
            if traced:
                return self._record(standing(traced), self.commit_workload(mod))
        return None

    def __len__(self) -> int:
        return len(self.kept.records())

    def _task(self, mod: IRModule) -> Task:
        return Task("main", as_module(mod), self.target)

    def _workload(self, key: str, mod: IRModule) -> Workload:
        return self._workloads.setdefault(key, Workload(mod, int(key, 16)))

    def _record(self, record: Record, workload: Workload) -> TuningRecord:
        return TuningRecord(record.trace, workload, record.seconds or None, self.target)
