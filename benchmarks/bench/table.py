"""The record as tables for a terminal: one for each family and number of threads, then means, bars and notes."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench.cases import LOW_PRECISION, NETWORKS
from benchmarks.bench.networks import BEST, OURS_FLOAT32, OURS_WINOGRAD
from benchmarks.bench.row import AGAIN, OURS

Row = dict[str, Any]
PEERS = ["C", "memcpy", "numpy", "onnxruntime", "openvino", "torch", "torch compile", OURS_FLOAT32, OURS_WINOGRAD]
MATRICES = ("sgemm", "dgemm", "chain", *NETWORKS, *LOW_PRECISION)  # families whose rate is in operations, not in bytes


def show(record: dict[str, Any], console: Console) -> None:
    """Print everything a reader of the run wants to see."""
    _show_machine(record, console)
    seen = dict.fromkeys([(row["family"], row["threads"]) for row in record["rows"]])
    for family, threads in sorted(seen, key=lambda key: [f for f, _ in seen].index(key[0])):
        rows = [row for row in record["rows"] if (row["family"], row["threads"]) == (family, threads)]
        console.print(family_table(family, threads, rows))
    if record["compile"]:
        console.print(_compile_table(record["compile"]))
    if record["geomeans"]:
        console.print(_means(record))
    if record.get("networks"):
        console.print(_networks(record["networks"]))
    told = [bar for bar in record["bars"] if bar["value"] is not None or bar["below"]]
    if told:
        console.print(_bars(told))
        if len(told) < len(record["bars"]):
            console.print(f"{len(record['bars']) - len(told)} bars are about rows that are not here", highlight=False)
    for note in record["notes"]:
        console.print(f"note: {note}", highlight=False, markup=False)


def family_table(family: str, threads: int, rows: list[Row]) -> Table:
    """A row a case: our time and rate, how near the roofline, then how many times faster than each peer."""
    peers = [peer for peer in PEERS if any(peer in row.get("ratios", {}) for row in rows)]
    count = f"{threads} thread{'s' if threads > 1 else ''}"
    table = Table(title=f"{family}, {count}   (peer's time / ours: above 1 ours is faster)", title_justify="left")
    rate = "GFLOP/s" if family in MATRICES else "GB/s"
    for heading in ("", "ours", rate, "of roofline"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for peer in peers:
        # Where there are many, the title has to say what the figures are.
        table.add_column(peer if len(peers) > 3 else f"{peer} / ours", justify="right", no_wrap=True)
    table.add_column("A/A", justify="right", no_wrap=True)
    for row in rows:
        if row["status"] != "ok":
            message = str(row.get("message", "")).splitlines()
            table.add_row(row["name"], f"[red]{row['status'].upper()}[/]", "", "", *[""] * len(peers), "")
            table.add_row(f"  [red]{_plain(message[0] if message else '')[:76]}[/]")
            continue
        seconds = row["contenders"][OURS]["seconds"]
        work = row["flops"] if family in MATRICES else row["read"] + row["written"]
        roofline = row.get("roofline")
        share = f"{roofline['share']:.0%} {roofline['bound']}" if roofline else "-"
        cells = [_ratio(row["ratios"].get(peer), doubtful=peer in row.get("doubtful", {})) for peer in peers]
        rate_here = f"{work / seconds / 1e9:.1f}"
        table.add_row(row["name"], duration(seconds), rate_here, share, *cells, _ratio(row["ratios"][AGAIN], 0))
    return table


def duration(seconds: float) -> str:
    """Seconds with a unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _ratio(ratio: dict[str, float] | None, good: float = 1.0, doubtful: bool = False) -> str:
    if ratio is None:
        return "-"
    if doubtful:
        return f"{ratio['median']:.2f} ?"
    half = max(ratio["high"] - ratio["median"], ratio["median"] - ratio["low"])
    style = "" if not good else "green" if ratio["low"] >= good else "yellow" if ratio["high"] >= good else "red"
    text = f"{ratio['median']:.2f} ±{half:.2f}"
    return f"[{style}]{text}[/]" if style else text


def _show_machine(record: dict[str, Any], console: Console) -> None:
    machine, cores = record["machine"], record["machine"]["cores"]
    console.print(f"{record['date']}: {machine['cpu']} ({machine['arch']}), {cores} core{'s' if cores > 1 else ''}")
    console.print(", ".join([f"{name} {version}" for name, version in record["versions"].items()]), highlight=False)
    for threads, roofline in record["roofline"].items():
        if roofline:
            streams = ", ".join([f"{name} {rates[-1][1] / 1e9:.1f}" for name, rates in roofline["bandwidth"].items()])
            peak = roofline["flops"]
            console.print(
                f"peak on {threads}: {peak['float32'] / 1e9:.1f} GFLOP/s float32, {peak['float64'] / 1e9:.1f} float64; "
                f"large streams in GB/s: {streams}",
                highlight=False,
            )


def _compile_table(rows: list[Row]) -> Table:
    table = Table(title="compiling, in a process of its own", title_justify="left")
    for heading in ("", "import", "cold", "warm", "schedule", "lower", "LLVM", "peak memory"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        if row["status"] != "ok":
            table.add_row(row["name"], f"[red]ERROR[/] {_plain(row['message'])}")
            continue
        figures = [row["import"], row["cold"], row["warm"], *row["groups"].values()]
        table.add_row(row["name"], *map(duration, figures), f"{row['peak_bytes'] / 2**20:.0f} MiB")
    return table


def _means(record: dict[str, Any]) -> Table:
    table = Table(title="geometric means of the ratios", title_justify="left")
    peers = [*PEERS, AGAIN]
    found = {(mean["family"], mean["threads"], mean["peer"]): mean for mean in record["geomeans"]}
    peers = [peer for peer in peers if any(key[2] == peer for key in found)]
    for heading in ("family", "threads", *peers):
        table.add_column("A/A" if heading == AGAIN else heading, justify="right" if heading != "family" else "left")
    for family, threads in dict.fromkeys([key[:2] for key in found]):
        means = [found.get((family, threads, peer)) for peer in peers]
        table.add_row(family, str(threads), *[f"{mean['ratio']:.2f}" if mean else "-" for mean in means])
    return table


def _networks(sums: list[Row]) -> Table:
    title = "convolutions of networks   (peer's time / ours: all layers as often as they occur · geometric mean)"
    table = Table(title=title, title_justify="left")
    peers = [peer for peer in [*PEERS, BEST] if any(peer in entry["ratios"] for entry in sums)]
    for heading in ("network", "", "threads", "layers", "ours", "GFLOP/s", *peers):
        table.add_column(heading, justify="left" if heading in ("network", "") else "right", no_wrap=True)
    for entry in sums:
        both = [(entry["totals"].get(peer), entry["ratios"].get(peer)) for peer in peers]
        table.add_row(
            entry["family"],
            entry["group"],
            str(entry["threads"]),
            f"{entry['rows']} of {entry['all_rows']}",
            duration(entry["seconds"]),
            f"{entry['flops'] / entry['seconds'] / 1e9:.0f}",
            *[f"{total:.2f} · {mean:.2f}" if total and mean else "-" for total, mean in both],
        )
    return table


def _bars(bars: list[Row]) -> Table:
    table = Table(title="what we promise", title_justify="left")
    for heading in ("", "threads", "kind", "bar", "here", "", "below the bar"):
        table.add_column(heading, justify="right" if heading in ("threads", "bar", "here") else "left")
    verdicts = {True: "[green]kept[/]", False: "[red]missed[/]", None: "no verdict"}
    for bar in bars:
        here = "-" if bar["value"] is None else f"{bar['value']:.3f}{' s' if bar.get('seconds') else ''}"
        limit = f"{'≤' if bar.get('seconds') else '≥'} {bar['threshold']:g}"
        below = _plain(", ".join(bar["below"][:4]) + (" …" if len(bar["below"]) > 4 else ""))
        table.add_row(bar["what"], str(bar["threads"] or ""), bar["kind"], limit, here, verdicts[bar["passed"]], below)
    return table


def _plain(text: str) -> str:
    """Text that holds brackets, as rich wants it."""
    return text.replace("[", r"\[")
