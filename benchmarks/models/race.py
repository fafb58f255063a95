"""race: whole models, the same file to all: ours, ONNX Runtime, OpenVINO, torch and torch.compile.

    python -m benchmarks.models.race                                    all models, one thread
    python -m benchmarks.models.race resnet50 encoder --threads 2       some of them
    python -m benchmarks.models.race --batch 8 --rounds 21 --json race.json

Every contender is a process of its own, pinned to as many cores as it has threads, and stopped while others are timed.
Rounds are interleaved; figures are medians, and ratios are those of a round. Ours runs twice: how far the ratio of the
two is from 1 is what the table cannot tell. Our process loads the library that `loopwright compile` made, and nothing
of the compiler. A contender that is not installed, fails, or computes something else is left out, with a word.

Memory is the most that was resident while the model ran, after it was loaded and had run once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.bench import doubts, machine
from benchmarks.bench.apart import Gone, Helper
from benchmarks.bench.case import Array, Case, Missing
from benchmarks.bench.child import PAUSE, pin
from benchmarks.bench.measure import Effort, measure
from benchmarks.bench.peers import Peers
from benchmarks.bench.row import AGAIN, OURS, summary
from benchmarks.bench.run import ROOT, pool_settings
from benchmarks.models.race_table import show
from benchmarks.models.raced import FUNCTION, MODELS, PEERS, case_of, write_model

TOLERANCE = 1e-3  # of the largest number of a result: how far a contender may be from ours
SAMPLE = 0.05  # seconds: calls in a row, as a server makes them; the first after a pause would tell of the pause
PATIENCE = 1800.0  # seconds: torch.compile takes minutes for a deep network
LIBRARIES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "torch", "torch compile": "torch"}
Say = Callable[[str], None]


def race(
    names: Sequence[str],
    threads: int = 1,
    rounds: int = 15,
    batch: int = 1,
    peers: Sequence[str] = PEERS,
    options: Sequence[str] = (),
    cold: bool = False,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """The record of a race, as it is written to JSON; sets the threads of this process and of those it starts."""
    os.environ.update({**pool_settings(threads), "TORCHINDUCTOR_COMPILE_THREADS": "1"})
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    record: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": machine.describe(),
        "versions": machine.versions(""),
        "settings": {
            "threads": threads,
            "rounds": rounds,
            "batch": batch,
            "tolerance": TOLERANCE,
            "compile_options": list(options),
            "cold": cold,
            "load_before": doubts.load(),
        },
        "rows": [],
    }
    pin(threads)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="race-") as folder:
            row: dict[str, Any] = {"name": name, "threads": threads, "batch": batch, "status": "error"}
            try:
                say(f"{name}: compile")
                path = write_model(name, Path(folder), batch)
                library, row["compile_seconds"] = compile_ours(path, options, cold)
                row.update(_run(case_of(path, library), Peers(threads), peers, rounds, threads, say))
                row["status"] = "ok"
            except Exception as error:  # one model's failure leaves the others alone
                row["message"] = f"{type(error).__name__}: {error}"
            record["rows"].append(row)
    return record


def compile_ours(path: Path, options: Sequence[str], cold: bool) -> tuple[Path, float]:
    """Our library, made by the command line in a process of its own, and the seconds that took in all."""
    library = path.with_name(f"{FUNCTION}.so")
    environment = {**os.environ, **({"LOOPWRIGHT_CACHE_DIR": str(path.parent / "cache")} if cold else {})}
    command = [sys.executable, "-m", "loopwright", "compile", str(path), "-o", str(library), "--quiet", *options]
    start = perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"it was not compiled: {done.stderr.strip()[-1000:] or done.stdout.strip()[-1000:]}")
    return library, perf_counter() - start


def _run(case: Case, peers: Peers, wanted: Sequence[str], rounds: int, threads: int, say: Say) -> dict[str, Any]:
    """What was found out about one model."""
    helpers: dict[str, Helper] = {}
    skipped: dict[str, str] = {}
    load: dict[str, float] = {}
    try:
        for name in (OURS, AGAIN, *wanted):
            say(f"{case.name}: start {name}")
            start = perf_counter()
            try:
                helpers[name] = _started(name, peers, case)
                load[name] = perf_counter() - start
            except (Missing, Gone) as error:
                if name in (OURS, AGAIN):
                    raise
                skipped[name] = str(error)
        results = _surviving(helpers, skipped, lambda: {name: helper.results() for name, helper in helpers.items()})
        differences = {name: difference(found, results[OURS]) for name, found in results.items() if name != OURS}
        say(f"{case.name}: measure")
        effort = Effort(math.inf, SAMPLE, rounds, rounds, PAUSE if threads > 1 else 0.0)
        samples = _surviving(helpers, skipped, lambda: measure(helpers, effort))
        memory = _surviving(helpers, skipped, lambda: {name: _memory(helper) for name, helper in helpers.items()})
        wrong = {name: _told(far) for name, far in differences.items() if not far <= TOLERANCE and name in helpers}
        found = summary({name: taken for name, taken in samples.items() if name in helpers})
        for name, figures in found["contenders"].items():
            figures.update(memory[name] or {}, start_seconds=load[name], difference=differences.get(name, 0.0))
        return {**found, "skipped": skipped, "doubtful": wrong}
    finally:
        for helper in helpers.values():
            helper.close()


def _started(name: str, peers: Peers, case: Case) -> Helper:
    from importlib.util import find_spec

    library = LIBRARIES.get(name)
    if library is not None and find_spec(library) is None:
        raise Missing(f"{library} is not installed")
    helper = Helper(name, peers, PATIENCE)
    try:
        helper.make(case)
        helper()
    except Missing:
        helper.close()
        raise
    return helper


def _surviving(helpers: dict[str, Helper], skipped: dict[str, str], work: Callable[[], Any]) -> Any:
    """What the work on all contenders gives; it is done again without those whose process ends on the way."""
    while True:
        try:
            return work()
        except Gone as gone:
            if gone.peer in (OURS, AGAIN):
                raise
            del helpers[gone.peer]
            skipped[gone.peer] = f"failed: {gone}"


def difference(found: Sequence[Array], ours: Sequence[Array]) -> float:
    """How far results are from ours at most, as a share of the largest number; infinite where one is no number."""
    worst = 0.0
    for theirs, mine in zip(found, ours, strict=True):
        if not (np.isfinite(theirs).all() and np.isfinite(mine).all() and theirs.shape == mine.shape):
            return math.inf
        largest = float(np.max(np.abs(mine), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(theirs - mine), initial=0.0)) / largest)
    return worst


def _told(far: float) -> str:
    return f"its results are {far:.1e} of the largest number from ours"


def _memory(helper: Helper) -> dict[str, int] | None:
    """Bytes that are resident at most, of loading and of running; None where the system does not tell."""
    status, reset = Path(f"/proc/{helper.pid}/status"), Path(f"/proc/{helper.pid}/clear_refs")
    try:
        loading = _peak(status)
        reset.write_text("5")  # forgets the peak so far
        for _ in range(3):
            helper()
        return {"peak_bytes_with_loading": loading, "peak_bytes": _peak(status)}
    except (OSError, KeyError):
        return None


def _peak(status: Path) -> int:
    for line in status.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    raise KeyError("VmHWM")


def main(arguments: list[str]) -> int:
    """Race the models of these names, or all."""
    parser = argparse.ArgumentParser(description="Whole models beside the runtimes people use.")
    parser.add_argument("names", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--peers", default=",".join(PEERS), help="a list; all by default: %(default)s")
    parser.add_argument(
        "--compile-options", default="", help="for `loopwright compile`, in one text; none by default"
    )
    parser.add_argument("--cold", action="store_true", help="compile without what was compiled before")
    parser.add_argument("--json", metavar="FILE", help="also write the record")
    options = parser.parse_args(arguments)
    for kind, given, known in (("model", options.names, MODELS), ("peer", options.peers.split(","), ("", *PEERS))):
        unknown = [one for one in given if one not in known]
        if unknown:
            parser.error(f"there is no {kind} {unknown[0]!r}: there are {', '.join(one for one in known if one)}")
    record = race(
        options.names or list(MODELS),
        options.threads,
        options.rounds,
        options.batch,
        [peer for peer in options.peers.split(",") if peer],
        options.compile_options.split(),
        options.cold,
        lambda text: print(text, file=sys.stderr, flush=True),
    )
    record["settings"]["command"] = " ".join(["python -m benchmarks.models.race", *arguments])
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    show(record)
    return int(any(row["status"] != "ok" for row in record["rows"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
