"""`loopwright db`: what a database of tuning records holds, for people and as JSON."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from loopwright.cli.db import settings_of, trace_lines
from loopwright.tune import Budget, Record, Session, open_database
from loopwright.tune.candidate import RULES
from tests.tune.simulated import TARGET, Simulated, gemm_task, quick_spaces

TASK = gemm_task(49)
TILES = (("0.tiles", '{"mr": 4, "turned": 0}'),)
TRACE = [
    [["GetBlock", [], ["C", "main"], ["b0"]], ["SampleCategorical", [], [[1, 2], [0.5, 0.5]], ["v1"]]],
    [[1, 1]],
]


def record(seconds: float = 0.0, error: str = "", choices: tuple = (), when: float = 1.0, **settings: object) -> Record:
    samples = (seconds,) if seconds else ()
    every = {"threads": 1, "cache": "warm", **settings}
    versions = {"loopwright": "0.1.0"}
    return Record(
        TASK.key,
        TASK.fingerprint,
        TRACE,
        samples,
        error,
        RULES,
        choices,
        0.01,
        "Linux x86_64",
        versions,
        when,
        0,
        every,
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_database("t.db") as database:
        database.add_workload(TASK)
        database.add_all(
            [
                record(2e-3),
                record(1e-3, choices=TILES, when=2.0),
                record(error="signal: the process was killed by SIGSEGV", choices=TILES, when=3.0),
                record(1.1e-3, choices=TILES, when=4.0, final=True),
            ]
        )
    database.close()


def said(*command: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["db", *command])
    assert result.exit_code == status, result.output
    return result.stdout if status == 0 else result.output


def data(*command: str, status: int = 0):
    return json.loads(said(*command, "--json", status=status))


def test_a_list_has_the_best_and_its_speed_up():
    assert said("list", "-d", "t.db") == (
        "key           program    best    speed-up  records       threads  caches  machine\n"
        f"{TASK.key[:12]}  49×96×200  1.1 ms  1.82 ×    4 (1 failed)  1        warm    Linux x86_64\n"
    )
    (row,) = data("list", "-d", "t.db")
    assert row["rule_seconds"] == 2e-3 and row["seconds"] == 1.1e-3  # that of the last races
    assert (row["records"], row["failures"], row["fingerprint"]) == (4, 1, TASK.fingerprint)


def test_an_empty_database_is_listed():
    open_database("empty.db").close()
    assert said("list", "-d", "empty.db") == "there are no records yet\n"
    assert data("list", "-d", "empty.db") == []


def test_a_program_is_shown_with_its_records_and_the_trace_of_the_best():
    text = said("show", TASK.key[:6], "-d", "t.db")
    assert text.startswith(f"49×96×200  {TASK.key}\n") and "def main(" in text
    assert "Linux x86_64, 1 thread, caches warm" in text
    assert "signal: the process was killed by SIGSEGV" in text and "the rule's own choice" in text
    assert "tiles mr=4 turned=0 (final)" in text
    assert text.endswith('  b0 = get_block("C", "main")\n  v1 = sample_categorical([1, 2], [0.5, 0.5], decision=1)\n')
    found = data("show", TASK.key, "-d", "t.db")
    assert found["settings"][0]["trace"] == TRACE and len(found["settings"][0]["all"]) == 4


def test_records_that_cannot_be_compared_stand_apart():
    others = [
        record(5e-3, threads=8),
        record(4e-3, choices=TILES, when=2.0, threads=8),
        replace(record(1.0), fingerprint="x"),
    ]
    workload = next(iter(open_database("t.db").workloads()))
    found = settings_of([workload], [record(2e-3), *others])
    assert [(one.threads, one.fingerprint == TASK.fingerprint, one.speed_up) for one in found] == [
        (1, True, 1.0),
        (8, True, 1.25),
        (1, False, 1.0),
    ]


def test_the_rule_of_a_setting_is_that_of_the_search_that_found_the_best():
    old, new = record(2e-3, when=1.0), record(3e-3, when=5.0)  # the machine was slower when it was tuned again
    workload = next(iter(open_database("t.db").workloads()))
    (found,) = settings_of([workload], [old, new, record(1.5e-3, choices=TILES, when=6.0, final=True)])
    assert found.rule is new and found.speed_up == 2.0
    (failed,) = settings_of([workload], [record(error="memory: too much")])
    assert failed.best is None and failed.speed_up is None


def test_a_search_is_listed_as_it_ended():
    with open_database("s.db") as database:
        session = Session([TASK], Simulated(), database=database, model="ridge", spaces=quick_spaces)
        session.run(Budget(trials=12))
    (row,) = data("list", "-d", "s.db")
    assert row["speed_up"] == pytest.approx(session.searches[0].speed_up, rel=1e-6)


def test_pruning_keeps_the_best_and_what_it_is_compared_with():
    (before,) = data("list", "-d", "t.db")
    with open_database("t.db") as database:
        database.add(record(1.5e-3, choices=(("0.tiles", '{"mr": 8, "turned": 0}'),), when=2.5))
    assert data("prune", "--keep", "1", "-d", "t.db") == {"removed": 2}
    (row,) = data("list", "-d", "t.db")
    assert row == {**before, "records": 3, "failures": 0}
    assert said("prune", "-d", "t.db") == "removed 0 records\n"


def test_databases_are_merged():
    assert said("merge", "t.db", "-d", "all.db") == "added 4 records\n"
    assert data("merge", "t.db", "-d", "all.db") == {"added": 0}
    assert data("list", "-d", "all.db") == data("list", "-d", "t.db")


def test_records_travel_as_the_files_of_meta_schedule():
    target = str(TARGET)
    assert data("export", "out", "-d", "t.db", "-t", target) == {"records": 4, "folder": "out", "target": target}
    assert sorted(file.name for file in Path("out").iterdir()) == [
        "database_tuning_record.json",
        "database_workload.json",
    ]
    assert data("import", "out", "-d", "new.db") == {"added": 4, "warnings": []}
    with Path("out/database_tuning_record.json").open("a", encoding="utf-8") as file:
        file.write("[0, \n")
    text = said("import", "out", "-d", "new.db")
    assert text.startswith("added 0 records\nwarning: ") and "line 5 is damaged" in text


def test_a_sound_database_is_verified():
    assert said("verify", "-d", "t.db") == "1 program and 4 records read, 0 damaged\n"
    assert data("verify", "-d", "t.db") == {"workloads": 1, "records": 4, "damaged": []}


def test_damage_is_found():
    connection = sqlite3.connect("t.db")
    connection.execute("UPDATE loopwright_records SET body = '{' WHERE id = 1")
    connection.execute("INSERT INTO loopwright_workloads SELECT '00', name, module, created FROM loopwright_workloads")
    connection.execute("UPDATE loopwright_workloads SET key = 'ff' WHERE key <> '00'")
    connection.commit()
    connection.close()
    found = data("verify", "-d", "t.db", status=1)
    assert (found["workloads"], found["records"]) == (2, 3)
    row, first, second, lost = found["damaged"]
    assert "record 1 is damaged" in row
    assert {first, second} == {f"workload {key}: its program has the key {TASK.key}" for key in ("00", "ff")}
    assert lost == f"records of workload {TASK.key}: there is no program of that key"


def test_a_damaged_row_costs_a_line_and_no_more():
    with contextlib.closing(sqlite3.connect("t.db")) as connection:
        connection.execute("UPDATE loopwright_records SET body = '{' WHERE id = 1")
        connection.commit()
    command = [sys.executable, "-m", "loopwright", "db", "list", "-d", "t.db"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr.startswith("warning: the database t.db: record 1 is damaged and is skipped: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["list", "-d", "none.db"], "the database none.db cannot be used: there is no such file"),
        (["merge", "none.db", "-d", "t.db"], "the database none.db cannot be used: there is no such file"),
        (["prune", "-d", "none.db"], "there is no such file"),
        (["show", "zz", "-d", "t.db"], "UnknownWorkload: no program has the key 'zz'"),
        (["import", "none", "-d", "t.db"], "MissingJsonFile: none/database_workload.json cannot be read"),
        (["export", "out", "-d", "t.db", "-t", "lvm"], "unknown target kind 'lvm'"),
        (["verify", "-d", "junk.db"], "DamagedDatabase: the database junk.db is damaged"),
    ],
)
def test_what_cannot_be_done_is_refused(command, message):
    Path("junk.db").write_text("no database " * 1000, encoding="utf-8")
    assert message in said(*command, status=1)
    assert not Path("none.db").exists()


def test_keys_may_be_shortened_where_one_program_has_them():
    with open_database("t.db") as database:
        for rows in range(50, 70):
            database.add_workload(gemm_task(rows))
    assert "the keys of several programs begin with ''" in said("show", "", "-d", "t.db", status=1)
    assert data("show", TASK.key, "-d", "t.db")["name"] == "49×96×200"


def test_what_is_no_trace_is_shown_as_it_is():
    assert trace_lines([]) == [] and trace_lines([[["Half"]], []]) == ['["Half"]']
    assert trace_lines([[["ComputeInline", ["b0"], [], []]]]) == ["compute_inline(b0)"]
