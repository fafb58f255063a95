"""One picture of a record: the roofline with our kernels under it, and the ratios to each peer. Needs matplotlib."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COLOURS = {
    "C": "#7f7f7f",
    "memcpy": "#bcbd22",
    "numpy": "#1f77b4",
    "onnxruntime": "#2ca02c",
    "openvino": "#9467bd",
    "torch": "#d62728",
    "torch compile": "#ff9f4a",
    "ours float32": "#17becf",
    "ours winograd": "#8c564b",
}


class NoMatplotlib(Exception):
    """The picture needs a package that is not installed."""


def plot(record: dict[str, Any], path: Path) -> None:
    """Write the picture; raises NoMatplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise NoMatplotlib("no picture: matplotlib is not installed (pip install matplotlib)")
    importlib.import_module("matplotlib").use("Agg")  # no window, wherever this runs
    pyplot = importlib.import_module("matplotlib.pyplot")
    rows = [row for row in record["rows"] if row["status"] == "ok"]
    counts = list(dict.fromkeys([row["threads"] for row in rows])) or [1]
    tallest = max([sum([1 for row in rows if row["threads"] == count]) for count in counts])
    figure, axes = pyplot.subplots(
        2,
        len(counts),
        figsize=(9 * len(counts), 6 + 0.24 * tallest),
        height_ratios=[5, max(0.24 * tallest, 1)],
        squeeze=False,
        constrained_layout=True,
    )
    machine = record["machine"]
    figure.suptitle(f"Loopwright on {machine['cpu']}, {machine['cores']} cores, {record['date']}", fontsize=14)
    for column, count in enumerate(counts):
        mine = [row for row in rows if row["threads"] == count]
        _draw_roofline(axes[0][column], mine, record["roofline"].get(str(count)), count)
        _draw_ratios(axes[1][column], mine)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _draw_roofline(axis: Any, rows: list[Row], roofline: dict[str, Any] | None, threads: int) -> None:
    """Operations a second over operations a byte; kernels that only move data are not here."""
    axis.set_title(f"{threads} thread{'s' if threads > 1 else ''}: roofline")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=10)
    axis.set_xlabel("operations per byte moved at least")
    axis.set_ylabel("GFLOP/s, float32")
    points = [row for row in rows if row["flops"] and row["dtype"] == "float32"]
    intensities = [row["flops"] / (row["read"] + row["written"]) for row in points] or [1.0]
    low, high = min([0.125, *intensities]) / 2, max([64.0, *intensities]) * 2
    if roofline:
        peak = roofline["flops"]["float32"]
        axis.plot([low, high], [peak / 1e9] * 2, color="black", linewidth=1.5)
        axis.annotate(f"FMA peak {peak / 1e9:.0f} GFLOP/s", (high, peak / 1e9), ha="right", va="bottom", fontsize=9)
        curve = roofline["bandwidth"]["read"]
        for (size, rate), style in ((curve[0], "--"), (curve[-1], "-")):
            knee = peak / rate
            axis.plot([low, knee], [low * rate / 1e9, peak / 1e9], color="black", linewidth=1, linestyle=style)
            text = f"read {rate / 1e9:.0f} GB/s, {_size(size)}"
            axis.annotate(text, (low, low * rate / 1e9), fontsize=8, va="bottom", rotation=0)
    families = list(dict.fromkeys([row["family"] for row in points]))
    for number, family in enumerate(families):
        mine = [row for row in points if row["family"] == family]
        axis.scatter(
            [row["flops"] / (row["read"] + row["written"]) for row in mine],
            [row["flops"] / row["contenders"]["ours"]["seconds"] / 1e9 for row in mine],
            label=family,
            color=f"C{number}",
            s=28,
            zorder=3,
        )
    if families:
        axis.legend(fontsize=9, loc="center left")
    axis.grid(True, which="major", alpha=0.25)


def _draw_ratios(axis: Any, rows: list[Row]) -> None:
    """A line a row, a dot a peer with its interval; right of 1, ours is faster."""
    axis.set_title("peer's time / ours (right of 1 ours is faster)")
    axis.set_xscale("log", base=2)
    axis.axvline(1, color="black", linewidth=1)
    names = [f"{row['family']} {row['name']}" for row in rows]
    for peer, colour in COLOURS.items():
        at = [number for number, row in enumerate(rows) if peer in row["ratios"]]
        found = [rows[number]["ratios"][peer] for number in at]
        if found:
            medians = [ratio["median"] for ratio in found]
            spread = [
                [ratio["median"] - ratio["low"] for ratio in found],
                [ratio["high"] - ratio["median"] for ratio in found],
            ]
            axis.errorbar(medians, at, xerr=spread, fmt="o", markersize=4, color=colour, label=peer, linewidth=1)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.grid(True, axis="both", alpha=0.2)
    if rows:
        axis.legend(fontsize=9, loc="best")


def _size(bytes_: float) -> str:
    return f"{bytes_ / 2**20:.0f} MiB" if bytes_ >= 2**20 else f"{bytes_ / 2**10:.0f} KiB"
