"""What every database does, whatever it is made of."""

from __future__ import annotations

import math
import random
import threading

import numpy as np
import pytest

from loopwright.ir import structural_equal
from loopwright.tune import Record
from loopwright.tune.database import BadRecord, ClosedDatabase, MemoryDatabase, Workload
from tests.campaign import programs
from tests.tune.database.samples import CPU, OTHER_CPU, TRACE, record, seconds, task


def test_workloads_come_back_as_programs(database):
    four, five = task(4), task(5, "other")
    database.add_workload(four)
    database.add_workload(five)
    database.add_workload(task(4, "another_name"))  # the same program
    first, second = sorted(database.workloads(), key=lambda workload: workload.name)
    assert (first.key, first.name, second.key, second.name) == (four.key, "main", five.key, "other")
    assert structural_equal(first.mod, four.mod) and structural_equal(second.mod, five.mod)
    assert database.workload(five.key).name == "other"
    assert database.workload("no such key") is None


def test_a_record_comes_back_as_it_was(database):
    whole = Record(
        "k",
        CPU,
        TRACE,
        (1e-3, 0.1 + 0.2, 5),
        space="rules",
        choices=(("0.tiles", '{"mr": 4}'), (1, (2.5, None)), True),
        noise=0.013,
        machine="a “machine”",
        versions={"loopwright": "0.1"},
        time=1.7e9,
        seed=7,
        settings={"threads": 2, "cache": "warm"},
    )
    database.add(whole)
    database.add(record(seconds=None))
    assert database.records() == [whole, record(seconds=None)]
    hash(database.records()[0].choices)


def test_numbers_of_numpy_are_numbers(database):
    database.add(Record("k", CPU, TRACE, (np.float64(0.5), np.float64(0.25)), choices=(np.int64(3), np.float32(0.5))))
    assert database.records()[0].choices == (3, 0.5)
    assert database.best("k", CPU).seconds == (0.5, 0.25)


def test_best_has_the_lowest_median_and_no_failure(database):
    assert database.best("k", CPU) is None
    database.add(record(seconds=None))
    assert database.best("k", CPU) is None
    for value in (3.0, 1.0, 2.0):
        database.add(record(seconds=value))
    database.add(record("other", 0.1))
    database.add(record(seconds=0.1, fingerprint=OTHER_CPU))
    database.add(Record("k", CPU, TRACE, (0.01,), error="wrong result"))
    assert database.best("k", CPU).median == 1.0
    assert seconds(database.top("k", CPU, 2)) == [1.0, 2.0]
    assert seconds(database.top("k", CPU, 9)) == [1.0, 2.0, 3.0]
    assert database.top("k", CPU, 0) == []


def test_best_of_a_setting(database):
    for value, threads, cache in ((1.0, 2, "warm"), (2.0, 1, "warm"), (3.0, 1, "cold")):
        database.add(record(seconds=value, settings={"threads": threads, "cache": cache}))
    database.add(record(seconds=0.5))  # nobody knows how
    assert database.best("k", CPU).median == 0.5
    assert database.best("k", CPU, threads=2).median == 1.0
    assert database.best("k", CPU, threads=1).median == 2.0
    assert database.best("k", CPU, threads=1, cache="cold").median == 3.0
    assert database.best("k", CPU, threads=8) is None
    assert seconds(database.top("k", CPU, 5, cache="warm")) == [1.0, 2.0]


def test_records_in_the_order_they_came(database):
    for value in (3.0, None, 1.0):
        database.add(record(seconds=value))
    database.add(record("other", 5.0, OTHER_CPU))
    assert seconds(database.records()) == [3.0, math.inf, 1.0, 5.0]
    assert seconds(database.records(failed=False)) == [3.0, 1.0, 5.0]
    assert seconds(database.records("k")) == [3.0, math.inf, 1.0]
    assert seconds(database.records(fingerprint=OTHER_CPU)) == [5.0]
    assert seconds(database.records("k", OTHER_CPU)) == []
    assert seconds(database.records("k", limit=2)) == [math.inf, 1.0]  # the newest
    assert database.records(limit=0) == []


def test_a_record_is_stored_once(database):
    database.add(record())
    database.add(record())
    assert database.add_all([record(), record(seconds=2.0), record(seconds=2.0)]) == 1
    assert seconds(database.records()) == [1.0, 2.0]


def test_similar_has_the_best_of_the_other_workloads(database):
    for key, value in (("a", 4.0), ("a", 1.0), ("a", 2.0), ("b", 3.0), ("c", None), ("k", 0.5)):
        database.add(record(key, value, settings={"threads": 1}))
    database.add(record("d", 0.1, OTHER_CPU))
    assert [(one.key, one.median) for one in database.similar(CPU, "k")] == [("a", 1.0), ("b", 3.0)]
    assert [(one.key, one.median) for one in database.similar(CPU, "k", 2)] == [("a", 1.0), ("a", 2.0), ("b", 3.0)]
    assert [one.key for one in database.similar(CPU)] == ["k", "a", "b"]
    assert [one.key for one in database.similar(CPU, threads=1)] == ["k", "a", "b"]
    assert database.similar(CPU, threads=2) == []


def test_models_are_replaced(database):
    assert database.load_model("ridge", CPU) is None
    database.save_model("ridge", CPU, b"\x00old")
    database.save_model("ridge", CPU, b"\xff\x00new")
    database.save_model("ridge", OTHER_CPU, b"")
    assert database.load_model("ridge", CPU) == b"\xff\x00new"
    assert database.load_model("ridge", OTHER_CPU) == b""
    assert sorted(database.models()) == sorted([("ridge", CPU), ("ridge", OTHER_CPU)])


def test_prune_keeps_the_best(database):
    for key in ("a", "b"):
        for threads in (1, 2):
            for value in (4.0, 1.0, None, 3.0, 2.0):
                database.add(record(key, value, settings={"threads": threads}))
    database.add(record("a", 9.0, OTHER_CPU))
    assert database.prune(2) == 12
    for key in ("a", "b"):
        for threads in (1, 2):
            assert seconds(database.top(key, CPU, 9, threads)) == [1.0, 2.0]
    assert seconds(database.records(fingerprint=OTHER_CPU)) == [9.0]
    assert database.prune(2) == 0
    assert database.prune(0) == 9 and database.records() == []


def test_who_won_the_last_races_is_found_behind_faster_records(database):
    settings = {"threads": 1, "cache": "warm"}
    final = record(seconds=5.0, time=10.0, settings={**settings, "final": True})
    older = record(seconds=2.0, time=9.0, settings={**settings, "final": True})
    named = record(seconds=3.0, time=11.0, settings=settings, choices=('"final":true',))
    database.add_all([final, older, named, *[record(seconds=1 + 1e-3 * n, settings=settings) for n in range(20)]])
    database.add_all([record(seconds=None, settings={**settings, "final": True}), record("other", 0.1)])
    assert database.finals("k", CPU) == [final, older] == database.finals("k", CPU, 1, "warm")
    assert database.finals("k", CPU, 2) == database.finals("k", OTHER_CPU) == []


def test_prune_keeps_what_builds_take_and_are_compared_with(database):
    settings = {"threads": 1, "cache": "warm"}
    final = record(seconds=5.0, time=10.0, settings={**settings, "final": True})
    older = record(seconds=2.0, time=9.0, settings={**settings, "final": True})
    rule = record(seconds=6.0, space="rules", settings=settings)
    best = record(seconds=1.0, space="rules", choices=(("0.tiles", 3),), settings=settings)
    others = [record(seconds=1.5 + n, space="rules", choices=(("0.tiles", n),), settings=settings) for n in range(4)]
    database.add_all([final, older, rule, best, *others])
    assert database.prune(1) == 5
    assert database.records() == [final, rule, best]
    assert database.prune(0) == 3


def test_merge_takes_what_is_new(database):
    other = MemoryDatabase()
    database.add_workload(task(4))
    database.add(record())
    database.save_model("ridge", CPU, b"ours")
    other.add_workload(task(4))
    other.add_workload(task(5))
    other.add_all([record(), record(seconds=2.0), record("other", None)])
    other.save_model("ridge", CPU, b"theirs")
    other.save_model("trees", CPU, b"theirs")
    assert database.merge(other) == 2
    assert database.merge(other) == 0
    assert other.merge(database) == 0
    assert len(database.workloads()) == 2
    assert {(one.key, one.median) for one in database.records()} == {(one.key, one.median) for one in other.records()}
    assert database.load_model("ridge", CPU) == b"ours"
    assert database.load_model("trees", CPU) == b"theirs"
    assert database.merge(database) == 0


def test_a_merged_workload_keeps_its_age(database):
    database.add_workload(Workload("key", "main", task().mod, 123.5))
    assert database.workload("key").created == 123.5


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ({"seconds": (0.1, math.nan)}, "positive number of seconds, not nan"),
        ({"seconds": (math.inf,)}, "positive number of seconds, not inf"),
        ({"seconds": (0.0,)}, "positive number of seconds, not 0.0"),
        ({"seconds": ("1",)}, "positive number of seconds, not '1'"),
        ({"seconds": 1.0}, "its seconds is a list, not 1.0"),
        ({"key": None}, "its key is a text, not None"),
        ({"noise": math.nan}, "no plain data"),
        ({"choices": (print,)}, "has no JSON form"),
        ({"settings": {"cache": {1, 2}}}, "has no JSON form"),
        ({"trace": [[["Split"]], []]}, "its trace is no trace"),
        ({"trace": {"steps": []}}, "its trace is a list"),
    ],
)
def test_what_no_measurement_gives_is_refused(bad, complaint):
    fields = {"key": "k", "fingerprint": CPU, "trace": TRACE} | bad
    database = MemoryDatabase()
    with pytest.raises(BadRecord, match=complaint):
        database.add_all([record(), Record(**fields)])
    assert database.records() == []  # all or none


def test_long_texts_and_any_characters(database):
    long = record(f"{'k' * 200}", fingerprint="avx512" * 2000, machine="\x00 ' \" ; -- ☃ \ud800", space="%s :name {}")
    database.add(long)
    assert database.records() == [long]
    assert database.best(long.key, long.fingerprint) == long


def test_closed_is_closed(database):
    database.close()
    database.close()
    for use in (database.records, database.models, database.workloads, lambda: database.add(record())):
        with pytest.raises(ClosedDatabase, match="was closed"):
            use()


def test_threads_share_a_database(database):
    if getattr(database, "url", None) is not None and database.url.get_backend_name() == "sqlite":
        pytest.skip("SQLite has a database of its own, which orders its writers")

    def write(thread: int) -> None:
        for number in range(20):
            database.add(record(f"k{thread}", 1.0 + number))
            assert database.best(f"k{thread}", CPU).median == 1.0

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(database.records()) == 80


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_a_list(database, seed):
    """Random operations, here and on a list of records."""
    rng = random.Random(seed)
    stored: list[Record] = []
    for _ in range(programs(25, 200)):
        key, cpu, threads = rng.choice("ab"), rng.choice([CPU, OTHER_CPU]), rng.choice([1, 2])
        new = record(
            key, rng.choice([None, rng.random() + 0.01]), cpu, settings={"threads": threads}, seed=rng.randrange(9)
        )
        assert database.add_all([new]) == (new not in stored)
        stored += [new] if new not in stored else []
        good = sorted(
            [one for one in stored if one.seconds and (one.key, one.fingerprint) == (key, cpu)], key=lambda r: r.median
        )
        count = rng.randrange(6)
        assert database.top(key, cpu, count) == good[:count]
        fitting = [one for one in good if one.settings["threads"] == threads]
        assert database.best(key, cpu, threads) == (fitting[0] if fitting else None)
        assert database.records(key) == [one for one in stored if one.key == key]


def test_what_was_stored_is_there_when_it_is_opened_again(reopen):
    database = reopen()
    database.add_workload(task())
    database.add(record())
    database.save_model("ridge", CPU, b"model")
    database.close()
    again = reopen()
    assert again.records() == [record()]
    assert again.load_model("ridge", CPU) == b"model"
    assert len(again.workloads()) == 1
    third = reopen()
    third.add(record(seconds=2.0))
    assert len(again.records()) == 2  # who opened it earlier sees what others add
    third.close()
    again.close()
