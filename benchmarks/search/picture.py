"""picture: the curves of a record. Needs matplotlib."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.search.cli import at, mean


def picture(record: dict[str, Any], path: Path) -> None:
    """Write the curves: each task thin, the geometric mean thick."""
    importlib.import_module("matplotlib").use("Agg")  # no window, wherever this runs
    pyplot = importlib.import_module("matplotlib.pyplot")
    rows = [row for row in record["rows"] if "error" not in row]
    trials = range(record["settings"]["trials"])
    figure, axis = pyplot.subplots(figsize=(9, 6), constrained_layout=True)
    for row in rows:
        axis.plot(trials, [at(row, k) for k in trials], color="#8b949e", linewidth=0.7)
    axis.plot(trials, [mean([at(row, k) for row in rows]) for k in trials], color="#c83c32", linewidth=2.5)
    axis.set_xlabel("measurements after the rule's own")
    axis.set_ylabel("speed, the rule's schedule = 1")
    machine = record["machine"]
    axis.set_title(f"{len(rows)} tasks, {record['settings']['threads']} thread(s), {machine['cpu']}, {record['date']}")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
