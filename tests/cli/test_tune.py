"""`loopwright tune`: programs and models, what it prints, how it ends; nothing is timed here."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli import app, tune_table
from loopwright.cli.tune_table import Lines, LiveTable, status, task_rows, watcher
from loopwright.frontends import tuning
from loopwright.tune import Budget, Session, open_database
from loopwright.tune import session as session_module
from tests.cli.models import NET
from tests.compile_caching import switch_on
from tests.tune.simulated import Simulated, gemm_task, quick_spaces

PROGRAMS = """from loopwright import te

def product(m, n, k):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])

odd = product(20, 64, 24)
small = product(12, 16, 8)
n = te.var("n")
D = te.placeholder((n,), name="D")
open_sizes = te.create_prim_func([D, te.compute((n,), lambda i: D[i] + 1.0, name="E")])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "Measurer", lambda *_, **__: Simulated())
    monkeypatch.setattr(session_module, "default_spaces", quick_spaces)
    Path("mm.py").write_text(PROGRAMS, encoding="utf-8")


def run(*arguments: str, status: int = 0):
    result = CliRunner().invoke(app, ["tune", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_programs_of_a_file_are_tuned_and_kept():
    turns = ("--scheduler", "round-robin")  # else the small one waits for more trials
    result = run("mm.py", "--trials", "10", "--threads", "1", "-d", "t.db", "--report", "page.html", *turns)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("odd ") and lines[1].startswith("small ")  # one with open sizes cannot be measured
    assert "all together: " in lines[2] and "10 trials in" in lines[2]
    assert lines[3:5] == ["records: t.db", "wrote page.html"]
    assert result.stderr.startswith("2 tasks for llvm -keys=cpu -num-cores=1\n")
    assert "odd: by rule " in result.stderr
    with open_database("t.db") as database:
        assert sorted(workload.name for workload in database.workloads()) == ["odd", "small"]
    assert "<title>Tuning mm.py</title>" in Path("page.html").read_text(encoding="utf-8")


def test_one_program_by_its_name_as_json():
    result = run("mm.py:small", "--trials", "3", "-d", "t.db", "--json")
    found = json.loads(result.stdout)
    assert [task["name"] for task in found["tasks"]] == ["small"]
    assert (found["file"], found["database"], found["trials"]) == ("mm.py:small", "t.db", 3)
    assert found["wrote"] == [] and not found["interrupted"]


def test_records_go_into_the_cache_folder_where_no_database_is_named(tmp_path, monkeypatch):
    switch_on(monkeypatch, tmp_path)
    result = run("mm.py:small", "--trials", "1")
    (line,) = re.findall("^records: (.*)$", result.stdout, re.MULTILINE)
    assert Path(line).is_file() and Path(line).name == "tuning.db" and tmp_path in Path(line).parents


def test_a_second_run_goes_on_where_the_first_ended():
    run("mm.py:odd", "--trials", "16", "-d", "t.db")
    with open_database("t.db") as database:
        (workload,) = database.workloads()
        before = database.records(workload.key)
        best = min(before, key=lambda record: record.median)
    found = json.loads(run("mm.py:odd", "--trials", "2", "-d", "t.db", "--json").stdout)
    (task,) = found["tasks"]
    assert best.choices != ()
    assert task["speed_up"] > 1 and task["trials"] == 2  # what is known is the first to race the rule
    with open_database("t.db") as database:
        assert len(database.records(workload.key)) > len(before)


def test_a_model_is_tuned_and_compiled_with_what_was_found():
    Path("net.relay").write_text(NET, encoding="utf-8")
    shapes = ["--input-shapes", "x:[8,4]"]
    run("net.relay", *shapes, "--trials", "10", "--threads", "1", "-d", "m.db", "-q", "--scheduler", "round-robin")
    compiled = ["net.relay", *shapes, "-d", "m.db", "-t", "llvm -num-cores=1", "-o", "net.tar", "--json"]
    facts = json.loads(CliRunner().invoke(app, ["compile", *compiled]).stdout)
    assert facts["asked"] == 1
    with open_database("m.db") as database:
        finals = [record for record in database.records() if record.settings.get("final")]
    assert facts["tuned"] == sum(record.choices != () for record in finals)


def test_a_model_can_be_compiled_afterwards():
    Path("net.relay").write_text(NET.replace("(n, 4)", "(2, 4)"), encoding="utf-8")
    result = run("net.relay", "--trials", "2", "-d", "m.db", "-o", "net.so")
    assert Path("net.so").is_file() and "wrote net.h, net.so, net_main.c" in result.stdout


def test_quiet_prints_nothing():
    result = run("mm.py:small", "--trials", "2", "-d", "t.db", "-q")
    assert (result.stdout, result.stderr) == ("", "")
    result = CliRunner().invoke(app, ["--quiet", "tune", "mm.py:small", "--trials", "2", "-d", "t.db"])
    assert result.stderr == "" and "all together" in result.stdout


class Interrupted(Simulated):
    def race(self, task, incumbent, challenger):
        if len(self.raced) > 6:
            raise KeyboardInterrupt
        return super().race(task, incumbent, challenger)


def test_an_interrupted_search_says_how_to_go_on(monkeypatch):
    monkeypatch.setattr(tuning, "Measurer", lambda *_, **__: Interrupted(failing=0.0))
    result = run("mm.py:odd", "--trials", "50", "-d", "t.db", status=130)
    assert "the same command goes on from there" in result.stdout
    with open_database("t.db") as database:
        assert len(database.records()) >= 3


def test_an_interruption_before_the_search(monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loopwright.cli.tune.tasks_of_programs", interrupt)
    assert "interrupted" in run("mm.py", "--trials", "2", status=130).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.onnx"], "NoSuchModel: nope.onnx does not exist"),
        (["nope.py"], "NoSuchFile: nope.py does not exist"),
        (["mm.py:od"], "NoSuchProgram: mm.py defines no program 'od'"),
        (
            ["mm.py:open_sizes", "--trials", "1"],
            "NoTasks: there is nothing to tune: sizes of the program are not known",
        ),
        (["mm.py", "--trials", "0"], "NothingToSpend: .* 0 is no number above 0"),
        (["mm.py", "--minutes", "-1"], "NothingToSpend: .* -1.0 is no number above 0"),
        (["mm.py", "--strategy", "magic"], "UnknownName: there is no strategy 'magic'"),
        (["mm.py", "--model", "oracle"], "UnknownName: there is no cost model 'oracle'"),
        (["mm.py", "--scheduler", "fair"], "UnknownName: there is no task scheduler 'fair'"),
        (["mm.py", "--target", "lvm"], "unknown target kind 'lvm'"),
        (["mm.py", "--trials", "1", "-d", "no/t.db"], "DatabaseUnavailable: .* there is no folder"),
        (["mm.py", "--trials", "1", "-d", "junk.db"], "DamagedDatabase: the database junk.db is damaged"),
        (["mm.py", "-o", "mm.so"], "BadOption: --output mm.so: it is for models"),
        (["mm.py", "--input-shapes", "x:[1]"], "BadOption: --input-shapes x:.* it is for models"),
        (["mm.py", "--report", "no/page.html"], "the folder no does not exist"),
        (["net.relay", "--trials", "1"], "NoTasks: .* --input-shapes gives sizes"),
        (["net.relay", "-o", "net.zip"], "BadOption: --output net.zip: unknown suffix"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, message):
    Path("junk.db").write_text("no database " * 1000, encoding="utf-8")
    Path("net.relay").write_text(NET, encoding="utf-8")
    assert re.search(message, run(*arguments, status=1).stderr)


def test_a_database_that_can_only_be_read_is_refused(monkeypatch):
    from loopwright.tune.database import SqliteDatabase

    monkeypatch.setattr(SqliteDatabase, "is_read_only", True)  # permissions do not bind everybody
    assert (
        "ReadOnlyDatabase: the database t.db can only be read"
        in run("mm.py", "--trials", "1", "-d", "t.db", status=1).stderr
    )


def test_compile_refuses_a_database_that_is_not_there():
    Path("net.relay").write_text(NET, encoding="utf-8")
    result = CliRunner().invoke(app, ["compile", "net.relay", "-d", "nowhere.db"])
    assert result.exit_code == 1 and "nowhere.db cannot be used: there is no such file" in result.stderr
    assert not Path("nowhere.db").exists()


# --- what is seen meanwhile -------------------------------------------------------------------------------------------


def searched(observer, trials=12, tasks=(49, 64)) -> Session:
    made = [gemm_task(rows, weight=2.0) for rows in tasks]
    session = Session(made, Simulated(), model="ridge", spaces=quick_spaces, observers=[observer], round_size=4)
    return session.run(Budget(trials=trials))


def test_lines_tell_of_tasks_and_of_each_new_best():
    stream = io.StringIO()
    session = searched(Lines(stream, clock=lambda: 0.0))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("2 tasks for llvm ")
    assert "49×96×200: by rule 1.06 ms, called 2 times" in lines
    gains = [line for line in lines if "× the rule, at trial " in line]
    assert len(gains) == sum(trial.is_best and trial.number > 0 for one in session.searches for trial in one.trials)
    assert lines[-1] == status(session) and "12 of 12 trials" in lines[-1]


def test_lines_tell_how_it_goes_where_nothing_is_new():
    stream, ticks = io.StringIO(), iter(range(0, 10_000, 20))
    searched(Lines(stream, clock=lambda: next(ticks)), tasks=(49,))
    assert re.search(r"^49×96×200: 1.* × the rules · \d+ of 12 trials$", stream.getvalue(), re.MULTILINE)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_table_stays_in_one_place_and_goes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LOOPWRIGHT_PROGRESS", raising=False)
    stream = Terminal()
    observer = watcher(stream)
    assert isinstance(observer, LiveTable)
    searched(observer)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "speed-up" in text and "49×96×200" in text and "12 of 12 trials" in text
    assert "\x1b[2K" in stream.getvalue()  # the lines are erased


def test_lines_go_where_nobody_watches(monkeypatch):
    assert isinstance(watcher(io.StringIO()), Lines)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(watcher(Terminal()), Lines)


def test_rows_of_the_table(monkeypatch):
    session = searched(Lines(io.StringIO()), trials=1)
    (begun, (name, share, best, speed, trials, noise)), (waiting, cells) = task_rows(session)
    assert begun is session.searches[0] and waiting is None
    assert (name, share, speed, trials, noise) == ("64×96×200", "100.0%", "1.00 ×", "1", "1.0%")
    assert best == "1.06 ms" and cells == ("49×96×200", "–", "–", "–", "–", "–")
    assert status(session).startswith("1 of 2 tasks: 1.000 × the rules · 1 of 1 trial")
    session.budget = Budget(minutes=2)
    monkeypatch.setattr(Session, "time_left", lambda self: 75.2)
    assert status(session).endswith(" · 1 trial · 1:15 left")
    assert tune_table._cells(session.searches[0], 1.0)[0] == name
