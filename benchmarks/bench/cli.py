"""The command line: run the benchmarks, or draw the picture of a run that was written earlier.

    python -m benchmarks.bench                                     everything, 1 thread and all cores
    python -m benchmarks.bench --quick                             a look, under a minute
    python -m benchmarks.bench --families sgemm,softmax --threads 1
    python -m benchmarks.bench show FILE.json
    python -m benchmarks.bench plot FILE.json OUT.png
    python -m benchmarks.bench merge ONE.json TWO.json … WHOLE.json
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from benchmarks.bench.cases import FAMILIES, GROUPS
from benchmarks.bench.machine import short_name
from benchmarks.bench.plot import NoMatplotlib, plot
from benchmarks.bench.run import ROOT, Options, merged, run
from benchmarks.bench.table import show

RESULTS = ROOT / "benchmarks" / "results"
ALL_FAMILIES = [*FAMILIES, "compile"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a kernel of ours is wrong, crashes or does not build."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in _OTHERS:
        return _OTHERS[given[0]](given[1:])
    chosen = _parser().parse_args(given)
    console = _console()
    start = perf_counter()
    options = Options(
        families=chosen.families,
        threads=chosen.threads,
        budget=chosen.budget,
        quick=chosen.quick,
        use_torch=not chosen.no_torch,
        use_torch_compile=not chosen.no_torch_compile,
        without=[name for name in ("onnxruntime", "openvino") if getattr(chosen, f"no_{name}")],
        only=chosen.only,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is stopped keeps what it has
    record = run(options, lambda text: print(f"{perf_counter() - start:7.1f} s  {text}", file=sys.stderr, flush=True))
    record["settings"]["seconds"] = round(perf_counter() - start, 1)
    record["settings"]["command"] = " ".join(["python -m benchmarks.bench", *_without_folders(given)])
    show(record, console)
    _write(record, chosen.json, chosen.quick, console)
    return 0 if all([row["status"] == "ok" for row in [*record["rows"], *record["compile"]]]) else 1


def _without_folders(given: Sequence[str]) -> list[str]:
    """The arguments, files by their names alone: a record says how to run it again, not where it was run."""
    return [option + mark + value.rsplit("/", 1)[-1] for option, mark, value in map(_parted, given)]


def _parted(argument: str) -> tuple[str, str, str]:
    return argument.partition("=") if argument.startswith("--") and "=" in argument else ("", "", argument)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 150)


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _write(record: dict[str, Any], path: Path | None, quick: bool, console: Console) -> None:
    """The JSON and its picture. A quick run is a look, not a result: it writes only where it is told to."""
    if path is None:
        if quick:
            console.print("a quick run is not kept; --json FILE writes it", highlight=False)
            return
        path = RESULTS / f"{record['date']}-{short_name(record['machine'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    try:
        plot(record, path.with_suffix(".png"))
        console.print(f"wrote {path.with_suffix('.png')}", highlight=False, soft_wrap=True)
    except NoMatplotlib as error:
        console.print(str(error), highlight=False, markup=False)


def _plot(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench plot", description="Draw a run.")
    parser.add_argument("record", type=Path, help="the JSON of a run")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    chosen = parser.parse_args(arguments)
    try:
        plot(_read(chosen.record), chosen.picture)
    except NoMatplotlib as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _show(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench show", description="Print the tables of a run.")
    parser.add_argument("record", type=Path, help="the JSON of a run")
    chosen = parser.parse_args(arguments)
    show(_read(chosen.record), _console())
    return 0


def _merge(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench merge", description="One record of several runs.")
    parser.add_argument("records", type=Path, nargs="+", help="the JSON of runs on one machine")
    parser.add_argument("whole", type=Path, help="the JSON to write")
    chosen = parser.parse_args(arguments)
    try:
        record = merged([_read(path) for path in chosen.records])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    _write(record, chosen.whole, False, _console())
    return 0


_OTHERS = {"plot": _plot, "show": _show, "merge": _merge}  # what is not to run the benchmarks


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rows, few repeats: under a minute")
    parser.add_argument(
        "--families", type=_families, default=ALL_FAMILIES, help=f"which, by commas (default: {','.join(ALL_FAMILIES)})"
    )
    parser.add_argument("--threads", type=_threads, default=["1", "all"], help="numbers of threads (default 1,all)")
    parser.add_argument("--budget", type=_seconds, default=2.0, help="seconds to time a row for (default 2)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--no-torch", action="store_true", help="leave torch out")
    parser.add_argument("--no-torch-compile", action="store_true", help="leave torch.compile out, which compiles long")
    for name in ("onnxruntime", "openvino"):
        parser.add_argument(f"--no-{name}", action="store_true", help="leave it out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write (default benchmarks/results/…)")
    return parser


def _families(text: str) -> list[str]:
    given = [name.strip() for name in text.split(",") if name.strip()]
    names = [family for name in given for family in GROUPS.get(name, [name])]
    unknown = [name for name in names if name not in ALL_FAMILIES]
    if unknown or not names:
        wrong, known = ", ".join(unknown) or repr(text), ", ".join([*ALL_FAMILIES, *GROUPS])
        raise argparse.ArgumentTypeError(f"no family {wrong}; there are {known}")
    return names


def _threads(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not all(name == "all" or (name.isdecimal() and int(name) > 0) for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of thread counts such as 1,all")
    return names


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is no time to measure for")
    return value
