"""versions: the benchmarks' kernels and models, compiled by this version of the project and by another, side by side.

    git worktree add ../before v1
    python -m benchmarks.versions ../before                                all kernels, one thread
    python -m benchmarks.versions ../before --families sgemm,resnet50 --threads 2 --rounds 15
    python -m benchmarks.versions ../before --models                       whole models instead
    python -m benchmarks.versions ../before --models --only net             of them those whose name contains this

Each version is a process of its own, pinned to as many cores as it has threads; programs come from this version's
benchmarks. Rounds are interleaved, and in each ours is timed twice: how far the ratio of the two is from 1 is what the
table cannot tell. Compile times are without a cache, one of each kernel, and include scheduling with its proofs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = 0.01  # seconds that calls in a row are timed for
SHOWN = 0.97  # a kernel whose ratio is below is listed


class Row(NamedTuple):
    """A kernel: the other version's time as a multiple of ours, ours of ours, and both times to compile."""

    name: str
    ratio: float
    again: float
    compiled: float
    compiled_by_other: float


class Version:
    """A process that compiles and times kernels with the package of one folder."""

    def __init__(self, folder: Path, threads: int) -> None:
        settings = {**os.environ, "LOOPWRIGHT_CACHE": "0", "LOOPWRIGHT_NUM_THREADS": str(threads)}
        command = [sys.executable, __file__, "--serve", str(folder.resolve()), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)

    def ask(self, **order: Any) -> Any:
        """Send an order and wait for its answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of a version ended with {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(folder: str, threads: int) -> None:
    """Answer orders: compile a kernel, or time the last one."""
    sys.path.insert(0, folder)
    import loopwright

    assert Path(loopwright.__file__).is_relative_to(folder), loopwright.__file__
    sys.path[0] = str(ROOT)
    from time import perf_counter

    from benchmarks.bench.cases import cases_of
    from benchmarks.bench.child import pin
    from benchmarks.bench.ours import build, contender
    from benchmarks.bench.row import OURS
    from benchmarks.models.raced import FUNCTION, case_of

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    pin(threads)
    call: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        if "model" in order:
            path = Path(order["model"])
            library = path.parent / str(os.getpid()) / f"{FUNCTION}.so"
            library.parent.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "loopwright", "compile", str(path), "-o", str(library), "--quiet"]
            start = perf_counter()
            paths = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths}, cwd=folder)
            answer = perf_counter() - start
            case = case_of(path, library)
            problem = case.make(*case.shape)
            ours: Any = problem.peers[OURS]
            call = ours.make(problem.inputs, problem.outputs)
            call()
        elif "name" in order:
            case = next(case for case in cases_of(order["family"]) if case.name == order["name"])
            problem = case.make(*case.shape)
            program = problem.program()
            start = perf_counter()
            module = build(program)
            answer = perf_counter() - start
            call = contender(module, problem).run
            call()
        else:
            call()
            count, start = 0, perf_counter()
            while (spent := perf_counter() - start) < SAMPLE or not count:
                call()
                count += 1
            answer = spent / count
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def race(other: Path, orders: Mapping[str, Mapping[str, str]], threads: int, rounds: int) -> list[Row]:
    """Every kernel or model, timed by both versions."""
    ours, theirs = Version(ROOT, threads), Version(other, threads)
    rows = []
    try:
        for name, order in orders.items():
            compiled = [version.ask(**order) for version in (ours, theirs)]
            samples = []
            for turn in range(rounds):
                first, other_time, again = _sampled([ours, theirs, ours], turn)
                samples.append((other_time / first, again / first))
            ratio, same = (median(column) for column in zip(*samples, strict=True))
            rows.append(Row(name, ratio, same, *compiled))
            print(_told(rows[-1]), file=sys.stderr, flush=True)
    finally:
        ours.close()
        theirs.close()
    return rows


def kernels(families: Sequence[str]) -> dict[str, dict[str, str]]:
    """The kernels of the families, by name."""
    from benchmarks.bench.cases import cases_of

    found = [(family, case.name) for family in families for case in cases_of(family)]
    return {f"{family}: {name}": {"family": family, "name": name} for family, name in found}


def models(folder: Path, only: str = "") -> dict[str, dict[str, str]]:
    """The models of the race, written into a folder."""
    from benchmarks.models.raced import MODELS, write_model

    names = [name for name in MODELS if only in f"models: {name}"]
    return {f"models: {name}": {"model": str(write_model(name, folder))} for name in names}


def _sampled(versions: Sequence[Version], turn: int) -> list[float]:
    """A sample of each, in an order that changes."""
    places = [(turn + k) % len(versions) for k in range(len(versions))]
    found = {place: versions[place].ask() for place in places}
    return [found[place] for place in range(len(versions))]


def _told(row: Row) -> str:
    compiled = f"compiled in {row.compiled:.2f} s, by the other in {row.compiled_by_other:.2f} s"
    return f"{row.ratio:6.3f} (again {row.again:.3f})  {row.name}: {compiled}"


def _geomean(values: Sequence[float]) -> float:
    return exp(sum([log(value) for value in values]) / len(values))


def main(arguments: Sequence[str]) -> int:
    """Race this version against another."""
    if arguments[:1] == ["--serve"]:
        serve(arguments[1], int(arguments[2]))
        return 0
    sys.path.insert(0, str(ROOT))
    from benchmarks.bench.cases import FAMILIES

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("other", type=Path, help="the folder of the other version")
    parser.add_argument("--families", default=",".join(FAMILIES), help="by commas (default: all)")
    parser.add_argument("--models", action="store_true", help="whole models instead of kernels")
    parser.add_argument("--only", default="", help="kernels or models whose name contains this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    if not (options.other / "loopwright").is_dir():
        parser.error(f"{options.other} holds no package loopwright")
    unknown = [name for name in options.families.split(",") if name not in FAMILIES]
    if unknown:
        parser.error(f"there is no family {unknown[0]!r}: there are {', '.join(FAMILIES)}")
    with tempfile.TemporaryDirectory() as folder:
        orders = models(Path(folder), options.only) if options.models else kernels(options.families.split(","))
        chosen = {name: order for name, order in orders.items() if options.only in name}
        if not chosen:
            parser.error(f"no name contains {options.only!r}")
        rows = race(options.other, chosen, options.threads, options.rounds)
    print(f"{len(rows)} programs, {options.threads} threads, {options.rounds} rounds: time of the other / ours")
    for family in dict.fromkeys([row.name.split(":")[0] for row in rows]):
        mine = [row for row in rows if row.name.startswith(f"{family}:")]
        speed, same = _geomean([row.ratio for row in mine]), _geomean([row.again for row in mine])
        compiled = sum([row.compiled_by_other for row in mine]) / sum([row.compiled for row in mine])
        print(f"  {family:14} {len(mine):3} programs: {speed:.3f} (again {same:.3f}); time to compile {compiled:.3f}")
    speed, same = _geomean([row.ratio for row in rows]), _geomean([row.again for row in rows])
    compiled = sum([row.compiled_by_other for row in rows]) / sum([row.compiled for row in rows])
    print(f"geometric mean {speed:.3f} (again {same:.3f}); time to compile, in all {compiled:.3f}")
    for row in sorted(rows, key=lambda row: row.ratio):
        if row.ratio < SHOWN:
            print("  below:", _told(row))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
