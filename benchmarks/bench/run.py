"""The run as a whole: children are started one after another, and what they report is gathered into one record.

A child that dies or hangs costs the row it was at: that row says so, and a new child goes on with the next. A run that
is stopped (Ctrl-C, SIGTERM) is a record of what it measured until then.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.bench import bars, c_loops, compile_times, doubts, machine, networks
from benchmarks.bench.cases import FAMILIES, cases_of
from benchmarks.bench.children import ROOT, listen, pool_settings

__all__ = ["ROOT", "Options", "merged", "pool_settings", "run", "thread_counts"]

SCHEMA = 1
# Notes of a run that a record of several keeps; the others follow from the rows.
KEPT_NOTES = ("C loops", "no roofline", "the machine was busy", "the run was stopped", "a child")
Row = dict[str, Any]


@dataclass
class Options:
    """What the command line asks for."""

    families: Sequence[str] = (*FAMILIES, "compile")
    threads: Sequence[str] = ("1", "all")
    budget: float = 2.0
    quick: bool = False
    use_torch: bool = True
    use_torch_compile: bool = True
    without: Sequence[str] = ()  # other peers that are left out
    patience: float = 600.0  # seconds without a word from a child
    only: str = ""  # rows whose name contains this
    child: Sequence[str] = field(default_factory=lambda: (sys.executable, "-m", "benchmarks.bench.child"))


def run(options: Options, progress: Callable[[str], None]) -> dict[str, Any]:
    """The record of a whole run, as it is written to JSON."""
    described = machine.describe()
    load_before = doubts.load()
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "date": date.today().isoformat(),
        "machine": described,
        "settings": {
            "quick": options.quick,
            "budget_seconds": options.budget,
            "families": list(options.families),
            "pools": pool_settings(1),
        },
        "roofline": {},
        "rows": [],
        "compile": [],
        "notes": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        loops = c_loops.build(Path(folder))
        record["versions"] = machine.versions(loops.compiler)
        if loops.missing:
            record["notes"].append(f"C loops: {loops.missing}")
        if loops.serial is None:
            record["notes"].append("no roofline: it is measured by C loops")
        try:
            for count in thread_counts(options.threads, described["cores"]):
                for rows in _batches(options):
                    _run_rows(rows, count, options, record, loops, progress)
            if "compile" in options.families:
                progress("compile times")
                record["compile"] = compile_times.measure(Path(folder), 1 if options.quick else 5)
        except KeyboardInterrupt:
            record["notes"].append("the run was stopped before its end: rows are missing")
    record["settings"]["load_before"] = load_before
    if load_before > 0.5:
        record["notes"].append(f"the machine was busy before the run (load {load_before:.1f}): do not publish this")
    return _summed_up(record)


def merged(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One record of several runs on one machine with the same versions, each of other rows."""
    first = records[0]
    for other in records[1:]:
        for what in ("machine", "versions"):
            if other[what] != first[what]:
                raise ValueError(f"the runs have not the same {what}: {first[what]} and {other[what]}")
    whole = {
        **first,
        "settings": {**first["settings"], "command": "; ".join([record["settings"]["command"] for record in records])},
        "roofline": {key: value for record in records for key, value in record["roofline"].items()},
        "rows": [row for record in records for row in record["rows"]],
        "compile": [row for record in records for row in record["compile"]],
        "notes": [note for record in records for note in record["notes"] if note.startswith(KEPT_NOTES)],
    }
    found = [(row["family"], row["name"], row["threads"]) for row in whole["rows"]]
    if len(set(found)) < len(found):
        raise ValueError("a row is in more than one of the runs")
    return _summed_up(whole)


def _summed_up(record: dict[str, Any]) -> dict[str, Any]:
    """The record with what follows from all of its rows."""
    _compare_bits(record)
    record["notes"] += doubts.mark(record["rows"])
    record["notes"] += _skipped(record["rows"])
    record["geomeans"] = bars.geomeans(record["rows"])
    record["networks"] = networks.sum_up(record["rows"])
    record["bars"] = bars.judge(record)
    return record


def thread_counts(asked: Sequence[str], cores: int) -> list[int]:
    """The numbers of threads, each once: on one core, "1,all" is one run."""
    return list(dict.fromkeys([cores if text == "all" else int(text) for text in asked]))


def _batches(options: Options) -> Iterator[list[tuple[str, str]]]:
    """The rows of each child: a family each, or for a quick run all of them, since torch takes seconds to load."""
    chosen = [
        [
            (family, case.name)
            for case in cases_of(family)
            if (case.quick or not options.quick) and options.only in case.name
        ]
        for family in FAMILIES
        if family in options.families
    ]
    if options.quick:
        chosen = [[row for rows in chosen for row in rows]]
    yield from [rows for rows in chosen if rows]


def _run_rows(
    rows: list[tuple[str, str]],
    threads: int,
    options: Options,
    record: dict[str, Any],
    loops: c_loops.CLoops,
    progress: Callable[[str], None],
) -> None:
    effort: dict[str, float] = {"budget": options.budget}
    if options.quick:
        effort = {"budget": min(options.budget, 0.1), "sample": 3e-4, "most": 25}
    orders = {
        "threads": threads,
        "cores": record["machine"]["cores"],
        "c_serial": loops.serial,
        "c_library": loops.serial if threads == 1 else loops.parallel,
        "c_missing": loops.missing,
        "use_torch": options.use_torch,
        "use_torch_compile": options.use_torch_compile and not options.quick,
        "without": list(options.without),
        "effort": effort,
        "boundary": 1 if options.quick else 8,
        "quick": options.quick,
    }
    left = list(rows)
    while left:
        key = str(threads)
        orders.update(rows=left, measure_roofline=key not in record["roofline"])
        begun: tuple[str, str] | None = None
        ending = ""
        for event in listen(options.child, orders, threads, options.patience):
            if event["event"] == "start":
                begun = (event["family"], event["name"])
                progress(f"{threads} thread{'s' if threads > 1 else ''}: {event['family']} {event['name']}")
            elif event["event"] == "roofline":
                record["roofline"][key] = event["value"]
            elif event["event"] == "row":
                _take(record, event["row"])
                left.remove(begun)  # type: ignore[arg-type]
                begun = None
            else:
                ending = event["why"]
        if not left:
            return
        if begun is None or begun[0] == "roofline":
            record["notes"].append(f"a child on {threads} threads ended before its first row: {ending}")
            if begun is None:
                return
            record["roofline"][key] = None  # do not try again
            continue
        failed = {"family": begun[0], "name": begun[1], "threads": threads, "status": "crashed", "message": ending}
        case = next(case for case in cases_of(begun[0]) if case.name == begun[1])
        record["rows"].append({**failed, **({"group": case.group, "count": case.count} if case.group else {})})
        left.remove(begun)


def _take(record: dict[str, Any], row: Row) -> None:
    """Keep a row, with its share of what the machine can do at most."""
    roofline = record["roofline"].get(str(row["threads"]))
    # A rate in bytes or halves has nothing to do with what floats can reach.
    if row["status"] == "ok" and roofline and (not row["flops"] or row["dtype"] in roofline["flops"]):
        least, bound = machine.attainable(roofline, row["flops"], row["read"], row["written"], row["dtype"])
        share = least / row["contenders"]["ours"]["seconds"]
        row["roofline"] = {"bound": bound, "least_seconds": least, "share": share}
    record["rows"].append(row)


def _compare_bits(record: dict[str, Any]) -> None:
    """Rows whose results differ between runs with different numbers of threads say so."""
    seen: dict[tuple[str, str], Row] = {}
    for row in record["rows"]:
        if "digest" not in row:
            continue
        first = seen.setdefault((row["family"], row["name"]), row)
        row["same_bits"] = row["digest"] == first["digest"]
        if not row["same_bits"]:
            counts = f"{row['threads']} threads are not those on {first['threads']}"
            record["notes"].append(f"{row['family']} {row['name']}: the bits on {counts}")


def _skipped(rows: Sequence[Row]) -> list[str]:
    """One line for each peer that was left out, and why."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for peer, why in row.get("skipped", {}).items():
            found.setdefault(f"{peer} skipped: {why}", []).append(row["family"])
    return [f"{line} ({', '.join(dict.fromkeys(families))})" for line, families in found.items()]
