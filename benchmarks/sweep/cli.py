"""The command line of the sweep.

    python -m benchmarks.sweep run --seed 1 --cases 200 --out FILE.json
    python -m benchmarks.sweep run --seed 1 --cases 1000 --piece 1/4 --out PIECE1.json
    python -m benchmarks.sweep merge PIECE1.json PIECE2.json … WHOLE.json
    python -m benchmarks.sweep report FILE.json [--before OTHER.json]
    python -m benchmarks.sweep one --seed 1 --case 17 [--profile]
    python -m benchmarks.sweep list --seed 1 --cases 50
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from benchmarks.bench.children import pool_settings
from benchmarks.bench.table import duration
from benchmarks.sweep import report
from benchmarks.sweep.case import KERNEL, MODEL
from benchmarks.sweep.families import FAMILIES, NoSuchCase, case_of
from benchmarks.sweep.one import show_one
from benchmarks.sweep.row import OURS, Row
from benchmarks.sweep.run import Options, merged, run


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a case of ours is wrong, crashes, hangs or does not compile."""
    chosen = _parser().parse_args(arguments)
    done: int = chosen.command(chosen)
    return done


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 200)


def _options(chosen: argparse.Namespace) -> Options:
    piece, pieces = chosen.piece
    return Options(
        seed=chosen.seed,
        cases=chosen.cases,
        piece=piece,
        pieces=pieces,
        threads=chosen.threads,
        budget=chosen.budget,
        families=chosen.families,
        ours=chosen.ours,
        only=chosen.only,
        indices=chosen.indices,
        before=chosen.before,
        patience=chosen.patience,
    )


def _run(chosen: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is stopped keeps what it has
    start = perf_counter()

    def progress(row: Row) -> None:
        print(f"{perf_counter() - start:7.1f} s  {line_of(row)}", file=sys.stderr, flush=True)

    try:
        record = run(_options(chosen), progress)
    except NoSuchCase as error:
        print(error, file=sys.stderr)
        return 2
    record["settings"]["seconds"] = round(perf_counter() - start, 1)
    if chosen.out is not None:
        _write(record, chosen.out)
    report.show(record, _console())
    return 1 if any([row["status"] in report.FAILURES for row in record["rows"]]) else 0


def line_of(row: Row) -> str:
    """A row on one line."""
    head = f"{row['index']:5} {row['family']:12} {row['ours']:6}"
    if row["status"] != "ok":
        return f"{head} {row['status']:6} {row['name']}  {row.get('message', '')[:150]}"
    peer = f"{row['fastest']} {duration(row['seconds'][row['fastest']])}"
    return f"{head} {row['ratio']:6.2f} {row['name']}  ours {duration(row['seconds'][OURS])}, {peer}"


def _merge(chosen: argparse.Namespace) -> int:
    try:
        record = merged([_read(path) for path in chosen.records])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    _write(record, chosen.whole)
    report.show(record, _console())
    return 0


def _report(chosen: argparse.Namespace) -> int:
    before = None if chosen.before is None else _read(chosen.before)
    report.show(_read(chosen.record), _console(), before, chosen.worst)
    return 0


def _list(chosen: argparse.Namespace) -> int:
    for index in _options(chosen).chosen():
        case = case_of(chosen.seed, index)
        print(f"{index:5} {case.family:12} {case.ours:6} {case.name}")
    return 0


def _one(chosen: argparse.Namespace) -> int:
    settings = {**pool_settings(chosen.threads), "LOOPWRIGHT_CACHE": "0"}
    if any([os.environ.get(name) != value for name, value in settings.items()]):  # libraries read them when they load
        given = [sys.executable, "-m", "benchmarks.sweep", *sys.argv[1:]]
        return subprocess.run(given, env={**os.environ, **settings}, check=False).returncode
    return show_one(chosen.seed, chosen.case, chosen.threads, chosen.budget, chosen.profile, chosen.ours, _console())


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _write(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, command, words in (("run", _run, "measure cases"), ("list", _list, "name the cases of a run")):
        made = commands.add_parser(name, help=words)
        made.set_defaults(command=command)
        made.add_argument("--seed", type=int, default=0)
        made.add_argument("--cases", type=int, default=100, help="how many (default 100)")
        made.add_argument("--piece", type=_piece, default=(1, 1), metavar="I/K", help="the I-th of K pieces, from 1")
        made.add_argument("--threads", type=int, default=1)
        made.add_argument("--budget", type=float, default=0.3, help="seconds to time a case for (default 0.3)")
        made.add_argument("--families", type=_families, default=FAMILIES, help=f"some of {','.join(FAMILIES)}")
        made.add_argument("--ours", choices=[KERNEL, MODEL], help="kernels or models only")
        made.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
        made.add_argument("--indices", type=_indices, default=(), help="these cases, by commas")
        made.add_argument("--before", metavar="FOLDER", help="measure the Loopwright of another folder")
        made.add_argument("--patience", type=float, default=120.0, help="seconds that a case may take (default 120)")
        if name == "run":
            made.add_argument("--out", type=Path, metavar="FILE", help="where the record is written")
    made = commands.add_parser("merge", help="one record of several pieces")
    made.set_defaults(command=_merge)
    made.add_argument("records", type=Path, nargs="+")
    made.add_argument("whole", type=Path)
    made = commands.add_parser("report", help="what a record says")
    made.set_defaults(command=_report)
    made.add_argument("record", type=Path)
    made.add_argument("--before", type=Path, metavar="FILE", help="the record of another version, to compare with")
    made.add_argument("--worst", type=int, default=20, help="how many of the worst rows (default 20)")
    made = commands.add_parser("one", help="look at one case")
    made.set_defaults(command=_one)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--case", type=int, required=True)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--budget", type=float, default=1.0)
    made.add_argument("--ours", choices=[KERNEL, MODEL], help="as this, whatever was drawn")
    made.add_argument("--profile", action="store_true", help="show the rules that scheduled it, or the layers' times")
    return parser


def _piece(text: str) -> tuple[int, int]:
    one, slash, of = text.partition("/")
    if not slash or not one.isdecimal() or not of.isdecimal() or not 1 <= int(one) <= int(of):
        raise argparse.ArgumentTypeError(f"{text!r} is no piece such as 2/4")
    return int(one), int(of)


def _indices(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _families(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in FAMILIES]
    if unknown or not names:
        wrong = ", ".join(unknown) or repr(text)
        raise argparse.ArgumentTypeError(f"no family {wrong}; there are {', '.join(FAMILIES)}")
    return names
