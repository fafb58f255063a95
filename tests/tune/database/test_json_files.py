"""The two files of meta_schedule: what is written is read, and a damaged line costs itself alone."""

from __future__ import annotations

import base64
import json

import pytest

from loopwright import tir
from loopwright.ir import structural_equal
from loopwright.runtime.together import CannotWrite
from loopwright.schedule import Trace
from loopwright.tune import Record
from loopwright.tune.database import DatabaseWarning, MemoryDatabase, MissingJsonFile, export_json, import_json
from loopwright.tune.database.json_files import RECORDS, WORKLOADS, workload_line
from loopwright.tune.database.tuned import TunedSchedules
from tests.tune.database.samples import OTHER_CPU, TRACE, record, seconds, task


@pytest.fixture
def database():
    """Two workloads with records, one of them a failure, and one of another CPU."""
    four, five = task(4), task(5)
    made = MemoryDatabase()
    made.add_workload(four)
    made.add_workload(five)
    for value in (2.0, 1.0, None):
        made.add(
            Record(four.key, four.fingerprint, TRACE, (value, value) if value else (), error="" if value else "no")
        )
    made.add(record(five.key, 3.0, five.fingerprint))
    made.add(record(five.key, 0.5, OTHER_CPU))
    return made


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_form_of_the_files(database, tmp_path):
    four, five = task(4), task(5)
    assert export_json(database, tmp_path / "work", four.target) == 4
    workloads = dict(lines(tmp_path / "work" / WORKLOADS))
    assert set(workloads) == {str(int(four.key, 16)), str(int(five.key, 16))}
    assert json.loads(base64.b64decode(workloads[str(int(four.key, 16))]))["loopwright"]
    order = list(workloads)
    target = four.target.export()
    for key, extent, measured in ((four.key, 4, [[2.0, 2.0], [1.0, 1.0], [1e10]]), (five.key, 5, [[3.0, 6.0, 1.5]])):
        index = order.index(str(int(key, 16)))
        tensors = [["TENSOR", "float32", [extent, 5]]] * 2
        expected = [[index, [TRACE, one, target, tensors]] for one in measured]
        assert [line for line in lines(tmp_path / "work" / RECORDS) if line[0] == index] == expected


def test_what_was_written_is_read(database, tmp_path):
    export_json(database, tmp_path, task().target)
    new = MemoryDatabase()
    assert import_json(new, tmp_path) == 4
    assert import_json(new, tmp_path) == 0
    four, five = task(4), task(5)
    assert seconds(new.top(four.key, four.fingerprint, 9)) == [1.0, 2.0]
    assert [one.error for one in new.records(four.key)] == ["", "", "it failed where it was measured"]
    assert new.best(five.key, five.fingerprint).trace == TRACE
    assert structural_equal(new.workload(four.key).mod, four.mod)
    again = tmp_path / "again"
    export_json(new, again, task().target)
    assert sorted((again / RECORDS).read_text().splitlines()) == sorted((tmp_path / RECORDS).read_text().splitlines())


def test_who_won_the_last_races_is_the_fastest_in_the_files(tmp_path):
    database, new, work = MemoryDatabase(), MemoryDatabase(), task(4)
    database.add_workload(work)
    final = record(work.key, 2.0, work.fingerprint, time=3.0, settings={"final": True}, trace=[[], [[0, 1]]])
    others = [record(work.key, value, work.fingerprint) for value in (1.0, 4.0)]
    database.add_all([*others, final])
    export_json(database, tmp_path, work.target)
    import_json(new, tmp_path)
    fastest, *rest = new.top(work.key, work.fingerprint, 3)
    assert (fastest.trace, fastest.median) == (final.trace, 2.0)
    assert seconds(rest) == [pytest.approx(2.0), 4.0]


def test_builds_take_what_was_imported(tmp_path):
    workload = task(8)
    sch = tir.Schedule(workload.mod)
    sch.vectorize(sch.get_loops("B")[1])
    other = tir.Schedule(workload.mod)
    trace = other.trace.as_json()
    trace[0].append(["Winograd", ["b0"], [4], ["b1"]])
    measured = [(sch.trace.as_json(), 2.0), (trace, 1.0)]
    texts = [json.dumps([0, [one, [time], workload.target.export(), []]]) for one, time in measured]
    (tmp_path / WORKLOADS).write_text(workload_line(workload) + "\n")
    (tmp_path / RECORDS).write_text("\n".join(texts))
    database = MemoryDatabase()
    import_json(database, tmp_path)
    known = TunedSchedules(database).find(workload.function, workload.target, 0)  # without winograd
    assert known is not None and known.trace == sch.trace.as_json()


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_made(database, tmp_path, place):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(CannotWrite):
        export_json(database, tmp_path / place, task().target)


def test_a_trace_that_was_imported_is_proved_when_it_is_applied(tmp_path):
    workload = task(8)
    sch = tir.Schedule(workload.mod)
    loop, _ = sch.get_loops("B")
    outer, _ = sch.split(loop, sch.sample_perfect_tile(loop, 2, decision=[2, 4]))
    sch.parallel(outer)
    database, new = MemoryDatabase(), MemoryDatabase()
    database.add_workload(workload)
    database.add(Record(workload.key, workload.fingerprint, sch.trace.as_json(), (1.0,)))
    export_json(database, tmp_path, workload.target)
    import_json(new, tmp_path)
    replayed = tir.Schedule(new.workload(workload.key).mod)
    Trace.apply_json_to_schedule(new.best(workload.key, workload.fingerprint).trace, replayed)
    assert structural_equal(replayed.mod, sch.mod)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[0, [[[", "Expecting value"),
        ("{}", "not enough values"),
        ("7", "cannot unpack"),
        ('[9, [[[], []], [1.0], {"kind": "llvm"}, []]]', "there is no workload on line 10"),
        ('[0, [[[], []], [-1.0], {"kind": "llvm"}, []]]', "positive number of seconds, not -1.0"),
        ('[0, [[[], []], ["1"], {"kind": "llvm"}, []]]', "not supported between"),
        ('[0, [[["Split"], []], [1.0], {"kind": "llvm"}, []]]', "its trace is no trace"),
        ('[0, [[[], []], [1.0], {"kind": "nonsense"}, []]]', "nonsense"),
        ("[0, [[[], []], [1.0], 3, []]]", "it is no record"),
        ("[" * 10_000, "nests"),
    ],
)
def test_a_damaged_record_is_skipped_with_a_word(database, tmp_path, line, complaint):
    export_json(database, tmp_path, task().target)
    with (tmp_path / RECORDS).open("a") as file:
        file.write(f"{line}\n")
    new = MemoryDatabase()
    with pytest.warns(DatabaseWarning, match=f"{RECORDS}: line 5 is damaged and is skipped: .*{complaint}"):
        assert import_json(new, tmp_path) == 4


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('["1", "no base64!"]', "base64"),
        (
            json.dumps(["1", base64.b64encode(b'{"root": 1, "nodes": [], "attrs": {}}').decode()]),
            "the JSON is no program",
        ),
        (json.dumps(["1", base64.b64encode(b'{"attrs": {"tvm_version": "0.15"}}').decode()]), "the peer's own form"),
        ('["1"]', "not enough values"),
        (json.dumps(["1", base64.b64encode(b"\xff").decode()]), "decode"),
    ],
)
def test_a_damaged_workload_is_skipped_and_its_number_is_not_another_s(database, tmp_path, line, complaint):
    export_json(database, tmp_path, task().target)
    good = (tmp_path / WORKLOADS).read_text().splitlines()
    (tmp_path / WORKLOADS).write_text("\n".join([line, *good]))
    records = [[one[0] + 1, one[1]] for one in lines(tmp_path / RECORDS)]
    records.append([0, records[0][1]])
    (tmp_path / RECORDS).write_text("\n".join([json.dumps(one) for one in records]))
    new = MemoryDatabase()
    with pytest.warns(DatabaseWarning) as caught:
        assert import_json(new, tmp_path) == 4
    first, second = [str(warning.message) for warning in caught]
    assert f"{WORKLOADS}: line 1 is damaged and is skipped: " in first and complaint in first
    assert second.endswith("there is no workload on line 1")
    assert seconds(new.top(task(4).key, task(4).fingerprint, 1)) == [1.0]


def test_many_damaged_lines_are_told_of_together(tmp_path):
    (tmp_path / WORKLOADS).write_text("[]\n" * 30)
    (tmp_path / RECORDS).write_text("")
    with pytest.warns(DatabaseWarning) as caught:
        assert import_json(MemoryDatabase(), tmp_path) == 0
    assert len(caught) == 6
    assert str(caught[-1].message).endswith(f"{WORKLOADS}: 25 more lines are damaged and are skipped")


def test_a_missing_file(database, tmp_path):
    with pytest.raises(MissingJsonFile, match=f"{WORKLOADS} cannot be read: No such file"):
        import_json(MemoryDatabase(), tmp_path)
    export_json(database, tmp_path, task().target)
    (tmp_path / RECORDS).unlink()
    with pytest.raises(MissingJsonFile, match=RECORDS):
        import_json(MemoryDatabase(), tmp_path)


def test_files_of_no_lines(tmp_path):
    assert export_json(MemoryDatabase(), tmp_path, task().target) == 0
    assert import_json(MemoryDatabase(), tmp_path) == 0
