"""What a build takes of a database."""

from __future__ import annotations

from loopwright.target import describe
from loopwright.tune import Record
from loopwright.tune.candidate import RULES
from loopwright.tune.database import MemoryDatabase
from loopwright.tune.database.tuned import TunedSchedules
from tests.tune.database.samples import task

NO_TRACE = [[], []]


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
