"""MemoryDatabase: records that live as long as the object."""

from __future__ import annotations

from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import Database, best_of
from loopwright.meta_schedule.database.module_equality import module_equality
from loopwright.meta_schedule.database.record import TuningRecord, Workload
from loopwright.meta_schedule.modules import as_module


class MemoryDatabase(Database):
    """Lists, with an index of workloads by their hash."""

    def __init__(self, module_equality: str = "structural") -> None:
        self.equality = _equality(module_equality)
        self.records: list[TuningRecord] = []
        self._workloads: dict[int, list[Workload]] = {}

    def has_workload(self, mod: IRModule) -> bool:
        return self.find_workload(mod) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        mod = as_module(mod)
        known = self.find_workload(mod)
        return self.add_workload(Workload(mod, self.equality.hash(mod))) if known is None else known

    def find_workload(self, mod: IRModule) -> Workload | None:
        """The workload that is equal to a program."""
        mod = as_module(mod)
        same = self._workloads.get(self.equality.hash(mod), ())
        return next((one for one in same if self.equality.equal(one.mod, mod)), None)

    def add_workload(self, workload: Workload) -> Workload:
        """Keep a workload that is new."""
        self._workloads.setdefault(workload.shash, []).append(workload)
        return workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self.records.append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        own = [one for one in self.records if one.workload is workload or self._is_same(one.workload, workload)]
        return best_of(own, top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def _is_same(self, first: Workload, second: Workload) -> bool:
        return first.shash == second.shash and self.equality.equal(first.mod, second.mod)


_equality = module_equality
