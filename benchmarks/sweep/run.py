"""A run: the cases of a piece, measured in a child process; one that dies or hangs costs the case it was at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from benchmarks.bench import doubts, machine
from benchmarks.bench.children import listen
from benchmarks.sweep.case import Case
from benchmarks.sweep.families import FAMILIES, case_of, indices_of
from benchmarks.sweep.row import Row

SCHEMA = 1
CHILD = (sys.executable, "-m", "benchmarks.sweep.child")
RESTART = 100  # cases a child measures at most: what compiled code leaves in a process does not pile up


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    seed: int = 0
    cases: int = 100
    piece: int = 1  # of `pieces`, counted from 1
    pieces: int = 1
    threads: int = 1
    budget: float = 0.3  # seconds to time a case for
    families: Sequence[str] = FAMILIES  # cases of other families are passed over
    ours: str | None = None  # kernels or models only
    only: str = ""  # cases whose name contains this
    indices: Sequence[int] = ()  # these instead of a piece
    before: str | None = None  # the folder of another version of Loopwright
    patience: float = 120.0  # seconds that a case may take
    child: Sequence[str] = CHILD

    def chosen(self) -> list[int]:
        """The indices of the piece: every K-th, so that pieces take about as long as each other."""
        if self.indices:
            return list(self.indices)
        return list(indices_of(self.seed, self.cases, self._wants))[self.piece - 1 :: self.pieces]

    def _wants(self, case: Case) -> bool:
        return case.family in self.families and self.ours in (None, case.ours) and self.only in case.name


def run(options: Options, progress: Callable[[Row], None]) -> dict[str, Any]:
    """The record of a piece, as it is written to JSON."""
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "date": date.today().isoformat(),
        "machine": machine.describe(),
        "versions": machine.versions(""),
        "settings": {
            "seed": options.seed,
            "cases": options.cases,
            "threads": options.threads,
            "budget_seconds": options.budget,
            "families": list(options.families),
            "ours": options.ours,
            "only": options.only,
            "load_before": doubts.load(),
        },
        "rows": [],
    }
    left = options.chosen()
    try:
        while left:
            done = _child(options, left[:RESTART], record["rows"], progress)
            left = left[done:]
    except KeyboardInterrupt:
        record["settings"]["stopped"] = True
    return record


def _child(options: Options, indices: Sequence[int], rows: list[Row], progress: Callable[[Row], None]) -> int:
    """How many of the cases a child took: all, or those up to the one it died of."""
    orders = {
        "seed": options.seed,
        "indices": list(indices),
        "threads": options.threads,
        "budget": options.budget,
        "before": options.before,
    }
    done, begun = 0, None
    settings = {"LOOPWRIGHT_CACHE": "0"}  # a compile time is that of compiling
    for event in listen(options.child, orders, options.threads, options.patience, settings):
        if event["event"] == "start":
            begun = event["index"]
        elif event["event"] == "row":
            rows.append(event["row"])
            progress(event["row"])
            done, begun = done + 1, None
        elif begun is None:
            raise ChildFailed(event["why"])
        else:
            row = _failed(options, begun, event["why"])
            rows.append(row)
            progress(row)
            done += 1
    return done


class ChildFailed(Exception):
    """A child that ended outside of a case: something is wrong with the installation, not with a kernel."""


def _failed(options: Options, index: int, why: str) -> Row:
    case = case_of(options.seed, index)
    return {
        "index": index,
        "family": case.family,
        "operator": case.operator,
        "name": case.name,
        "ours": case.ours,
        "status": "hung" if why.startswith("no answer") else "crashed",
        "message": why,
    }


def merged(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One record of several pieces of the same draw."""
    first = records[0]
    for other in records[1:]:
        for what in ("seed", "threads", "families", "ours", "only"):
            if other["settings"][what] != first["settings"][what]:
                raise ValueError(f"the pieces have not the same {what}")
        if other["versions"] != first["versions"] or other["machine"] != first["machine"]:
            raise ValueError("the pieces are of different versions or machines")
    rows = sorted([row for record in records for row in record["rows"]], key=lambda row: row["index"])
    if len({row["index"] for row in rows}) < len(rows):
        raise ValueError("a case is in more than one of the pieces")
    return {**first, "rows": rows}
