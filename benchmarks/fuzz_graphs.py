"""fuzz_graphs: random graphs compiled to native code, against a reference.

    python -m benchmarks.fuzz_graphs --count 200
    python -m benchmarks.fuzz_graphs --seed 1234 --count 1      one of them again
    python -m benchmarks.fuzz_graphs --open-sizes --count 5000 --jobs 2      models with symbolic dimensions
    python -m benchmarks.fuzz_graphs --open-sizes --seed 77 --count 1 --show      one of those, in this process

Graphs with fixed sizes compute on small integers, so that every way to compute them gives the same numbers, to the last
bit; each is built as `relay.build` does it, or with fusion off, or with one of the passes off, and held against the
interpreter.

With `--open-sizes` they are ONNX models whose inputs have symbolic dimensions, held against ONNX's reference at several
bindings: 0, 1, 2, primes, sizes that do not fit, one name with two sizes, indices out of range. What the reference
refuses must be refused with an error of the catalogue. Every argument and result lies beside a guard page, before its
start or behind its end by turns, and workers run the models: a read or write outside of an array is a finding with its
seed.
"""

from __future__ import annotations

import argparse
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from time import perf_counter
from typing import Any

import numpy as np

LIMIT = 120.0  # seconds that one model may take, on a machine that others use too
CALLS = 6  # other bindings of a model


def context_of(seed: int) -> dict[str, Any]:
    """How a graph is built: all passes, none but the needed ones, or all but one."""
    from loopwright.relay.transform.pipeline import build_passes

    passes = sorted({each.info.name for each in build_passes()} - {"InferType"})
    way = seed % 4
    if way == 0:
        return {"opt_level": 0}
    if way == 1:
        return {"opt_level": 4, "disabled_pass": [passes[seed // 4 % len(passes)]]}
    return {"opt_level": 3}


def check(seed: int) -> str | None:
    """What is wrong with the graph of this seed, or None."""
    from loopwright import relay
    from loopwright.ir.function import IRModule
    from loopwright.ir.pass_context import PassContext
    from loopwright.relay.interpreter import evaluate
    from tests.relay.random_graphs import RandomGraph

    graph = RandomGraph(seed, size=8 + seed % 9)
    arguments = graph.arguments()
    wanted = evaluate(graph.function, arguments)
    with PassContext(**context_of(seed)):
        found = relay.build(IRModule.from_expr(graph.function), target="llvm")(*arguments)
    results = found if isinstance(found, list) else [found]
    for place, (one, other) in enumerate(zip(results, wanted, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype or not np.array_equal(one, other):
            return f"output {place} differs"
    return None


# Models with symbolic dimensions.


def check_open(seed: int, show: bool = False) -> list[str]:
    """What is wrong with the model of this seed: nothing, or a line for each kind of fault."""
    from loopwright.frontends.onnx import CompiledModel
    from loopwright.runtime.errors import InternalError, LoopwrightError
    from tests.frontends.onnx.random_models import RandomModel
    from tests.frontends.onnx.strict_reference import reference_of
    from tests.guard_pages import GuardPages

    drawn = RandomModel(seed)
    calls = list(drawn.calls(CALLS))
    if show:
        from onnx.printer import to_text

        print(to_text(drawn.proto))
    exact = {one.name: one.exact for one in drawn.outputs}
    pages = GuardPages()
    compiled: Any = None
    problem = ""
    try:
        with guarded_outputs(pages, end=True):
            compiled = CompiledModel(drawn.proto)
    except InternalError as error:
        return [f"compiling: {_line(error)}"]
    except LoopwrightError as error:
        problem = _line(error)  # right only where the reference refuses every call
    except Exception as error:
        return [f"compiling: not in the catalogue: {_line(error)}"]
    found: dict[str, str] = {}
    for number, call in enumerate(calls):
        wanted = reference_of(drawn.proto, call.arrays)
        end = (seed + number) % 2 == 0
        pages.clear()
        arrays = {name: pages.copy(array, end) for name, array in call.arrays.items()}
        results: list[Any] | None = None
        refused = problem
        internal = ""
        if compiled is not None:
            try:
                with guarded_outputs(pages, end):
                    results = compiled.run(arrays)
            except InternalError as error:
                internal = _line(error)
            except LoopwrightError as error:
                refused = _line(error)
            except Exception as error:
                internal = f"not in the catalogue: {_line(error)}"
        verdict = _verdict(wanted, results, refused, call, list(exact.values()))
        message = f"internal: {internal}" if internal else verdict
        if show:
            shapes = {name: array.shape for name, array in call.arrays.items()}
            print(
                f"{call.what} {shapes}: reference {wanted.refusal or [r.shape for r in wanted.results]}; "
                f"found {refused or internal or [r.shape for r in results or []]}: {message or 'ok'}"
            )
            if message and results is not None and wanted.refusal is None:
                print("  inputs", call.arrays, "\n  wanted", wanted.results, "\n  found", results)
        if message:
            found.setdefault(message.split(":")[0], f"{message}   [{call.what}]")
    return list(found.values())


def _verdict(wanted: Any, results: list[Any] | None, refused: str, call: Any, exact: list[bool]) -> str:
    """What is wrong with the results of a call, or with its refusal; empty if nothing is."""
    if wanted.unspecified:
        return ""
    if results is None:
        return "" if wanted.refusal is not None or call.may_refuse else f"refused: {refused}"
    if wanted.refusal is not None:
        return f"accepted: the reference says {wanted.refusal}"
    for place, (one, other) in enumerate(zip(results, wanted.results, strict=True)):
        one = np.asarray(one)
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"wrong: output {place} is {one.dtype}{one.shape}, not {other.dtype}{other.shape}"
        if not _same(one, other, exact[place]):
            return f"wrong: output {place} differs"
    return ""


def _same(one: np.ndarray, other: np.ndarray, exact: bool) -> bool:
    if exact and (other.size == 0 or not np.abs(other.astype("d")).max() >= 2**23):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    with np.errstate(all="ignore"):
        finite = other[np.isfinite(other)]
        size = float(np.abs(finite).max()) if finite.size else 0.0
        return bool(np.allclose(one, other, rtol=2e-4, atol=2e-5 * max(size, 1.0), equal_nan=True))


def _line(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    code = getattr(error, "code", None)
    return f"{type(error).__name__}{f' {code}' if isinstance(code, str) else ''}: {first}"[:300]


class guarded_outputs:
    """While it is entered, the results of models lie beside guard pages."""

    def __init__(self, pages: Any, end: bool) -> None:
        self.pages, self.end = pages, end

    def __enter__(self) -> None:
        from loopwright.model import model

        self.module: Any = model
        self.module.np = self

    def __exit__(self, *_: object) -> None:
        self.module.np = np

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return self.pages.empty(shape, dtype, self.end)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


# Workers.


def worker(seeds: range) -> None:
    """Check the models of these seeds, saying each before and what was found after."""
    for seed in seeds:
        print(f"try {seed}", flush=True)
        try:
            problems = check_open(seed)
        except Exception as error:  # of the fuzzer itself, or of the reference
            problems = [f"fuzzer: {_line(error)}"]
        for problem in problems:
            print(f"bug {seed} {problem}".replace("\n", " "), flush=True)
        print(f"did {seed}", flush=True)


class Watched:
    """One worker process, started again behind a seed that ends it."""

    def __init__(self, seeds: range) -> None:
        self.left = seeds
        self.done = 0
        self.problems: list[tuple[int, str]] = []
        self._said = b""
        self._start()

    def _start(self) -> None:
        options = [
            "--worker",
            "--seed",
            str(self.left.start),
            "--stop",
            str(self.left.stop),
            "--by",
            str(self.left.step),
        ]
        command = [sys.executable, "-m", "benchmarks.fuzz_graphs", *options]
        environment = {**os.environ, "LOOPWRIGHT_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, env=environment)
        assert self.process.stdout is not None
        self.heard = time.monotonic()

    def read(self) -> None:
        """Take in what it says; at its end, go on behind the seed it was at."""
        assert self.process.stdout is not None
        more = os.read(self.process.stdout.fileno(), 1 << 16)
        self.heard = time.monotonic()
        if not more:
            code = self.process.wait()
            if self.left:
                self._lost(f"crash: the process ended with {code}")
            return
        *lines, self._said = (self._said + more).split(b"\n")
        for line in lines:
            word, seed, *rest = line.decode(errors="replace").split(maxsplit=2)
            if word == "bug":
                self._note(int(seed), rest[0])
            elif word == "did":
                self._advance()

    def _advance(self) -> None:
        self.left = range(self.left.start + self.left.step, self.left.stop, self.left.step)
        self.done += 1

    def _note(self, seed: int, problem: str) -> None:
        print(f"  seed {seed}: {problem}", flush=True)
        self.problems.append((seed, problem))

    def _lost(self, why: str) -> None:
        self._note(self.left.start, why)
        self._said = b""
        self._advance()
        if self.left:
            self._start()

    def watch(self) -> None:
        """End it where it does not answer."""
        if time.monotonic() - self.heard > LIMIT:
            self.process.kill()
            self.process.wait()
            self._lost(f"hang: no answer within {LIMIT:.0f} s")


def fuzz_open(seed: int, count: int, jobs: int, limit: float) -> int:
    """Check so many models in workers, or as many as fit into the time; the number of problems, said as they come."""
    start = perf_counter()
    workers = [Watched(range(seed + place, seed + count, jobs)) for place in range(jobs)]
    while any(one.left for one in workers) and perf_counter() - start < limit:
        ready = selectors.DefaultSelector()
        for one in workers:
            if one.left:
                ready.register(one.process.stdout, selectors.EVENT_READ, one)  # type: ignore[arg-type]
        for key, _ in ready.select(timeout=10):
            key.data.read()
        ready.close()
        for one in workers:
            if one.left:
                one.watch()
    for one in workers:
        one.process.kill()
        one.process.wait()
    done = sum(one.done for one in workers)
    seconds = perf_counter() - start
    problems = sorted(problem for one in workers for problem in one.problems)
    kinds = Counter(text.split(":")[0] for _, text in problems)
    print(
        f"{done} random models with symbolic dimensions, {CALLS + 1} calls or more each, in {seconds:.0f} s "
        f"({done / seconds:.1f} a second): {len({one for one, _ in problems})} with a problem"
        + (f" ({', '.join(f'{kind} {many}' for kind, many in kinds.items())})" if kinds else "")
    )
    return len(problems)


def main() -> int:
    parser = argparse.ArgumentParser(description="Random graphs, compiled and held against a reference.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--open-sizes", action="store_true", help="models with symbolic dimensions")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes, with --open-sizes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that, with --open-sizes")
    parser.add_argument("--show", action="store_true", help="one model in this process, with all that is compared")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stop", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--by", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(range(args.seed, args.stop, args.by))
        return 0
    if args.open_sizes and args.show:
        problems = [line for seed in range(args.seed, args.seed + args.count) for line in check_open(seed, show=True)]
        print("\n".join(problems) or "nothing wrong")
        return int(bool(problems))
    if args.open_sizes:
        return int(fuzz_open(args.seed, args.count, args.jobs, args.seconds) > 0)
    return fuzz_fixed(args.seed, args.count)


def fuzz_fixed(first: int, count: int) -> int:
    """Check so many graphs of fixed sizes; 1 where one is wrong."""
    start, wrong = perf_counter(), []
    for seed in range(first, first + count):
        try:
            problem = check(seed)
        except Exception as error:
            if count == 1:
                raise
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        if problem is not None:
            wrong.append(f"seed {seed}, {context_of(seed)}: {problem}")
    seconds = perf_counter() - start
    print(f"{count} random graphs compiled and run in {seconds:.0f} s: {len(wrong)} wrong")
    for line in wrong:
        print("  " + line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
