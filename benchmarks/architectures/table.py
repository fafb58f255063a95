"""The table of a race: each model once, its ratios on each number of threads; below it what was left out, and why."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench.ratios import geomean
from benchmarks.bench.row import OURS

Row = dict[str, Any]
BUSY = 0.5  # processes that already ran


def show(record: dict[str, Any], console: Console) -> None:
    """Print a record."""
    described, versions = record["machine"], record["versions"]
    where = f"{described['cpu']} ({described['arch']}), {described['cores']} cores"
    for line in (f"{record['date']}: {where}", ", ".join([f"{name} {version}" for name, version in versions.items()])):
        console.print(line, highlight=False)
    rows = [row for row in record["rows"] if row["status"] == "ok"]
    if rows:
        console.print(_ratios(rows))
    for note in notes(record):
        console.print(f"note: {note}", highlight=False, markup=False)


def others_of(rows: list[Row]) -> list[str]:
    """Who took part beside ours."""
    return list(dict.fromkeys([name for row in rows for name in row["ratios"]]))


def means(rows: list[Row]) -> dict[tuple[int, str], float]:
    """The geometric mean of ratios by the number of threads and by the other."""
    found: dict[tuple[int, str], list[float]] = {}
    for row in rows:
        for name, ratio in row["ratios"].items():
            found.setdefault((row["threads"], name), []).append(ratio["median"])
    return {key: geomean(ratios) for key, ratios in found.items()}


def notes(record: dict[str, Any]) -> list[str]:
    """What a reader must know besides."""
    settings = record["settings"]
    found = [f"our results are within {settings['tolerance']:g} of the largest number from float64"]
    if settings["load_before"] > BUSY:
        found.append(f"the machine was busy before (load {settings['load_before']:.1f}): do not publish this")
    for row in record["rows"]:
        head = f"{row['name']} on {row['threads']}"
        if row["status"] != "ok":
            found.append(f"{head}: {row['status']}: {row['message']}")
        found += [f"{head}: {name} is left out: {why}" for name, why in row["left_out"].items()]
    return found


def _ratios(rows: list[Row]) -> Table:
    table = Table(title="time of the other / ours: above 1 ours is faster", title_justify="left")
    threads, others = list(dict.fromkeys([row["threads"] for row in rows])), others_of(rows)
    table.add_column("model")
    for count in threads:
        table.add_column(f"{count} thread{'s' * (count > 1)}: ours, ms", justify="right")
        for name in others:
            table.add_column(name, justify="right", no_wrap=True)
    by_key = {(row["name"], row["threads"]): row for row in rows}
    for name in dict.fromkeys([row["name"] for row in rows]):
        cells = [cell for count in threads for cell in _cells(by_key.get((name, count)), others)]
        table.add_row(name, *cells)
    table.add_section()
    mean = means(rows)
    table.add_row(
        "geomean", *[cell for count in threads for cell in ("", *[_coloured(mean.get((count, x))) for x in others])]
    )
    return table


def _cells(row: Row | None, others: list[str]) -> list[str]:
    if row is None:
        return ["-"] * (1 + len(others))
    cells = [f"{row['contenders'][OURS]['seconds'] * 1e3:.3f}"]
    for name in others:
        found = row["ratios"].get(name)
        cells.append("-" if found is None else f"{_coloured(found['median'])} ({found['low']:.2f}-{found['high']:.2f})")
    return cells


def _coloured(ratio: float | None) -> str:
    return "-" if ratio is None else f"[{'green' if ratio >= 1 else 'red'}]{ratio:.2f}[/]"
