"""tuned: what a database knows, as a source of schedules that stands before the rules.

    with database:                                   or: with using(TunedSchedules(database)):
        lw.build(program, autosched=True)            the best record of the program, or of the nearest size
        lw.compile("model.onnx")

A record of this very program is done as it was measured. One of another size of the same family, no farther than a
factor of two on average, is adapted: the rules take the nearest decisions that they have here. Records were measured
with a number of threads and a state of the caches; they are used for a target with as many cores.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from math import inf
from typing import Final

from loopwright.autosched.known import Known
from loopwright.ir import PrimFunc
from loopwright.target import Target, describe
from loopwright.tune.candidate import RULES, Candidate
from loopwright.tune.database.interface import Database
from loopwright.tune.record import Record, is_final
from loopwright.tune.task import fingerprint
from loopwright.tune.workload import apart, family_of, key_of, sizes_of

_NEAR: Final = 1.0  # factors of two, on average of each size
_BEST: Final = 16  # records of a program that are looked at where no search of it has ended


class TunedSchedules:
    """Asks a database; what it said is remembered, so that a build sees one state of it."""

    def __init__(self, database: Database, adapt: bool = True, cache: str | None = None) -> None:
        self.database, self.adapt, self.cache = database, adapt, cache
        self._known: dict[tuple[str, str, int, int], Known | None] = {}
        self._similar: dict[tuple[str, int], list[Record]] = {}

    def find(self, function: PrimFunc, target: Target, winograd: int) -> Known | None:
        key, machine, threads = key_of(function), fingerprint(target), describe(target).num_cores
        place = (key, machine, threads, winograd)
        if place not in self._known:
            self._known[place] = self._looked_up(function, *place)
        return self._known[place]

    def key(self, function: PrimFunc, target: Target, winograd: int, count: int = 1) -> str:
        known = self.find(function, target, winograd)
        if known is None:
            return ""
        text = json.dumps([known.decisions, known.trace])
        return f"known={hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"

    def _looked_up(self, function: PrimFunc, key: str, machine: str, threads: int, winograd: int) -> Known | None:
        # One that lost the last races may have looked faster than who won them.
        for records in (
            self.database.finals(key, machine, threads, self.cache),
            self.database.top(key, machine, _BEST, threads, self.cache),
        ):
            own = [record for record in records if fits(record, winograd)]
            if own:
                return _as_known(standing(own), "the fastest schedule that was measured")
        if not self.adapt:
            return None
        if (machine, threads) not in self._similar:
            self._similar[machine, threads] = self.database.similar(machine, "", 1, threads, self.cache)
        family, sizes = family_of(function), sizes_of(function)
        near = [
            (distance(record, family, sizes), record)
            for record in self._similar[machine, threads]
            if record.space == RULES and fits(record, winograd)
        ]
        near = sorted([pair for pair in near if pair[0] <= _NEAR], key=lambda pair: pair[0])
        return _as_known(near[0][1], "adapted from the fastest schedule of another size") if near else None


def standing(records: Sequence[Record]) -> Record:
    """Of records of a program, the fastest first, the one that won the newest last races, if there is one."""
    finals = [record for record in records if is_final(record)]
    return max(finals, key=lambda record: record.time) if finals else records[0]


def fits(record: Record, winograd: int) -> bool:
    """Whether it rounds as is allowed, and its choices can be read."""
    used = record.settings.get("winograd", 0)
    if not isinstance(used, int) or used > winograd:
        return False
    return record.space != RULES or Candidate(record.space, record.choices).is_readable


def distance(record: Record, family: str, sizes: Sequence[int]) -> float:
    """Factors of two, on average of each size, between a record's program and one of these; inf for another program."""
    own = record.settings.get("sizes")
    if record.settings.get("family") != family or not isinstance(own, (list, tuple)):
        return inf
    return apart(own, sizes) if all([isinstance(size, int) for size in own]) else inf


def _as_known(record: Record, why: str) -> Known | None:
    if record.space == RULES:
        decisions = Candidate(record.space, record.choices).decisions
        return Known(why, decisions=decisions) if decisions else None  # the rules' own choice
    return Known(why, trace=record.trace) if record.trace else None
