"""Random contractions, convolutions, pooling and reductions through autosched, held against numpy in float64.

    python benchmarks/fuzz_autosched.py --cases 2000 --seed 0 --jobs 2
    python benchmarks/fuzz_autosched.py --show 17          the program of a seed, what became of it, and why

Each program is scheduled (every step proved), its trace replayed, compiled, run on one and on two threads (the same
bits) and compared (integers exactly). Exit status 1 when a case fails; a crash or a hang is a failing case as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

os.environ.setdefault("LOOPWRIGHT_FREEZE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from tests.autosched.fuzz.check import KINDS, Mistake, Outcome, check, random_program, random_target

PATIENCE = 180.0  # seconds that a case may take


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=300, help="how many programs (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=list(KINDS), help="only programs of this kind")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--show", type=int, metavar="SEED", help="show one program instead")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if options.show is not None:
        return _show_one(options.show, console)
    start = time.perf_counter()
    outcomes: list[Outcome] = []
    for outcome in _campaign(range(options.seed, options.seed + options.cases), options.jobs, options.kind):
        outcomes.append(outcome)
        if outcome.problem:
            console.print(f"seed {outcome.seed} ({outcome.kind}): {outcome.problem}", markup=False, highlight=False)
        if len(outcomes) % 100 == 0:
            failing = sum([bool(found.problem) for found in outcomes])
            taken = time.perf_counter() - start
            console.print(f"{len(outcomes)} programs, {failing} failing, {taken:.0f} s", highlight=False)
    _show(outcomes, time.perf_counter() - start, console)
    return 1 if any([outcome.problem for outcome in outcomes]) else 0


def _campaign(seeds: range, jobs: int, kind: str | None) -> Iterator[Outcome]:
    """The outcome of every seed, as workers finish them; a worker that dies or hangs is replaced."""
    left = iter(seeds)
    workers = [_Worker() for _ in range(max(jobs, 1))]
    for worker in workers:
        worker.give(next(left, None), kind)
    while busy := [worker for worker in workers if worker.seed is not None]:
        wait([worker.connection for worker in busy], timeout=1.0)
        for worker in busy:
            outcome = worker.outcome()
            if outcome is not None:
                if outcome.kind:
                    yield outcome
                worker.give(next(left, None), kind)
    for worker in workers:
        worker.stop()


class _Worker:
    """A process that tries one seed after another."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, seed: int | None, kind: str | None) -> None:
        self.seed, self._since = seed, time.perf_counter()
        if seed is not None:
            self.connection.send((seed, kind))

    def outcome(self) -> Outcome | None:
        """What it has found out, if it has."""
        assert self.seed is not None
        try:
            if self.connection.poll():
                found: Outcome = self.connection.recv()
                return found
        except (EOFError, ConnectionError):
            self._process.join()
            problem = f"the process ended with {self._process.exitcode}"
        else:
            if time.perf_counter() - self._since < PATIENCE:
                return None
            problem = f"no result after {PATIENCE:.0f} s"
        self.stop()
        self._start()
        program = random_program(self.seed)
        said = f"{problem}\n    {random_target(self.seed)}: {program.text}"
        return Outcome(self.seed, program.kind, problem=said)

    def stop(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _work(connection: Connection) -> None:
    while True:
        try:
            seed, kind = connection.recv()
        except EOFError:
            return
        connection.send(_outcome(seed, kind))


def _outcome(seed: int, kind: str | None) -> Outcome:
    """The outcome of a seed; without a kind, when its program is not of the wanted one."""
    try:
        program = random_program(seed)
    except Exception as error:  # the generator's own mistake
        return Outcome(seed, "generator", problem=f"{type(error).__name__}: {error}")
    if kind is not None and program.kind != kind:
        return Outcome(seed, "")
    try:
        return check(seed)
    except Exception as error:  # anything a case brings up is its failure, and the campaign goes on
        text = str(error).strip().splitlines() or [""]
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f" ({Path(last.filename).name}:{last.lineno}, {last.name})" if not isinstance(error, Mistake) else ""
        said = f"{type(error).__name__}: {text[0]}{where}\n    {random_target(seed)}: {program.text}"
        return Outcome(seed, program.kind, problem=said)


def _show(outcomes: list[Outcome], seconds: float, console: Console) -> None:
    failing = [outcome for outcome in outcomes if outcome.problem]
    table = Table(title=f"{len(outcomes)} programs in {seconds:.0f} s, {len(failing)} failing", title_justify="left")
    kinds = list(dict.fromkeys([outcome.kind for outcome in outcomes]))
    for column in ("blocks by rule", *kinds):
        table.add_column(column, justify="left" if column == "blocks by rule" else "right")
    counts = {kind: Counter[str]() for kind in kinds}
    for outcome in outcomes:
        counts[outcome.kind].update(outcome.rules)
    for rule in dict.fromkeys([rule for count in counts.values() for rule in count]):
        table.add_row(rule, *[str(counts[kind][rule]) for kind in kinds])
    console.print(table)
    _tell("left as written", [f"{why}" for outcome in outcomes for _, why in outcome.plain], console)
    _tell("another rule was refused", [why for outcome in outcomes for why in outcome.refused], console)
    _tell("gave no reasons", [rule for outcome in outcomes for rule in outcome.silent], console)
    if failing:
        console.print(f"failing seeds: {' '.join([str(outcome.seed) for outcome in failing])}", highlight=False)


def _tell(heading: str, found: list[str], console: Console) -> None:
    for text, count in Counter(found).most_common(20):
        console.print(f"{heading}: {count} × {text}", markup=False, highlight=False)


def _show_one(seed: int, console: Console) -> int:
    from loopwright import autosched

    program, target = random_program(seed), random_target(seed)
    told: list[Any] = [f"{program.kind}: {program.text}", f"target: {target}", program.func.script()]
    for text in told:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    plan = autosched.apply(program.func, target, winograd=program.winograd)
    console.print(plan.explain(), markup=False, highlight=False, soft_wrap=True)
    console.print(_outcome(seed, None).problem or "all is right", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
