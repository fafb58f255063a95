"""What a run says: the distribution of ratios, each family's, the worst rows with their reasons, what failed.

A reason is the hand-written explanation of a slow row: the first entry of `reasons.toml` whose family, operator, name
and kind match. A row without one is a question that nobody has answered yet.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench.ratios import geomean
from benchmarks.bench.table import duration
from benchmarks.sweep.row import BAR, OURS, Row

REASONS = Path(__file__).with_name("reasons.toml")
SLOW_COMPILE = 1.5  # seconds of processor time
FAR_BELOW = 0.5
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
FAILURES = ("wrong", "error", "crashed", "hung")
SLOWER = 0.9  # times the ratio before: from here on a row has become slower


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """How the ratios are distributed."""
    ratios = sorted([row["ratio"] for row in rows if row["status"] == "ok"])
    count = len(ratios)
    if not count:
        return {"rows": 0}
    return {
        "rows": count,
        "geomean": geomean(ratios),
        "at least as fast": sum([x >= BAR for x in ratios]) / count,
        "below half": sum([x < FAR_BELOW for x in ratios]) / count,
        "least": ratios[0],
        **{f"{100 * q:g} %": ratios[min(int(q * count), count - 1)] for q in QUANTILES},
    }


def reasons() -> list[Mapping[str, Any]]:
    """The entries of the reasons file."""
    found: list[Mapping[str, Any]] = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("reason", [])
    return found


def reason_of(row: Row, entries: Sequence[Mapping[str, Any]]) -> str:
    """Why the row is slow, as far as it is known."""
    for entry in entries:
        if row["seconds"][OURS] * 1e6 > entry.get("within_us", float("inf")):
            continue
        patterns = [(key, entry[key]) for key in ("family", "operator", "name", "ours", "dtype") if key in entry]
        if all([re.fullmatch(pattern, str(row.get(key, ""))) for key, pattern in patterns]):
            return str(entry["why"])
    return "?"


def show(record: Mapping[str, Any], console: Console, before: Mapping[str, Any] | None = None, worst: int = 20) -> None:
    """Print the report."""
    rows: list[Row] = record["rows"]
    settings = record["settings"]
    statuses = Counter([row["status"] for row in rows])
    counted = ", ".join([f"{count} {status}" for status, count in statuses.most_common()])
    console.print(f"seed {settings['seed']}, {len(rows)} cases on {settings['threads']} thread(s): {counted}\n")
    console.print("fastest peer's time / ours; above 1, ours is faster", style="italic")
    _distribution(rows, console, before)
    _families(rows, console, before)
    _worst(rows, console, worst, before)
    if before:
        _slower(rows, before["rows"], console, worst)
    _failures(rows, console)
    _compile_times(rows, console)


def _distribution(rows: Sequence[Row], console: Console, before: Mapping[str, Any] | None) -> None:
    table = Table("", "all", "kernels", "models", *(["all before"] if before else []))
    kinds = [rows, [row for row in rows if row["ours"] == "kernel"], [row for row in rows if row["ours"] == "model"]]
    if before:
        kinds.append(_same(before["rows"], rows))
    found = [summary(kind) for kind in kinds]
    for key in found[0]:
        table.add_row(key, *[_figure(key, one.get(key)) for one in found])
    console.print(table)


def _figure(key: str, value: float | None) -> str:
    if value is None:
        return ""
    if key == "rows":
        return str(int(value))
    return f"{100 * value:.1f} %" if key in ("at least as fast", "below half") else f"{value:.2f}"


def _same(rows: Sequence[Row], of: Sequence[Row]) -> list[Row]:
    wanted = {row["index"] for row in of}
    return [row for row in rows if row["index"] in wanted]


def _families(rows: Sequence[Row], console: Console, before: Mapping[str, Any] | None) -> None:
    more = ["geomean before"] if before else []
    table = Table("family", "rows", "geomean", *more, f"≥ {BAR}", f"< {FAR_BELOW}", "least", "failed")
    for family in sorted({row["family"] for row in rows}):
        own = [row for row in rows if row["family"] == family]
        found = summary(own)
        failed = sum([row["status"] in FAILURES for row in own])
        cells = [_figure(key, found.get(key)) for key in ("rows", "geomean", "at least as fast", "below half", "least")]
        if before:
            old = summary(_same(before["rows"], own))
            cells.insert(2, _figure("geomean", old.get("geomean")))
        table.add_row(family, *cells, str(failed or ""))
    console.print(table)


def _worst(rows: Sequence[Row], console: Console, count: int, before: Mapping[str, Any] | None) -> None:
    entries = reasons()
    old = {row["index"]: row for row in before["rows"]} if before else {}
    more = ["before"] if before else []
    table = Table("case", "family", "ours is a", "what", "ratio", "interval", *more, "ours", "fastest peer", "reason")
    slow = sorted([row for row in rows if row["status"] == "ok" and row["ratio"] < BAR], key=lambda row: row["ratio"])
    for row in slow[:count]:
        cells = [
            str(row["index"]),
            row["family"],
            row["ours"],
            row["name"],
            f"{row['ratio']:.2f}",
            f"{row['low']:.2f}–{row['high']:.2f}",
            duration(row["seconds"][OURS]),
            f"{row['fastest']} {duration(row['seconds'][row['fastest']])}",
            reason_of(row, entries),
        ]
        if before:
            ratio = old.get(row["index"], {}).get("ratio")
            cells.insert(6, "" if ratio is None else f"{ratio:.2f}")
        table.add_row(*cells)
    console.print(f"\nthe worst of {len(slow)} rows below {BAR}:")
    console.print(table)


def slower(rows: Sequence[Row], before: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Rows that have become slower, each with what it was, worst first.

    Ratios are compared, not seconds: the two runs may have seen the machine in different moods, and so has the peer. It
    must be slower in seconds as well, since the fastest peer is not always the same one.
    """
    old = {row["index"]: row for row in before if row["status"] == "ok"}
    pairs = [(row, old[row["index"]]) for row in rows if row["status"] == "ok" and row["index"] in old]
    found = [
        (row, was)
        for row, was in pairs
        if row["ratio"] < SLOWER * was["ratio"] and SLOWER * row["seconds"][OURS] > was["seconds"][OURS]
    ]
    return sorted(found, key=lambda pair: pair[0]["ratio"] / pair[1]["ratio"])


def _slower(rows: Sequence[Row], before: Sequence[Row], console: Console, count: int) -> None:
    found = slower(rows, before)
    table = Table("case", "ours is a", "what", "ratio before", "ratio", "ours before", "ours")
    for row, was in found[:count]:
        ratios = [f"{was['ratio']:.2f}", f"{row['ratio']:.2f}"]
        times = [duration(was["seconds"][OURS]), duration(row["seconds"][OURS])]
        table.add_row(str(row["index"]), row["ours"], row["name"], *ratios, *times)
    if found:
        console.print(f"\n{len(found)} rows are slower than before:")
        console.print(table)


def _failures(rows: Sequence[Row], console: Console) -> None:
    failed = [row for row in rows if row["status"] in FAILURES]
    for row in failed:
        text = f"{row['status'].upper()} case {row['index']} ({row['family']}, {row['ours']}) {row['name']}"
        console.print(f"{text}: {row.get('message', '')}", markup=False, highlight=False, soft_wrap=True)


def _compile_times(rows: Sequence[Row], console: Console) -> None:
    taken = sorted([row["compile_cpu"] for row in rows if "compile_cpu" in row])
    if not taken:
        return
    middle, nearly = taken[len(taken) // 2], taken[min(int(0.95 * len(taken)), len(taken) - 1)]
    console.print(f"compile time: median {middle:.2f} s, 95 % below {nearly:.2f} s, most {taken[-1]:.2f} s")
    for row in sorted(rows, key=lambda row: -row.get("compile_cpu", 0)):
        if row.get("compile_cpu", 0) > SLOW_COMPILE:
            line = f"  above {SLOW_COMPILE} s: {row['compile_cpu']:.2f} s case {row['index']} {row['name']}"
            console.print(f"{line} ({row['ours']})", markup=False, highlight=False, soft_wrap=True)
