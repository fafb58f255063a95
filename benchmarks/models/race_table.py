"""race_table: the record of a race as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench.networks import BEST, best, ratio_to
from benchmarks.bench.ratios import geomean
from benchmarks.bench.row import AGAIN, OURS

Row = dict[str, Any]


def show(record: dict[str, Any], console: Console | None = None) -> None:
    """Print the ratios, the memory and the notes."""
    console = console or Console(width=180)
    rows = [row for row in record["rows"] if row["status"] == "ok"]
    settings, described = record["settings"], record["machine"]
    threads = f"{settings['threads']} thread{'s' * (settings['threads'] > 1)}"
    console.print(
        f"{record['date']}: {described['cpu']} ({described['arch']}), {threads}, batch {settings['batch']}, "
        f"{settings['rounds']} rounds; ours compiled with {' '.join(settings['compile_options']) or 'no options'}",
        highlight=False,
    )
    console.print(", ".join(f"{name} {version}" for name, version in record["versions"].items()), highlight=False)
    if rows:
        peers = [peer for peer in _contenders(rows) if peer not in (OURS, AGAIN)]
        console.print(_ratios(rows, peers))
        console.print(_memory(rows, peers))
    for note in notes(record):
        console.print(f"note: {note}", highlight=False, markup=False)


def means(rows: list[Row], peers: list[str]) -> dict[str, float]:
    """The geometric mean of each peer's ratios, where it ran, and of the best of them."""
    found = {peer: [ratio for row in rows if (ratio := ratio_to(row, peer)) is not None] for peer in [*peers, BEST]}
    return {peer: geomean(ratios) for peer, ratios in found.items() if ratios}


def notes(record: dict[str, Any]) -> list[str]:
    """What a reader must know besides."""
    tolerance = record["settings"]["tolerance"]
    found = [f"results of all are within {tolerance:g} of the largest number of ours, or the contender is not counted"]
    if record["settings"]["load_before"] > 0.5:
        found.append(f"the machine was busy before (load {record['settings']['load_before']:.1f}): do not publish this")
    for row in record["rows"]:
        if row["status"] != "ok":
            found.append(f"{row['name']}: {row['message']}")
        for kind in ("skipped", "doubtful"):
            found += [f"{row['name']}: {peer} is left out: {why}" for peer, why in row.get(kind, {}).items()]
    return found


def _contenders(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row["contenders"]))


def _ratios(rows: list[Row], peers: list[str]) -> Table:
    table = Table(title="peer's time / ours: above 1 ours is faster", title_justify="left")
    for heading in ("", "ours, ms", *peers, "best", "", "A/A", "compiled in"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for row in rows:
        ours = row["contenders"][OURS]["seconds"] * 1e3
        cells = [_cell(row, peer) for peer in peers]
        again = row["ratios"][AGAIN]
        table.add_row(
            row["name"],
            f"{ours:.2f}",
            *cells,
            _coloured(ratio_to(row, BEST)),
            best(row) or "",
            f"{again['median']:.2f} ({again['low']:.2f}-{again['high']:.2f})",
            f"{row['compile_seconds']:.1f} s",
        )
    table.add_section()
    mean = means(rows, peers)
    table.add_row("geomean", "", *[_coloured(mean.get(peer)) for peer in [*peers, BEST]], "", "", "")
    return table


def _cell(row: Row, peer: str) -> str:
    if peer not in row["contenders"]:
        return "-"
    milliseconds = f"{row['contenders'][peer]['seconds'] * 1e3:.2f} ms"
    ratio = ratio_to(row, peer)
    return f"{milliseconds}  ?" if ratio is None else f"{milliseconds}  {_coloured(ratio)}"


def _coloured(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"[{'green' if ratio >= 1 else 'red'}]{ratio:.2f}[/]"


def _memory(rows: list[Row], peers: list[str]) -> Table:
    table = Table(title="resident at most while it runs (with loading), MiB", title_justify="left")
    names = [OURS, *peers]
    for heading in ("", *names):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def mebibytes(row: Row) -> Callable[[str], str]:
        def of(name: str) -> str:
            figures = row["contenders"].get(name, {})
            if "peak_bytes" not in figures:
                return "-"
            return f"{figures['peak_bytes'] / 2**20:.0f} ({figures['peak_bytes_with_loading'] / 2**20:.0f})"

        return of

    for row in rows:
        table.add_row(row["name"], *map(mebibytes(row), names))
    return table
