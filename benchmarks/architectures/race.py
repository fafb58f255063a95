"""race: the models, beside ONNX Runtime and another version of Loopwright.

    python -m benchmarks.architectures                                  all models, on one thread and on two
    python -m benchmarks.architectures unet yolo --threads 1            some of them
    python -m benchmarks.architectures --before ../before --json FILE   also beside the Loopwright of another folder
    python -m benchmarks.architectures --show FILE [FILE …]             tables of records

Every contender is a process of its own (`contender.py`); rounds are interleaved; a ratio is the other's time over ours
in the same round, and figures are medians. A model takes part when our results are near those of float64 (`exact.py`);
others that are not, or that fail, are left out with a word. The exit status is 1 when one of ours is wrong or fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.architectures.contender import ONNXRUNTIME, Array, Contender, Failed
from benchmarks.architectures.exact import difference, exact_results
from benchmarks.architectures.models import MODELS, inputs_of
from benchmarks.architectures.table import show
from benchmarks.bench import doubts, machine
from benchmarks.bench.child import PAUSE
from benchmarks.bench.children import ROOT
from benchmarks.bench.measure import Effort, measure
from benchmarks.bench.row import OURS, summary

BEFORE = "before"
TOLERANCE = 1e-4  # of the largest number of a result: how far ours may be from float64
OF_OTHERS = 1e-2  # the same for others: ONNX Runtime resizes bytes with weights of few bits
SAMPLE = 0.01  # seconds of calls in a row
LEAST, MOST = 7, 31  # rounds
Row = dict[str, Any]


def race(names: Sequence[str], threads: Sequence[int], before: Path | None, budget: float) -> dict[str, Any]:
    """The record, as it is written to JSON."""
    record: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": machine.describe(),
        "versions": machine.versions(""),
        "settings": {"budget_seconds": budget, "tolerance": TOLERANCE, "load_before": doubts.load()},
        "rows": [],
    }
    with tempfile.TemporaryDirectory(prefix="architectures-") as folder:
        cases = [_Case(name, Path(folder)) for name in names]
        for count in sorted(threads, reverse=True):  # compiled by many processes first; then the cache has it
            contenders = _Contenders(count, before)
            try:
                for case in cases:
                    row = row_of(case, contenders, budget)
                    record["rows"].append(row)
                    print(_line(row), file=sys.stderr, flush=True)
            finally:
                contenders.close()
    record["rows"].sort(key=lambda row: row["threads"])
    return record


class _Case:
    """A model as files that every contender gets, and its results in float64."""

    def __init__(self, name: str, folder: Path) -> None:
        import onnx

        self.name, self.model, self.inputs = name, folder / f"{name}.onnx", folder / f"{name}.npz"
        made = MODELS[name]()
        onnx.checker.check_model(made)
        given = inputs_of(made)
        self.exact: list[Array] = exact_results(made, given)
        self.rounds = any([x.dtype == np.uint8 for x in given.values()])
        onnx.save(made, str(self.model))
        np.savez(self.inputs, **given)


class _Contenders:
    """The processes of a number of threads; one that has died is started again for the next model."""

    def __init__(self, threads: int, before: Path | None) -> None:
        self.threads = threads
        self.folders = {OURS: ROOT, ONNXRUNTIME: None, **({} if before is None else {BEFORE: before})}
        self.running: dict[str, Contender] = {}

    def of(self, name: str) -> Contender:
        kept = self.running.get(name)
        if kept is None or kept.process.poll() is not None:
            kept = self.running[name] = Contender(name, self.folders[name], self.threads)
        return kept

    def close(self) -> None:
        for contender in self.running.values():
            contender.close()


def row_of(case: _Case, contenders: _Contenders, budget: float) -> Row:
    """What was found out about a model; `status` is ok, wrong or error."""
    row: Row = {"name": case.name, "threads": contenders.threads, "status": "error", "left_out": {}, "made": {}}
    taking: dict[str, Contender] = {}
    row["difference"] = {}
    for name in contenders.folders:
        try:
            contender = contenders.of(name)
            row["made"][name] = contender.make(case.model, case.inputs)
            off = row["difference"][name] = difference(contender.results(), case.exact, case.rounds)
            if not off <= (TOLERANCE if name == OURS else OF_OTHERS):
                raise Failed(f"its results are {off:.1e} of the largest number from those of float64")
            taking[name] = contender
        except Failed as failed:
            if name == OURS:
                is_wrong = name in row["difference"]
                return {**row, "status": "wrong" if is_wrong else "error", "message": str(failed)}
            row["left_out"][name] = str(failed)
    effort = Effort(budget, SAMPLE, LEAST, MOST, pause=PAUSE if contenders.threads > 1 else 0.0)
    try:
        row.update(summary(measure(taking, effort)), status="ok")
    except Failed as failed:
        row["message"] = str(failed)
    return row


def _line(row: Row) -> str:
    head = f"{row['name']:13} {row['threads']}: "
    if row["status"] != "ok":
        return f"{head}{row['status']}: {row['message']}"
    ratios = [f"{found['median']:.2f} × {name}" for name, found in row["ratios"].items()]
    return f"{head}{row['contenders'][OURS]['seconds'] * 1e3:.3f} ms, {', '.join(ratios)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.architectures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--threads", default="1,2", help="numbers of threads, by commas (default 1,2)")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="also the Loopwright of another folder")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds to time a model for (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the record is written")
    parser.add_argument("--show", action="store_true", help="the names are records: print their tables")
    chosen = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if chosen.show:
        for name in chosen.names:
            show(json.loads(Path(name).read_text(encoding="utf-8")), console)
        return 0
    unknown = [name for name in chosen.names if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}: there are {', '.join(MODELS)}")
    if chosen.before is not None and not (chosen.before / "loopwright").is_dir():
        parser.error(f"{chosen.before} holds no package loopwright")
    threads = [int(count) for count in chosen.threads.split(",")]
    record = race(chosen.names or list(MODELS), threads, chosen.before, chosen.budget)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    show(record, console)
    return 1 if any([row["status"] != "ok" for row in record["rows"]]) else 0
