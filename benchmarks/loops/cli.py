"""`python -m benchmarks.loops`: races every rung on one thread and shows by how much ours is faster than gcc.

    python -m benchmarks.loops                                everything: some minutes
    python -m benchmarks.loops gemm stencil --budget 1        some families
    python -m benchmarks.loops --only "blocked" --keep OUT    rungs by name; OUT gets the C text, our LLVM and assembly
    python -m benchmarks.loops --json loops.json

Above 1, ours is faster. The exit status is 1 when a result is wrong or something does not build; being slow is no
failure.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench import machine
from benchmarks.bench.measure import Effort
from benchmarks.bench.ratios import geomean
from benchmarks.bench.row import AGAIN, OURS
from benchmarks.loops import c_compiler
from benchmarks.loops.race import run_rung
from benchmarks.loops.rungs import FAMILIES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help=f"some of {', '.join(FAMILIES)}")
    parser.add_argument("--only", default="", help="rungs whose name contains the text")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds a rung is timed, all contenders together")
    parser.add_argument("--json", type=Path, help="write the record there")
    parser.add_argument("--keep", type=Path, help="keep C text, LLVM text and assembly of each rung in this folder")
    options = parser.parse_args(arguments)
    unknown = [family for family in options.families if family not in FAMILIES]
    if unknown:
        parser.error(f"unknown family {unknown[0]}: choose from {', '.join(FAMILIES)}")
    console = Console(width=132)
    with _on_one_core():
        record = run(options.families or list(FAMILIES), options.only, options.budget, options.keep, console)
    show(record, console)
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(row["status"] != "ok" for row in record["rows"]))


@contextmanager
def _on_one_core() -> Iterator[None]:
    """Pin this process to a core for a while: the scheduler moves nobody from one L2 to another."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def run(families: Sequence[str], only: str, budget: float, keep: Path | None, console: Console) -> dict[str, Any]:
    """The record of a run."""
    record: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": machine.describe(),
        "versions": machine.versions(c_compiler.version()),
        "flags": c_compiler.command(),
        "load_before": os.getloadavg()[0],
        "rows": [],
    }
    effort = Effort(budget=budget)
    for family in families:
        for rung in FAMILIES[family]:
            if only not in rung.name:
                continue
            folder = None
            if keep is not None:
                folder = keep / re.sub(r"[^a-z0-9]+", "-", f"{family} {rung.name}".lower())
                folder.mkdir(parents=True, exist_ok=True)
            with console.status(f"{family}: {rung.name}"):
                row = {"family": family, **run_rung(rung, effort, folder)}
            record["rows"].append(row)
    ratios = [row["ratio"]["median"] for row in record["rows"] if row["status"] == "ok"]
    record["geomean"] = geomean(ratios) if ratios else None
    record["minimum"] = min(ratios, default=None)
    return record


def show(record: dict[str, Any], console: Console) -> None:
    """Print the record as a table."""
    described = record["machine"]
    console.print(f"{record['date']}: {described['cpu']} ({described['arch']}), 1 thread", highlight=False)
    console.print(f"{record['versions']['C compiler']}: {' '.join(record['flags'])}", highlight=False)
    table = Table(title="loops as written (gcc's time / ours: above 1 ours is faster)", title_justify="left")
    for heading in ("", "rung", "ours", "gcc", "which C", "GFLOP/s", "gcc / ours", "A/A", "same bits"):
        table.add_column(heading, justify="left" if heading in ("", "rung", "which C") else "right", no_wrap=True)
    family = ""
    for row in record["rows"]:
        shown = "" if row["family"] == family else row["family"]
        family = row["family"]
        if row["status"] != "ok":
            table.add_row(shown, row["name"], f"[red]{row['status'].upper()}[/]")
            continue
        ours, theirs = row["contenders"][OURS]["seconds"], row["contenders"][row["gcc"]]["seconds"]
        rate = f"{row['flops'] / ours / 1e9:.1f}" if row["flops"] else ""
        again = row["ratios"][AGAIN]["median"]
        table.add_row(
            shown, row["name"], f"{1e3 * ours:.2f} ms", f"{1e3 * theirs:.2f} ms", row["gcc"], rate,
            _coloured(row["ratio"]), f"{again:.2f}", "yes" if row["same_bits"] else "no",
        )  # fmt: skip
    console.print(table)
    if record["geomean"] is not None:
        count = sum(row["status"] == "ok" for row in record["rows"])
        console.print(
            f"{count} rungs: geometric mean {record['geomean']:.2f}, least {record['minimum']:.2f}", highlight=False
        )
    if record["load_before"] > 0.5:
        console.print(f"note: the machine was busy (load {record['load_before']:.1f})", highlight=False)
    for row in record["rows"]:
        if row["status"] != "ok":
            console.print(f"{row['name']}: {row['message']}", highlight=False, markup=False)


def _coloured(ratio: dict[str, float]) -> str:
    text = f"{ratio['median']:.2f} ±{(ratio['high'] - ratio['low']) / 2:.2f}"
    colour = "green" if ratio["low"] > 1 else "red" if ratio["high"] < 1 else ""
    return f"[{colour}]{text}[/]" if colour else text
