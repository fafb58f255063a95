"""What a server can do that a file cannot: refuse, restart, and lose its connections."""

from __future__ import annotations

import threading

import pytest

from loopwright.tune.database import (
    DatabaseBusy,
    DatabaseUnavailable,
    DatabaseWarning,
    NewerDatabase,
    ReadOnlyDatabase,
    open_database,
)
from tests.tune.database.samples import CPU, record, seconds, task


def test_a_url_without_a_driver_means_ours(schema):
    database = open_database(schema.replace("+psycopg", ""))
    assert database.url.drivername == "postgresql+psycopg"
    database.add(record())
    assert open_database(schema.replace("postgresql+psycopg", "postgres")).records() == [record()]


def test_a_lost_connection_is_made_again(schema):
    database, other = open_database(schema), open_database(schema)
    for value in (1.0, 2.0, 3.0):
        ((process,),) = database._read("SELECT pg_backend_pid()")
        other._read("SELECT pg_terminate_backend(:process)", process=process)
        database.add(record(seconds=value))
    assert seconds(database.records()) == [1.0, 2.0, 3.0]


def test_a_connection_that_is_lost_while_it_writes(schema):
    database, other = open_database(schema), open_database(schema)
    attempts = []

    def work(execute):
        attempts.append(execute("SELECT pg_backend_pid()")[0][0])
        execute("DELETE FROM loopwright_records")
        if len(attempts) == 1:
            other._read("SELECT pg_terminate_backend(:process)", process=attempts[0])
            execute("SELECT 1")

    database.add(record())
    database._write(work)
    assert len(set(attempts)) == 2
    assert database.records() == []


def test_a_user_who_may_only_read(schema):
    open_database(schema).add(record())
    database = open_database(schema.replace("options=", "options=-cdefault_transaction_read_only%3Don%20"))
    assert database.best("k", CPU) == record()
    with pytest.raises(ReadOnlyDatabase, match="read-only transaction"):
        database.add(record(seconds=2.0))


def test_opened_for_reading(schema):
    with pytest.raises(DatabaseUnavailable, match="it holds no tuning records"):
        open_database(schema, read_only=True)
    open_database(schema).add(record())
    database = open_database(schema, read_only=True)
    assert database.records() == [record()]
    with pytest.raises(ReadOnlyDatabase, match="read_only=True"):
        database.add_workload(task())


def test_tables_of_a_newer_version(schema):
    open_database(schema)._write(lambda execute: execute("INSERT INTO loopwright_format VALUES (7)"))
    with pytest.raises(NewerDatabase, match="has format 7, and this version of Loopwright reads up to format 1"):
        open_database(schema)


def test_a_writer_that_never_ends(schema):
    database, other = open_database(schema, timeout=0.1), open_database(schema)
    is_writing, is_over = threading.Event(), threading.Event()

    def work(execute):
        is_writing.set()
        is_over.wait(30)

    thread = threading.Thread(target=lambda: other._write(work))
    thread.start()
    is_writing.wait(30)
    with pytest.raises(DatabaseBusy, match=r"and was for 0\.1 s"):
        database.add(record())
    assert database.records() == []  # readers do not wait
    is_over.set()
    thread.join()
    database.add(record())
    assert database.records() == [record()]


def test_a_damaged_row_is_skipped_with_a_word(schema):
    database = open_database(schema)
    database.add_all([record(seconds=1.0), record(seconds=2.0)])
    database._write(lambda execute: execute("UPDATE loopwright_records SET body = '{' WHERE seconds = 1"))
    with pytest.warns(DatabaseWarning, match="record 1 is damaged and is skipped"):
        assert database.best("k", CPU).median == 2.0
