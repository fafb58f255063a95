"""What a build takes of a database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopwright.target import describe
from loopwright.tune import Record
from loopwright.tune.candidate import RULES
from loopwright.tune.database import MemoryDatabase
from loopwright.tune.database.tuned import TunedSchedules
from loopwright.tune.search import known_records
from tests.tune.database.samples import task

NO_TRACE = [[], []]
TILES = (("0.tiles", '{"rows": 4}'),)


def test_who_won_the_last_races_stands_however_fast_others_looked():
    database, program = MemoryDatabase(), task()
    settings = {"threads": describe(program.target).num_cores, "cache": "warm", "winograd": 0}

    def add(seconds: float, tile: int, **more: object) -> None:
        choices = (("0.tiles", f'{{"rows": {tile}}}'),)
        record = Record(
            program.key,
            program.fingerprint,
            NO_TRACE,
            (seconds,),
            space=RULES,
            choices=choices,
            settings=settings | more,
        )
        database.add(record)

    for tile in range(30):  # each of them seemed to win once, and lost the last race
        add(1.0 + tile / 1000, tile)
    add(2.0, 77, final=True)
    known = TunedSchedules(database).find(program.function, program.target, 0)
    assert known is not None
    assert known.decisions["0.tiles"] == {"rows": 77}
    assert database.prune(4) == 26
    again = TunedSchedules(database).find(program.function, program.target, 0)
    assert again is not None
    assert again.decisions == known.decisions


@pytest.mark.parametrize(
    ("choices", "more"),
    [
        ((("0.tiles", 1),), {}),
        ((1, 2, 3), {}),
        (("abc",), {}),
        ((("0.tiles", "{"),), {}),
        ((("0.tiles", "[3]"),), {}),
        (TILES, {"winograd": "yes"}),
        (TILES, {"winograd": None}),
        (TILES, {"sizes": ["x"] * 8}),
        (TILES, {"sizes": {"x": 1}}),
        (TILES, {"sizes": None}),
    ],
)
def test_records_that_cannot_be_read_stand_for_nothing(choices: tuple[object, ...], more: dict[str, object]):
    database, program, other = MemoryDatabase(), task(), task(5)
    settings = {"threads": describe(program.target).num_cores, "cache": "warm", "winograd": 0}
    settings |= {"family": other.family, "sizes": list(other.sizes), **more}
    for work in (program, other):
        if work is other or "sizes" not in more:
            record = Record(work.key, work.fingerprint, [[], []], (1.0,), space=RULES, choices=choices)
            database.add(replace(record, settings=settings))
    assert TunedSchedules(database).find(program.function, program.target, 0) is None
    assert known_records(database, program, settings) == []
