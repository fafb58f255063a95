"""Processes that write at once, that are forked, and that are killed: nothing is lost that was said to be stored."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from loopwright.tune import Record
from loopwright.tune.database import Database, MemoryDatabase, SqliteDatabase
from tests.campaign import programs
from tests.tune.database.conftest import opener
from tests.tune.database.forks import in_child, status_of
from tests.tune.database.samples import CPU, TRACE, record, task

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")

BATCH = 7  # records of one transaction
KILLS = programs(6, 50)
LONGEST = 0.08  # seconds that a process lives: some die while they open the file, some after a dozen transactions


@pytest.fixture(params=("sqlite", "postgres"))
def reopen(request, tmp_path):
    """Opens the same database each time."""
    return opener(request.param, tmp_path, request)


def write(path: Path, generation: int, acknowledged: int) -> None:
    """Store batches for ever, and say after each that it is stored."""
    database = SqliteDatabase(path)
    for batch in range(10**6):
        size = BATCH if batch % 2 else 1
        database.add_all(
            [Record("k", CPU, TRACE, (1.0,), seed=generation, choices=(batch, item)) for item in range(size)]
        )
        os.write(acknowledged, b"%d\n" % batch)


@pytest.mark.parametrize("is_new", [False, True], ids=["one file", "a new file each time"])
def test_a_killed_process_loses_at_most_what_it_was_writing(tmp_path, is_new):
    rng = random.Random(0)
    stored_before: set[tuple[int, int]] = set()
    for generation in range(KILLS):
        path = tmp_path / (f"{generation}.db" if is_new else "tune.db")
        source, target = os.pipe()
        child = in_child(lambda: write(path, generation, target))  # noqa: B023
        os.close(target)
        time.sleep(rng.random() * LONGEST)
        os.kill(child, signal.SIGKILL)
        assert status_of(child) == -signal.SIGKILL
        with os.fdopen(source, "rb") as told:
            acknowledged = {(generation, int(line)) for line in told.read().split()}

        database = SqliteDatabase(path)
        assert database.check() == []
        sizes = Counter([(one.seed, one.choices[0]) for one in database.records()])
        assert all([size == (BATCH if batch % 2 else 1) for (_, batch), size in sizes.items()])  # all of it or nothing
        wanted = acknowledged if is_new else acknowledged | stored_before
        assert wanted <= set(sizes) and len(set(sizes) - wanted) <= 1
        stored_before = set(sizes)
        database.close()
    assert is_new or len(stored_before) > KILLS


def test_two_processes_write_at_once(reopen):
    """Both make the tables, add the same program, some records of their own and some that the other adds too."""
    count = programs(25, 200)

    def work(writer: int) -> None:
        database = reopen()
        for number in range(count):
            database.add_workload(task())
            database.add(record(f"of {writer}", seed=number))
            assert database.add_all([record("of both", seed=number), record("of both", seed=count + number)]) in (
                0,
                1,
                2,
            )
            database.save_model("ridge", CPU, b"%d" % writer)
            assert database.best(f"of {writer}", CPU) is not None
        database.close()

    children = [in_child(lambda: work(writer)) for writer in range(2)]  # noqa: B023
    assert [status_of(child) for child in children] == [0, 0]
    database = reopen()
    assert Counter([one.key for one in database.records()]) == {"of 0": count, "of 1": count, "of both": 2 * count}
    assert len(database.workloads()) == 1
    assert database.load_model("ridge", CPU) in (b"0", b"1")
    database.close()


def test_two_processes_merge_the_same_records_in_different_orders(reopen):
    """Without an order of their own, each would wait for a row of the other."""
    records = [record(seed=number) for number in range(200)]

    def work(order: list[Record]) -> None:
        database = reopen()
        other = MemoryDatabase()
        other.add_all(order)
        database.merge(other)
        database.close()

    reopen().close()
    children = [in_child(lambda: work(order)) for order in (records, records[::-1])]  # noqa: B023
    assert [status_of(child) for child in children] == [0, 0]
    database = reopen()
    assert sorted([one.seed for one in database.records()]) == list(range(200))
    database.close()


def test_a_child_goes_on_after_its_parent_closed(reopen):
    """The last connection that closes a SQLite file deletes its log: the child's must count."""
    database = reopen()
    database.add(record(seed=0))
    source, target = os.pipe()

    def work() -> None:
        database.add(record(seed=1))
        os.read(source, 1)
        for seed in range(2, 6):
            database.add(record(seed=seed))
        database.close()

    child = in_child(work)
    database.add(record(seed=6))
    database.close()
    os.write(target, b"x")
    assert status_of(child) == 0
    again = reopen()
    assert sorted([one.seed for one in again.records()]) == list(range(7))
    again.close()


def test_a_fork_while_another_thread_writes(reopen):
    database = reopen()
    is_over = threading.Event()

    def keep_writing() -> None:
        for seed in range(10**6):
            if is_over.is_set():
                break
            database.add(record("thread", seed=seed))
            time.sleep(0.001)

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        for seed in range(5):
            assert status_of(in_child(lambda: database.add(record("child", seed=seed)))) == 0  # noqa: B023
    finally:
        is_over.set()
        thread.join()
    assert len(database.records("child")) == 5
    seeds = [one.seed for one in database.records("thread")]
    assert seeds == list(range(len(seeds)))
    database.close()


def test_a_forked_memory_database_is_a_copy():
    database: Database = MemoryDatabase()
    database.add(record(seed=1))

    def work() -> None:
        database.add(record(seed=2))
        assert len(database.records()) == 2

    assert status_of(in_child(work)) == 0
    assert len(database.records()) == 1
