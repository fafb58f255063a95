"""A campaign's record: parts are done once, and a folder belongs to one campaign."""

from __future__ import annotations

import os

import pytest

from benchmarks.campaign_record import OtherCampaign, PartFailed, Record


def double(part: int) -> dict[str, int]:
    return {"part": part, "double": 2 * part}


def die_at_one(part: int) -> dict[str, int]:
    if part == 1:
        os._exit(3)
    return double(part)


def ask_for_much(part: int) -> dict[str, int]:
    return {"size": len(bytearray(1 << 40))}


def test_a_campaign_goes_on_where_it_stopped(tmp_path):
    parts = {str(k): k for k in range(3)}
    first = Record(tmp_path, {"seed": 1})
    assert first.run(double, parts, jobs=1, seconds=0) == 3  # no time: nothing is begun
    assert list(first.parts()) == []
    first.add("1", {"part": 1, "double": 2})
    again = Record(tmp_path, {"seed": 1})
    assert again.run(double, parts, jobs=1) == 0
    assert [part["double"] for part in again.parts()] == [0, 2, 4]


def test_another_campaign_needs_another_folder(tmp_path):
    Record(tmp_path, {"seed": 1})
    with pytest.raises(OtherCampaign, match=r"records a campaign with \{'seed': 1\}, not \{'seed': 2\}"):
        Record(tmp_path, {"seed": 2})


def test_a_part_that_kills_its_process_is_named(tmp_path):
    record = Record(tmp_path, {"seed": 1})
    with pytest.raises(PartFailed, match="part 1 kills its process"):
        record.run(die_at_one, {str(k): k for k in range(3)}, jobs=1)


def test_a_part_that_wants_too_much_memory_is_named(tmp_path):
    record = Record(tmp_path, {"seed": 1})
    with pytest.raises(PartFailed, match="part 7: MemoryError"):
        record.run(ask_for_much, {"7": 7}, jobs=1)


def fail_at_one(part: int) -> dict[str, int]:
    if part == 1:
        raise ValueError("no such part")
    return double(part)


def test_the_other_parts_are_done_when_one_raises(tmp_path):
    record = Record(tmp_path, {"seed": 1})
    with pytest.raises(PartFailed, match="part 1: ValueError: no such part"):
        record.run(fail_at_one, {str(k): k for k in range(4)}, jobs=1)
    assert [part["double"] for part in record.parts()] == [0, 4, 6]
