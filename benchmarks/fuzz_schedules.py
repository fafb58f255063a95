"""Random programs under random schedules, compared with the unscheduled program in every way of running.

    python benchmarks/fuzz_schedules.py --cases 5000 --seed 0 --jobs 2 --steps 8
    python benchmarks/fuzz_schedules.py --cases 20000 --seed 0 --jobs 16 --record campaign --seconds 540

With `--record` every part of 25 programs is written down when it is done; `--seconds` ends with those under way, and
the same command goes on where the last one stopped.

Exit status 1 when a case fails; each failing case is made small and printed as a script and a trace.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("LOOPWRIGHT_FREEZE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from benchmarks.campaign_record import Record
from loopwright.display import progress
from tests.schedule.harness.fuzz import ONLY, STEPS, Campaign, fuzz

PART = 25  # cases a job takes at a time

Part = tuple[int, int, int, int, str | None]  # the first seed, the one after the last, and how


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=300, help="how many programs (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps a schedule (default {STEPS})")
    parser.add_argument("--native-every", type=int, default=1, help="run every so many-th natively (default 1: all)")
    parser.add_argument("--only", choices=sorted(ONLY), help="only loops that are no boxes, or of scalar sizes")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path, help="a folder for the parts that are done, to go on with later")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no part after so many seconds")
    options = parser.parse_args()
    start = time.perf_counter()
    found = Campaign()
    stop = options.seed + options.cases
    parts = [
        (first, min(first + PART, stop), options.native_every, options.steps, options.only)
        for first in range(options.seed, stop, PART)
    ]
    if options.record:
        return _recorded(options, parts)
    with progress.shown(), progress.task("schedules", len(parts)) as task:
        if options.jobs == 1:
            for part in parts:
                found.join(_part(part))
                task.advance(f"{found.cases} done, {len(found.failing)} failing")
        else:
            with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
                for made in pool.map(_part, parts):
                    found.join(made)
                    task.advance(f"{found.cases} done, {len(found.failing)} failing")
    _show(found, time.perf_counter() - start)
    return 1 if found.failing else 0


def _recorded(options: argparse.Namespace, parts: list[Part]) -> int:
    """Do the parts that are not recorded yet, then show all that are."""
    settings = {name: getattr(options, name) for name in ("cases", "seed", "steps", "native_every", "only")}
    record = Record(options.record, settings)
    record.run(_part_as_data, {str(part[0]): part for part in parts}, options.jobs, options.seconds)
    found, failing, seconds = Campaign(), [], 0.0
    for part in record.parts():
        found.cases += part["cases"]
        found.short += part["short"]
        found.steps += part["steps"]
        found.asked.update(part["asked"])
        found.accepted.update(part["accepted"])
        failing += part["failing"]
        seconds += part["seconds"]
    _show(found, seconds)
    for text in failing[:20]:
        print("--- failing case\n" + text)
    print(f"{found.cases} programs recorded, {len(failing)} failing")
    return 1 if failing else 0


def _part_as_data(part: Part) -> dict[str, Any]:
    start = time.perf_counter()
    found = _part(part)
    return {
        "first": part[0],
        "seconds": round(time.perf_counter() - start, 2),
        "cases": found.cases,
        "short": found.short,
        "steps": found.steps,
        "asked": dict(found.asked),
        "accepted": dict(found.accepted),
        "failing": [failing.report() for failing in found.failing],
    }


def _part(part: Part) -> Campaign:
    first, stop, native_every, steps, only = part
    return fuzz(range(first, stop), native_every, steps, only=only)


def _show(found: Campaign, seconds: float) -> None:
    console = Console()
    told = f"{found.cases} cases ({found.short} short of steps), {found.steps} steps in {seconds:.0f} s"
    table = Table(title=f"{told}; {len(found.failing)} failing")
    for column in ("primitive", "asked", "accepted"):
        table.add_column(column, justify="left" if column == "primitive" else "right")
    for kind, asked in found.asked.most_common():
        table.add_row(kind, str(asked), str(found.accepted[kind]))
    console.print(table)
    for failing in found.failing:
        console.rule("failing case")
        console.print(failing.report(), markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
