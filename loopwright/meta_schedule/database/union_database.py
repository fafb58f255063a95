"""Databases made of others: the best of all, or the first that knows something."""

from __future__ import annotations

from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import Database
from loopwright.meta_schedule.database.record import TuningRecord
from loopwright.target import Target


class UnionDatabase(Database):
    """Answers with the best that any of its databases knows; nothing is added."""

    def __init__(self, *databases: Database) -> None:
        self.databases = list(databases)

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str = "main") -> TuningRecord | None:
        answers = [one.query_tuning_record(mod, target, workload_name) for one in self.databases]
        return min([one for one in answers if one is not None], key=lambda one: one.mean, default=None)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return [record for database in self.databases for record in database.get_all_tuning_records()]

    def has_workload(self, mod: IRModule) -> bool:
        return any([database.has_workload(mod) for database in self.databases])

    def __len__(self) -> int:
        return sum([len(database) for database in self.databases])


class OrderedUnionDatabase(UnionDatabase):
    """Answers with what the first of its databases says that knows the program."""

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str = "main") -> TuningRecord | None:
        for database in self.databases:
            record = database.query_tuning_record(mod, target, workload_name)
            if record is not None:
                return record
        return None
