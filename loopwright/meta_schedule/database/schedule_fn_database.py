"""ScheduleFnDatabase: answers with what a function does to a schedule."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import Database
from loopwright.meta_schedule.database.record import TuningRecord, Workload
from loopwright.schedule import Schedule
from loopwright.target import Target


class ScheduleFnDatabase(Database):
    """The function schedules a program in place and returns True, or False where it does not know it."""

    def __init__(self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural") -> None:
        self.schedule_fn = schedule_fn

    def query_schedule(self, mod: IRModule, target: Target, workload_name: str = "main") -> Schedule | None:
        sch = Schedule(mod)
        return sch if self.schedule_fn(sch) else None

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str = "main") -> TuningRecord | None:
        sch = self.query_schedule(mod, target, workload_name)
        return None if sch is None else TuningRecord(sch.trace, Workload(mod), [0.0], target)

    def has_workload(self, mod: IRModule) -> bool:
        return self.query_schedule(mod, Target("llvm")) is not None

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return []

    def __len__(self) -> int:
        return 0
