"""The file: what may be wrong with it, and what happens then."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.tune.database import (
    DamagedDatabase,
    DatabaseBusy,
    DatabaseFull,
    DatabaseUnavailable,
    DatabaseWarning,
    ForeignDatabase,
    NewerDatabase,
    ReadOnlyDatabase,
    SqliteDatabase,
)
from loopwright.tune.database.rows import short_digest
from tests.tune.database.samples import CPU, record, seconds, task


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """A file with four records and a program."""
    database = SqliteDatabase(path)
    database.add_workload(task())
    database.add_all([record(seconds=value) for value in (1.0, 2.0, 3.0)] + [record("other", 4.0)])
    database.close()
    return path


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def test_the_log_is_written_ahead_and_synchronised(path):
    database = SqliteDatabase(path)
    with database._using() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert database.check() == []


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "what?.db", "#1.db", "bäcker ☃.db", "mode=ro&x.db"])
def test_a_file_may_have_any_name(tmp_path, name):
    database = SqliteDatabase(tmp_path / name)
    database.add(record())
    database.close()
    assert (tmp_path / name).exists() and len(list(tmp_path.iterdir())) == 1
    assert SqliteDatabase(tmp_path / name, read_only=True).records() == [record()]


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_damaged_record_is_skipped_with_a_word(filled):
    change(filled, "UPDATE loopwright_records SET body = substr(body, 1, 40) WHERE id = 1")
    database = SqliteDatabase(filled)
    with pytest.warns(DatabaseWarning, match="tune.db: record 1 is damaged and is skipped: its text is not what was"):
        assert seconds(database.records()) == [2.0, 3.0, 4.0]
    with pytest.warns(DatabaseWarning, match="record 1 "):
        assert database.best("k", CPU).median == 2.0
    with pytest.warns(DatabaseWarning, match="record 1 "):
        assert seconds(database.top("k", CPU, 2)) == [2.0, 3.0]
    with pytest.warns(DatabaseWarning, match="record 1 "):
        assert seconds(database.similar(CPU)) == [4.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert database.best("other", CPU).median == 4.0


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("{", "Expecting property name"),
        ("[" * 10_000, "nests 10,000 levels deep"),
        ("[1, 2]", "it is no record"),
        ("{}", "it has no key"),
        ('{"key": "k", "fingerprint": "cpu", "trace": [[["Split", 1]], []]}', "its trace is no trace"),
        ('{"key": "k", "fingerprint": "cpu", "trace": [], "seconds": [-1]}', "positive number of seconds, not -1"),
        ('{"key": "k", "fingerprint": "cpu", "trace": [], "seconds": [NaN]}', "positive number of seconds, not nan"),
        ('{"key": "k", "fingerprint": "cpu", "trace": [], "versions": "1"}', "its versions is a dict, not '1'"),
    ],
)
def test_what_is_no_record_is_skipped(filled, body, complaint):
    change(filled, "UPDATE loopwright_records SET body = ?, digest = ? WHERE id = 1", body, short_digest(body))
    with pytest.warns(DatabaseWarning, match=f"record 1 is damaged and is skipped: .*{complaint}"):
        assert seconds(SqliteDatabase(filled).records()) == [2.0, 3.0, 4.0]


def test_a_row_of_another_type_is_skipped(filled):
    change(filled, "UPDATE loopwright_records SET body = x'00ff' WHERE id = 1")
    with pytest.warns(DatabaseWarning, match="record 1 is damaged"):
        assert len(SqliteDatabase(filled).records()) == 3


def test_fields_of_another_version_are_no_damage(filled):
    body = '{"colour": "red", "fingerprint": "cpu", "key": "new", "seconds": [2], "trace": []}'
    change(filled, "UPDATE loopwright_records SET body = ?, digest = ? WHERE id = 1", body, short_digest(body))
    first = SqliteDatabase(filled).records()[0]
    assert (first.key, first.seconds, first.settings) == ("new", (2,), {})


@pytest.mark.parametrize("module", ["", "{}", "[[", '{"loopwright": 1, "root": 7, "nodes": []}'])
def test_a_damaged_program_is_skipped_with_a_word(filled, module):
    database = SqliteDatabase(filled)
    database.add_workload(task(9))
    change(filled, "UPDATE loopwright_workloads SET module = ? WHERE key = ?", module, task().key)
    with pytest.warns(DatabaseWarning, match=f"workload {task().key} is damaged and is skipped"):
        assert [workload.key for workload in database.workloads()] == [task(9).key]
    with pytest.warns(DatabaseWarning):
        assert database.workload(task().key) is None
    database.add_workload(task())  # it is tuned again
    assert database.workload(task().key) is not None
    assert [workload.key for workload in database.workloads()] == [task(9).key, task().key]


# --- the file as a whole ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"no database" * 500, b"\x00" * 4096, b"SQLite format 3\x00" + b"\xff" * 5000])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_database_is_refused_and_stays(path, content, read_only):
    path.write_bytes(content)
    with pytest.raises(DamagedDatabase, match=r"tune\.db is damaged: file is not a database"):
        SqliteDatabase(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_file_that_was_cut_off(filled):
    filled.write_bytes(filled.read_bytes()[:-5000])
    with pytest.raises(DamagedDatabase, match="malformed"):
        SqliteDatabase(filled).records()


def test_overwritten_pages_are_found(path):
    database = SqliteDatabase(path)
    database.add_all([record(f"k{number}", 1.0 + number) for number in range(300)])
    database.close()
    content = bytearray(path.read_bytes())
    content[8192:40960] = os.urandom(32768)
    path.write_bytes(content)
    with pytest.raises(DamagedDatabase, match=r"(?s)tune.db is damaged: .*hint: save what is readable"):
        SqliteDatabase(path).records()
    assert SqliteDatabase(path).check()


def test_missing_tables_are_damage(filled):
    change(filled, "DROP TABLE loopwright_records")
    with pytest.raises(DamagedDatabase, match="no such table"):
        SqliteDatabase(filled).records()


@pytest.mark.parametrize("version", [0, 3])
def test_a_file_of_another_program_is_left_alone(path, version):
    change(path, "CREATE TABLE notes (line TEXT)")
    change(path, f"PRAGMA user_version = {version}")
    content = path.read_bytes()
    with pytest.raises(ForeignDatabase, match=r"tune\.db is a database of another program"):
        SqliteDatabase(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_left_alone(filled):
    change(filled, "PRAGMA user_version = 2")
    content = filled.read_bytes()
    with pytest.raises(NewerDatabase, match="has format 2, and this version of Loopwright reads up to format 1"):
        SqliteDatabase(filled)
    assert filled.read_bytes() == content


def test_an_empty_file_becomes_a_database(path):
    path.touch()
    database = SqliteDatabase(path)
    database.add(record())
    assert database.records() == [record()]


def test_where_no_file_can_be(tmp_path):
    with pytest.raises(DatabaseUnavailable, match=r"there is no folder .*missing(?s:.*)hint: make the folder first"):
        SqliteDatabase(tmp_path / "missing" / "tune.db")
    with pytest.raises(DatabaseUnavailable, match="it is a folder"):
        SqliteDatabase(tmp_path)
    with pytest.raises(DatabaseUnavailable, match="there is no such file"):
        SqliteDatabase(tmp_path / "tune.db", read_only=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be removed")
@pytest.mark.parametrize("leave_log", [False, True])
def test_a_file_that_was_removed_is_made_again(filled, leave_log):
    database = SqliteDatabase(filled)
    database.add(record(seconds=8.0))
    for file in [filled] if leave_log else list(filled.parent.iterdir()):
        file.unlink()
    database.add(record(seconds=9.0))
    assert seconds(SqliteDatabase(filled).records()) == seconds(database.records()) == [9.0]
    assert database.check() == []


# --- reading only -----------------------------------------------------------------------------------------------------


def test_a_file_that_is_opened_for_reading(filled):
    database = SqliteDatabase(filled, read_only=True)
    assert database.is_read_only and database.best("k", CPU).median == 1.0
    for write in (
        lambda: database.add(record(seconds=9.0)),
        lambda: database.add_workload(task(9)),
        lambda: database.save_model("ridge", CPU, b""),
        database.prune,
    ):
        with pytest.raises(ReadOnlyDatabase, match=r"tune\.db can only be read: it was opened with read_only=True"):
            write()
    database.add_workload(task())  # there already: nothing is to be written
    assert len(database.records()) == 4


READER = """
import sys
from loopwright.tune import Record
from loopwright.tune.database import ReadOnlyDatabase, SqliteDatabase

for path in sys.argv[2:]:
    database = SqliteDatabase(path)
    found = len(database.records()), database.best("k", sys.argv[1]).median
    try:
        database.add(Record("k", "cpu", []))
    except ReadOnlyDatabase as error:
        print(*found, error.problem)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can look into."""
    folder = Path(tempfile.mkdtemp(prefix="loopwright-public-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", folder], check=True)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_without_permission_to_write_opens_for_reading(public):
    cases = [
        (0o777, 0o444, "there is no permission to write to the file"),
        (0o555, 0o666, "there is no permission to write to its folder"),
        (0o555, 0o444, "there is no permission to write to the file"),
    ]
    paths, owners, expected = [], [], []
    for number, (folder_mode, file_mode, why) in enumerate(cases):
        for is_open in (False, True):  # its owner may be writing, and records are in the log alone
            folder = public / f"{number}-{is_open}"
            folder.mkdir()
            owners.append(SqliteDatabase(folder / "tune.db"))
            owners[-1].add_all([record(seconds=value) for value in (1.0, 2.0)])
            if not is_open:
                owners[-1].close()
            for file in folder.iterdir():
                file.chmod(file_mode)
            folder.chmod(folder_mode)
            paths.append(str(folder / "tune.db"))
            expected.append(f"2 1.0 the database {paths[-1]} can only be read: {why}")
    command = [sys.executable, "-c", READER, CPU, *paths]
    if os.getuid() == 0:  # who may do everything
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv to become another user")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=Path(__file__).parents[3])
    if "Permission denied" in done.stderr or "No module named" in done.stderr:
        pytest.skip("another user cannot run this Python")
    found = done.stdout.splitlines()
    assert len(found) == len(expected), done.stderr
    assert [one[: len(two)] for one, two in zip(found, expected)] == expected
    for owner in owners:
        owner.close()


# --- a full disk, and other writers -----------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing(filled):
    database = SqliteDatabase(filled)
    with database._using() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    big = [record(seconds=9.0, seed=seed, machine="x" * 3000) for seed in range(20)]
    with pytest.raises(DatabaseFull, match=r"(?s)database or disk is full.*hint: make space .* nothing stored before"):
        database.add_all(big)
    assert len(database.records()) == 4 and database.check() == []
    assert database.add_all(big) == 20  # the limit went with the connection
    database.close()
    assert len(SqliteDatabase(filled).records()) == 24


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="root alone can make a small disk")
def test_a_disk_that_is_full(tmp_path):
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], capture_output=True)
    if made.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        database = SqliteDatabase(tmp_path / "tune.db")
        stored = 0
        with pytest.raises(DatabaseFull):
            for seed in range(1000):
                database.add(record(seed=seed, machine="x" * 2000))
                stored += 1
        assert stored > 5 and len(database.records()) == stored
        assert database.check() == []
        with pytest.raises(DatabaseFull):
            database.add(record(seed=9999, machine="x" * 100_000))
        subprocess.run(["mount", "-o", "remount,size=4m", tmp_path], check=True, capture_output=True)
        database.add(record(seed=9999, machine="x" * 100_000))
        assert len(database.records()) == stored + 1
        database.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_another_writer_is_waited_for(filled):
    database = SqliteDatabase(filled)
    other = sqlite3.connect(filled, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def end() -> None:
        time.sleep(0.2)
        other.execute("COMMIT")

    thread = threading.Thread(target=end)
    thread.start()
    database.add(record(seconds=9.0))
    thread.join()
    assert len(database.records()) == 5


def test_a_writer_that_never_ends(filled):
    database = SqliteDatabase(filled, timeout=0.05)
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy, match=r"is locked by another process, and was for 0.05 s"):
        database.add(record(seconds=9.0))
    assert len(database.records()) == 4  # readers do not wait
    assert len(SqliteDatabase(filled, timeout=0.05).records()) == 4
    other.execute("ROLLBACK")
    database.add(record(seconds=9.0))
    assert len(database.records()) == 5


def test_an_interrupted_write_leaves_nothing(filled):
    database = SqliteDatabase(filled)

    def interrupted(execute):
        execute("DELETE FROM loopwright_records")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database._write(interrupted)
    assert len(database.records()) == 4
    database.add(record(seconds=9.0))
    assert len(database.records()) == 5
