"""The two files of a JSON database: what others left behind costs no record of ours."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from loopwright import meta_schedule as ms
from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import RecordedSchedules
from loopwright.runtime.together import CannotWrite
from loopwright.schedule import Schedule
from loopwright.target import Target
from loopwright.tune.database import DatabaseFull, DatabaseWarning
from tests.meta_schedule.programs import gemm

MODULE = IRModule({"main": gemm()})


def add(database: Any, seconds: float, mod: IRModule = MODULE) -> None:
    workload = database.commit_workload(mod)
    trace = Schedule(mod).trace
    database.commit_tuning_record(ms.database.TuningRecord(trace, workload, [seconds], Target("llvm"), []))


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path: Path):
    add(ms.database.JSONDatabase(work_dir=tmp_path), 1.0)
    path = tmp_path / "database_tuning_record.json"
    path.write_bytes(path.read_bytes()[:-20])  # somebody was killed while writing
    with pytest.warns(DatabaseWarning, match="line 1 is damaged"):
        database = ms.database.JSONDatabase(work_dir=tmp_path)
    add(database, 2.0)
    add(database, 3.0)
    with pytest.warns(DatabaseWarning, match="line 1 is damaged"):
        again = ms.database.JSONDatabase(work_dir=tmp_path)
    assert [record.mean for record in again.get_all_tuning_records()] == [2.0, 3.0]


def test_two_searches_fill_one_folder(tmp_path: Path):
    first, second = ms.database.JSONDatabase(work_dir=tmp_path), ms.database.JSONDatabase(work_dir=tmp_path)
    others = [IRModule({"main": gemm(extent, 8, 8)}) for extent in (8, 16, 24)]
    for database, mod in zip((first, second, first), others, strict=True):
        database.commit_workload(mod)
    for database, mod, seconds in zip(
        (second, first, first), (others[1], others[0], others[2]), (2, 1, 3), strict=True
    ):
        add(database, float(seconds), mod)
    again = ms.database.JSONDatabase(work_dir=tmp_path)
    for number, mod in enumerate(others, 1):
        assert [one.mean for one in again.get_top_k(again.commit_workload(mod), 9)] == [float(number)]


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(CannotWrite, match="taken"):
        ms.database.JSONDatabase(work_dir=tmp_path / "taken")


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    database = ms.database.JSONDatabase(work_dir=tmp_path)
    add(database, 1.0)
    before = (tmp_path / "database_tuning_record.json").read_bytes()

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refuse)
        with pytest.raises(DatabaseFull, match="No space left on device"):
            add(database, 2.0)
    assert (tmp_path / "database_tuning_record.json").read_bytes() == before


def test_a_program_is_its_module():
    database = ms.database.MemoryDatabase()
    add(database, 1.0)
    assert database.has_workload(gemm())
    assert len(database.get_top_k(database.commit_workload(gemm()), 1)) == 1


def test_schedules_that_round_differently_need_permission():
    database = ms.database.MemoryDatabase()
    trace: Any = Schedule(MODULE).trace.as_json()
    trace[0].append(["Winograd", ["b0"], [4], ["b1"]])
    workload = database.commit_workload(MODULE)
    database.commit_tuning_record(ms.database.TuningRecord(trace, workload, [1.0], Target("llvm"), []))
    known = RecordedSchedules(database)
    assert known.find(gemm(), Target("llvm"), 0) is None
    found = known.find(gemm(), Target("llvm"), 4)
    assert found is not None and found.trace == trace
    assert known.key(gemm(), Target("llvm"), 0) == ""


def test_times_that_are_no_numbers_are_failures_in_the_file(tmp_path: Path):
    add(ms.database.JSONDatabase(work_dir=tmp_path), float("nan"))
    assert "NaN" not in (tmp_path / "database_tuning_record.json").read_text()
    (record,) = ms.database.JSONDatabase(work_dir=tmp_path).get_all_tuning_records()
    assert not record.is_valid
