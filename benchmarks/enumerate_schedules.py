"""Ask the schedule engine for every step of many small programs, and hold its answers against the truth.

    python benchmarks/enumerate_schedules.py --cases 20000 --seed 0 --jobs 2 --json enumeration.json
    python benchmarks/enumerate_schedules.py --exhaustive --sizes 1 2 3
    python benchmarks/enumerate_schedules.py --cases 1000000 --seed 7 --jobs 16 --record campaign --seconds 540

With `--record` every part of 500 cases is written down when it is done, and `--seconds` ends with the parts under way.
The same command goes on where the last one stopped, and shows the whole campaign.

Exit status 1 when anything wrong was accepted. The table has one row a primitive; below it, the false refusals by
reason with an example each, and every false acceptance made small, as a script and a trace.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("LOOPWRIGHT_FREEZE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from benchmarks.campaign_record import Record
from loopwright.display import progress
from loopwright.schedule import Schedule
from tests.schedule.harness.cases import Move
from tests.schedule.harness.enumerate import (
    OUTCOMES,
    Answer,
    Case,
    Site,
    Tally,
    all_single_steps,
    cases,
    run,
)
from tests.schedule.harness.legality import truth_about
from tests.schedule.harness.programs import Program
from tests.schedule.harness.reduce import Failing, Failure, reduced

PART = 500  # cases a job takes at a time


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="how many cases (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3, 4], help="extents of the programs")
    parser.add_argument(
        "--exhaustive", action="store_true", help="every single step at these sizes, instead of a sample"
    )
    parser.add_argument("--kinds", nargs="+", help="only these steps, e.g. Merge ComputeAt")
    parser.add_argument("--programs", nargs="+", help="only these programs, e.g. sums_of_a_triangle")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the counts and every bad case here")
    parser.add_argument("--record", type=Path, help="a folder for the parts that are done, to go on with later")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no part after so many seconds")
    options = parser.parse_args()
    start = time.perf_counter()
    if options.record:
        return _recorded(options)
    tally = _campaign(options)
    seconds = time.perf_counter() - start
    console = Console() if sys.stdout.isatty() else Console(width=180)
    _show(console, tally, seconds)
    small = [_smallest(case, answer) for case, answer in tally.false_acceptances[:10]]
    for failing in small:
        console.rule("false acceptance")
        console.print(failing.report(), markup=False, highlight=False)
    if options.json:
        options.json.write_text(
            json.dumps(_as_data(tally, small, seconds, options), indent=1, ensure_ascii=False) + "\n"
        )
    return 1 if tally.false_acceptances else 0


def _campaign(options: argparse.Namespace) -> Tally:
    jobs = options.jobs
    if options.exhaustive:
        parts = [(position, jobs * 4, options.sizes, options.kinds) for position in range(jobs * 4)]
        return _joined(jobs, _share, parts)
    return _joined(jobs, _sample, _parts(options))


class Part(NamedTuple):
    """So many cases from a seed on."""

    seed: int
    count: int
    sizes: Sequence[int]
    kinds: Sequence[str] | None
    programs: Sequence[str] | None


def _parts(options: argparse.Namespace) -> list[Part]:
    counts = [PART] * (options.cases // PART) + [options.cases % PART]
    seeds = [options.seed * 1_000_003 + position for position in range(len(counts))]
    chosen = options.sizes, options.kinds, options.programs
    return [Part(seed, count, *chosen) for seed, count in zip(seeds, counts, strict=True) if count]


def _recorded(options: argparse.Namespace) -> int:
    """Do the parts that are not recorded yet, then show all that are."""
    settings = {name: getattr(options, name) for name in ("cases", "seed", "sizes", "kinds", "programs")}
    record = Record(options.record, settings)
    parts = {str(part[0]): part for part in _parts(options)}
    left = record.run(_sample_as_data, parts, options.jobs, options.seconds)
    return _show_record(record, left)


def _sample_as_data(part: Part) -> dict[str, Any]:
    start = time.perf_counter()
    tally = _sample(part)
    return {
        "seed": part[0],
        "seconds": round(time.perf_counter() - start, 2),
        "by_primitive": {kind: dict(counts) for kind, counts in tally.counts.items()},
        "slowest": tally.slowest,
        "false_refusals": [(case.move.kind, answer.said, str(case)) for case, answer in tally.false_refusals],
        "broken": [f"{case}\n{answer.said}" for case, answer in tally.broken],
        "false_acceptances": [f"{case}\n{answer.witness}" for case, answer in tally.false_acceptances],
    }


def _show_record(record: Record, left: int) -> int:
    tally, seconds, refusals, broken, wrong = Tally(), 0.0, [], [], []
    for part in record.parts():
        for kind, counts in part["by_primitive"].items():
            tally.counts.setdefault(kind, Counter()).update(counts)
        seconds += part["seconds"]
        tally.slowest = max(tally.slowest, tuple(part["slowest"]))
        refusals += part["false_refusals"]
        broken += part["broken"]
        wrong += part["false_acceptances"]
    console = Console() if sys.stdout.isatty() else Console(width=180)
    _show(console, tally, seconds)
    reasons = Counter([f"{kind}: {said.split(':')[0]}" for kind, said, _ in refusals])
    for reason, count in reasons.most_common(40):
        console.print(f"{count:6} false refusals: {reason}", markup=False, highlight=False)
    console.print(f"slowest case: {tally.slowest[0]:.1f} s, {tally.slowest[1]}", markup=False, highlight=False)
    for title, texts in (("broken", broken), ("FALSE ACCEPTANCE", wrong)):
        for text in texts[:20]:
            console.rule(title)
            console.print(text, markup=False, highlight=False)
    bad = f"{len(wrong)} false acceptances, {len(broken)} broken"
    console.print(f"{tally.total} cases recorded, {bad}; {left} parts left")
    return 1 if wrong else 0


def _joined(jobs: int, work: object, parts: Sequence[tuple[Any, ...]]) -> Tally:
    tally = Tally()
    with progress.shown(), progress.task("cases", len(parts)) as task:
        if jobs == 1:
            for part in parts:
                tally.join(work(part))  # type: ignore[operator]
                task.advance(f"{tally.total} done")
            return tally
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            for found in pool.map(work, parts):  # type: ignore[arg-type]
                tally.join(found)
                task.advance(f"{tally.total} done")
    return tally


def _sample(part: Part) -> Tally:
    return run(cases(part.seed, part.sizes, part.kinds, part.programs), part.count)


def _share(part: tuple[int, int, Sequence[int], Sequence[str] | None]) -> Tally:
    """Every `parts`-th of all single steps."""
    position, parts, sizes, kinds = part
    source: Iterator[tuple[Site, Move]] = islice(all_single_steps(sizes, kinds), position, None, parts)
    return run(source, sys.maxsize)


def _smallest(case: Case, answer: Answer) -> Failing:
    failing = Failing(case.program, (*case.so_far, case.move), Failure("accepted, but wrong", answer.witness))
    return reduced(failing, _wrongly_accepted)


def _wrongly_accepted(program: Program, moves: Sequence[Move]) -> Failure | None:
    sch = Schedule(program.function)
    for step in moves:
        step.apply(sch)
    real = truth_about(program.function, sch.view().function)
    if real is None or real.is_right:
        return None
    return Failure("accepted, but wrong", real.why)


def _show(console: Console, tally: Tally, seconds: float) -> None:
    table = Table(
        title=f"{tally.total} cases in {seconds:.0f} s ({1000 * seconds / max(tally.total, 1):.1f} ms a case)"
    )
    table.add_column("primitive")
    for outcome in OUTCOMES:
        table.add_column(outcome, justify="right")
    for kind, counts in tally.counts.items():
        table.add_row(kind, *[str(counts[outcome] or "") for outcome in OUTCOMES])
    table.add_section()
    sums = [sum([counts[outcome] for counts in tally.counts.values()]) for outcome in OUTCOMES]
    table.add_row("all", *[str(total) for total in sums])
    console.print(table)
    for title, pairs in (("false refusals", tally.false_refusals), ("broken", tally.broken)):
        if pairs:
            console.print(_by_reason(title, pairs))


def _by_reason(title: str, pairs: Sequence[tuple[Case, Answer]]) -> Table:
    table = Table(title=f"{len(pairs)} {title}")
    for column in ("primitive", "said", "count", "example"):
        table.add_column(column, justify="right" if column == "count" else "left")
    groups: dict[tuple[str, str], list[tuple[Case, Answer]]] = {}
    for case, answer in pairs:
        groups.setdefault((case.move.kind, answer.said.split(":")[0]), []).append((case, answer))
    for (kind, said), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        case, answer = min(members, key=lambda member: len(str(member[0])))
        table.add_row(kind, said, str(len(members)), f"{case}\n{answer.said[:300]}")
    return table


def _as_data(tally: Tally, small: Sequence[Failing], seconds: float, options: argparse.Namespace) -> dict[str, object]:
    def told(pairs: Sequence[tuple[Case, Answer]]) -> list[dict[str, str]]:
        return [{"case": str(case), "said": answer.said, "truth": answer.witness} for case, answer in pairs]

    return {
        "cases": tally.total,
        "seconds": round(seconds, 1),
        "seed": options.seed,
        "sizes": options.sizes,
        "exhaustive": options.exhaustive,
        "by_primitive": {kind: dict(counts) for kind, counts in tally.counts.items()},
        "false_refusals_by_reason": {f"{kind}: {said}": count for (kind, said), count in tally.reasons().items()},
        "false_acceptances": told(tally.false_acceptances),
        "smallest": [failing.report() for failing in small],
        "false_refusals": told(tally.false_refusals),
        "broken": told(tally.broken),
    }


if __name__ == "__main__":
    sys.exit(main())
