"""The command line: run searches, a process each so that they can go on side by side on many cores, and show them."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bench import machine
from benchmarks.bench.children import pool_settings
from benchmarks.search.tasks import tasks

KNOTS = (0, 1, 2, 4, 8, 16, 32, 64)  # measurements after the rule's own
FAR = 0.85  # share of the roofline below which a task has something to gain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    chosen = _parser().parse_args(arguments)
    done: int = chosen.command(chosen)
    return done


def _run(chosen: argparse.Namespace) -> int:
    wanted = [one for one in tasks() if re.search(chosen.only, f"{one.family} {one.name}")]
    rows: list[dict[str, Any]] = []
    waiting, running = deque(wanted), dict[int, tuple[Any, Any]]()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    slots = [cores[k * chosen.threads : (k + 1) * chosen.threads] for k in range(chosen.jobs)]
    if any(len(slot) < chosen.threads for slot in slots):
        print(f"{chosen.jobs} jobs of {chosen.threads} threads need more cores than {len(cores)}", file=sys.stderr)
        return 2
    while waiting or running:
        for number, slot in enumerate(slots):
            if number not in running and waiting:
                one = waiting.popleft()
                running[number] = one, _child(chosen, one, slot)
            if number in running and running[number][1].poll() is not None:
                one, child = running.pop(number)
                rows.append(_row_of(one, child))
                print(_line(rows[-1]), file=sys.stderr, flush=True)
        if running:
            next(iter(running.values()))[1].wait() if len(running) == 1 else _wait(running)
    names = ("trials", "threads", "seconds", "space", "model", "seed", "jobs")
    settings = {name: getattr(chosen, name) for name in names}
    record = {"date": date.today().isoformat(), "machine": machine.describe(), "settings": settings, "rows": rows}
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    show(record)
    return 1 if any(["error" in row for row in rows]) else 0


def _wait(running: Any) -> None:
    with suppress(subprocess.TimeoutExpired):
        next(iter(running.values()))[1].wait(timeout=0.2)


def _child(chosen: argparse.Namespace, one: Any, slot: Sequence[int]) -> Any:
    orders = {
        "name": [one.family, one.name],
        "trials": chosen.trials,
        "threads": chosen.threads,
        "seconds": chosen.seconds,
        "space": chosen.space,
        "model": chosen.model,
        "seed": chosen.seed,
        "library": not chosen.no_library,
        "cores": list(slot),
    }
    environment = {**os.environ, **pool_settings(chosen.threads)}
    command = [sys.executable, "-m", "benchmarks.search.cli", "child", json.dumps(orders)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _row_of(one: Any, child: Any) -> dict[str, Any]:
    output, errors = child.communicate()
    try:
        row: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        return {"family": one.family, "name": one.name, "error": errors[-2000:] or f"status {child.returncode}"}
    return row


def _one(chosen: argparse.Namespace) -> int:
    from benchmarks.search.curve import curve

    orders = json.loads(chosen.orders)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, orders.pop("cores"))
    family, name = orders.pop("name")
    (searched,) = [one for one in tasks() if (one.family, one.name) == (family, name)]
    print(json.dumps(curve(searched, **orders)))
    return 0


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['family']:14} {row['name']:28} failed: {row['error'].strip().splitlines()[-1][:120]}"
    library = f"library {max(row['library'].values()):.2f}" if row.get("library") else ""
    beside = f" against the rule {row['against_rule']:.3f}" if row.get("against_rule") else ""
    size = f"{len(row['ratios'])} trials, {row['seconds']:.0f} s, roofline {row['roofline']:.2f}"
    return f"{row['family']:14} {row['name']:28} {row['final']:.3f} × the rule{beside}  ({size}) {library}"


def show(record: dict[str, Any]) -> None:
    """The curve over all rows, and what came of it."""
    rows = [row for row in record["rows"] if "error" not in row]
    if not rows:
        return
    print("after k measurements, ratio to the first candidate, geometric mean of", len(rows), "tasks:")
    print("   " + "  ".join([f"{k}: {mean([at(row, k) for row in rows]):.3f}" for k in KNOTS]))
    far = [row for row in rows if row["roofline"] < FAR]
    if far:
        print(f"of the {len(far)} below {FAR:.0%} of the roofline:")
        print("   " + "  ".join([f"{k}: {mean([at(row, k) for row in far]):.3f}" for k in KNOTS]))
        print(f"   final race: {mean([row['final'] for row in far]):.3f}")
    print(f"final race, all: {mean([row['final'] for row in rows]):.3f}, least {min(row['final'] for row in rows):.3f}")
    beside = [row["against_rule"] for row in rows if row.get("against_rule")]
    if beside:
        print(f"against the rules, which were hidden: {mean(beside):.3f}, least {min(beside):.3f}")
    known = [row for row in rows if row.get("library")]
    if known:
        speeds = {k: mean([at(row, k) / of_library(row) for row in known]) for k in KNOTS}
        print(f"relative to the best library ({len(known)} tasks):")
        print("   " + "  ".join([f"{k}: {speed:.3f}" for k, speed in speeds.items()]))
    times = [row["seconds"] for row in rows]
    print(f"time: median {median(times):.0f} s, most {max(times):.0f} s")
    print(f"to make and build a candidate: median {median([row['build_seconds'] for row in rows]):.3f} s")


def at(row: dict[str, Any], k: int) -> float:
    """The best after k measurements, in terms of the final race where the search's own races promised more."""
    ratios: list[float] = row["ratios"]
    promised, final = ratios[-1], row["final"]
    value = ratios[min(k, len(ratios) - 1)]
    return value if promised <= final or promised <= 1 else 1 + (value - 1) * max(0.0, final - 1) / (promised - 1)


def of_library(row: dict[str, Any]) -> float:
    """The speed of the fastest library, relative to the rule: its time over ours, inverted."""
    return 1 / min(row["library"].values())


def mean(values: Sequence[float]) -> float:
    """Geometric."""
    return exp(sum(map(log, values)) / len(values))


def _show(chosen: argparse.Namespace) -> int:
    record = json.loads(chosen.record.read_text(encoding="utf-8"))
    for row in record["rows"]:
        print(_line(row))
    show(record)
    if chosen.picture is not None:
        from benchmarks.search.picture import picture

        picture(record, chosen.picture)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("run", help="search, task by task")
    made.set_defaults(command=_run)
    made.add_argument("--trials", type=int, default=65, help="measurements, the rule's own among them (65)")
    made.add_argument("--seconds", type=float, default=60.0, help="that a task may take (60)")
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--jobs", type=int, default=1, help="searches at one time, each on cores of its own")
    made.add_argument("--space", default="default", choices=["default", "rules", "sketches", "unpacked", "both"])
    made.add_argument("--model", default="auto")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--only", default="", metavar="REGEX", help="tasks whose family and name match")
    made.add_argument("--no-library", action="store_true", help="no peers beside the rule")
    made.add_argument("--out", type=Path, metavar="FILE")
    made = commands.add_parser("show", help="what a record says")
    made.set_defaults(command=_show)
    made.add_argument("record", type=Path)
    made.add_argument("--picture", type=Path, metavar="PNG")
    made = commands.add_parser("child")
    made.set_defaults(command=_one)
    made.add_argument("orders")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
