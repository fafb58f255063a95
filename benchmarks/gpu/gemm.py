"""Matrix products in float32 by rule beside torch's (cuBLAS, TF32 off): `python benchmarks/gpu/gemm.py`.

    python benchmarks/gpu/gemm.py --json rows.json       one line a size: milliseconds, TFLOP/s, torch's time / ours
    python benchmarks/gpu/gemm.py --variants             each size with several tiles, the fastest first

Both run in turns, between CUDA events, and medians are compared. Some rows of every result are compared with float64.
Programs are scheduled and compiled by several processes before anything is measured. Bar: a geometric mean of 0.85 for
the sizes in `BAR`. A size that fails is reported and left out; the exit status is then 1. Takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import traceback
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))


@dataclass(frozen=True)
class Case:
    """A product of m × k by k × n; `layout` says with t which operand is given transposed."""

    m: int
    n: int
    k: int
    layout: str = "nn"
    batch: int = 0
    epilogue: bool = False

    @property
    def name(self) -> str:
        batch = f"{self.batch} × " if self.batch else ""
        return f"{batch}{self.m}×{self.n}×{self.k} {self.layout}{' bias relu' if self.epilogue else ''}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * max(1, self.batch)

    def shapes(self) -> list[tuple[int, ...]]:
        outer = (self.batch,) if self.batch else ()
        a = (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)
        b = (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)
        result = [(*outer, *a), (*outer, *b), (*outer, self.m, self.n)]
        return [*result[:2], (self.n,), result[2]] if self.epilogue else result


CUBES = [Case(size, size, size) for size in (1024, 2048, 4096, 8192)]
ODD = [Case(1000, 1001, 777), Case(3000, 4097, 513), Case(4095, 4095, 4095)]
BAR = [*CUBES, *ODD]
OTHERS = [
    Case(2048, 2048, 2048, "nt"),
    Case(2048, 2048, 2048, "tn"),
    Case(2048, 2048, 2048, "tt"),
    Case(512, 512, 512, batch=32),
    Case(2048, 2048, 2048, epilogue=True),
]
# Threads along y and z, pieces of a thread along rows and columns, depth of a slab, columns of tiles walked together.
VARIANTS = {
    "128×128": (16, 4, 2, 2, 16, 1),
    "128×128 grouped": (16, 4, 2, 2, 16, 8),
    "128×128×32": (16, 4, 2, 2, 32, 1),
    "128×256": (16, 4, 2, 4, 16, 1),
    "128×256 grouped": (16, 4, 2, 4, 16, 4),
    "256×128": (16, 4, 4, 2, 16, 1),
    "128×128, 128 threads": (8, 4, 4, 2, 16, 1),
    "128×128, 128 threads, grouped": (8, 4, 4, 2, 16, 8),
    "128×64, 64 threads": (8, 2, 4, 2, 16, 1),
    "64×128, 64 threads": (8, 2, 2, 4, 16, 1),
    "64×128": (16, 4, 1, 2, 16, 1),
    "64×128, 128 threads": (8, 4, 2, 2, 16, 1),
    "128×64, 128 threads": (16, 2, 2, 2, 16, 1),
    "64×64": (16, 4, 1, 1, 16, 1),
    "64×64, 64 threads": (8, 2, 2, 2, 16, 1),
    "64×64×32, 64 threads": (8, 2, 2, 2, 32, 1),
}
SKIPPED = {8192: ("64×64", "64×64, 64 threads", "64×64×32, 64 threads", "64×128")}  # too slow to be worth the time


def program(case: Case) -> list[Any]:
    from loopwright import te

    shapes = case.shapes()
    a, b = te.placeholder(shapes[0], name="A"), te.placeholder(shapes[1], name="B")
    k = te.reduce_axis((0, case.k), name="k")

    def cell(*index: Any) -> Any:
        outer, (i, j) = index[:-2], index[-2:]
        first = a[(*outer, i, k)] if case.layout[0] == "n" else a[(*outer, k, i)]
        second = b[(*outer, k, j)] if case.layout[1] == "n" else b[(*outer, j, k)]
        return te.sum(first * second, axis=k)

    c = te.compute(shapes[-1], cell, name="C")
    if not case.epilogue:
        return [a, b, c]
    bias = te.placeholder(shapes[2], name="bias")
    biased = te.compute(shapes[-1], lambda *index: c(*index) + bias[index[-1]], name="biased")
    zero = te.const(0, "float32")
    return [a, b, bias, te.compute(shapes[-1], lambda *index: te.max(biased(*index), zero), name="relu")]


def choices(variant: str) -> dict[str, Any] | None:
    if not variant:
        return None
    y, z, rows, columns, depth, group = VARIANTS[variant]
    tile = {"x": 4, "y": y, "z": z, "row_pieces": rows, "column_pieces": columns, "vector": 4, "depth": depth}
    return {"0.tile": tile, "0.group": {"value": group}}


def scheduled(case: Case, variant: str, target: str) -> Any:
    from contextlib import nullcontext

    from loopwright import autosched
    from loopwright.autosched.choices import Choices

    given = choices(variant)
    with Choices(given) if given is not None else nullcontext():
        return autosched.apply(program(case), target)


def built(case: Case, variant: str, target: str, path: str) -> dict[str, Any]:
    """Compile into the file at `path`, in a process of its own; how long that takes, and what was chosen."""
    import loopwright as lw

    start = perf_counter()
    plan = scheduled(case, variant, target)
    after = perf_counter()
    module = lw.build(plan.mod, target=target)
    lowered = perf_counter()
    module.export_library(path)
    done = perf_counter()
    what = [choice.what for decision in plan.decisions for choice in decision.choices if choice.what.startswith("tile")]
    return {
        "schedule": after - start,
        "build": lowered - after,
        "nvrtc": done - lowered,
        "rule": plan.decisions[0].rule,
        "tile": what[0] if what else "",
    }


class Sizes:
    """Operands on the GPU, made once a case."""

    def __init__(self, case: Case) -> None:
        import torch

        self.case, self.torch = case, torch
        generator = torch.Generator(device="cuda").manual_seed(case.m)
        self.given = [torch.randn(shape, device="cuda", generator=generator) for shape in case.shapes()[:-1]]
        self.ours = torch.zeros(case.shapes()[-1], device="cuda")
        self.theirs = torch.zeros_like(self.ours)

    def operands(self) -> tuple[Any, Any]:
        a, b = self.given[:2]
        return (
            a if self.case.layout[0] == "n" else a.transpose(-1, -2),
            b if self.case.layout[1] == "n" else b.transpose(-1, -2),
        )

    def reference(self) -> None:
        a, b = self.operands()
        if self.case.epilogue:
            self.torch._addmm_activation(self.given[2], a, b, out=self.theirs)  # relu, in cuBLAS's epilogue
        else:
            self.torch.matmul(a, b, out=self.theirs)

    def error(self, result: Any) -> float:
        """The greatest difference to float64 in some rows, in units of what rounding may cause: k roundings of |A|·|B|."""
        a, b = self.operands()
        rows = self.torch.linspace(0, self.case.m - 1, 16, device="cuda").long()
        some, other = a[..., rows, :].double(), b.double()
        expected, bound = some @ other, some.abs() @ other.abs()
        if self.case.epilogue:
            bias = self.given[2].double()
            expected, bound = (expected + bias).clamp(min=0), bound + bias.abs()
        difference = (result[..., rows, :].double() - expected).abs() / bound.clamp(min=1e-30)
        return difference.max().item() / ((self.case.k + 2) * 2.0**-24)


def interleaved(calls: list[Any], rounds: int, flops: float) -> list[float]:
    """Median milliseconds of a call, each in its turn."""
    import torch

    times: list[list[float]] = [[] for _ in calls]
    repeats = max(1, min(20, int(2e-3 / (flops / 45e12))))
    for call in calls:
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for call, result in zip(calls, times, strict=True):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            end.synchronize()
            result.append(begin.elapsed_time(end) / repeats)
    return [statistics.median(result) for result in times]


def loaded(path: str, case: Case, variant: str, target: str) -> Any:
    import loopwright as lw
    from loopwright.runtime import load_module

    try:
        return load_module(path)
    except Exception as error:
        print(f"  {case.name}: built again, as the library is not loaded: {error}", flush=True)
        return lw.build(scheduled(case, variant, target).mod, target=target)


def measure(case: Case, parts: list[tuple[str, str, Future[Any]]], target: str, rounds: int) -> list[dict[str, Any]]:
    """One row for each variant that was built."""
    sizes = Sizes(case)
    rows: list[dict[str, Any]] = []
    calls: list[Any] = [sizes.reference]
    for variant, path, future in parts:
        row: dict[str, Any] = {"case": case.name, "variant": variant}
        rows.append(row)
        try:
            row.update(future.result())
            module = loaded(path, case, variant, target)
            sizes.ours.fill_(float("nan"))
            module(*sizes.given, sizes.ours)
            sizes.torch.cuda.synchronize()
            row["error"] = sizes.error(sizes.ours)
            if not row["error"] <= 1.0:
                raise ArithmeticError(f"the result is wrong: {row['error']:.3g} times what rounding may cause")
            row["call"] = len(calls)
            calls.append(lambda module=module: module(*sizes.given, sizes.ours))
        except Exception as error:
            traceback.print_exc()
            row["failed"] = f"{type(error).__name__}: {error}"
    medians = interleaved(calls, rounds, case.flops)
    for row in rows:
        if "call" in row:
            ours = medians[row.pop("call")]
            row.update(ms=ours, torch_ms=medians[0], ratio=medians[0] / ours, tflops=case.flops / ours / 1e9)
    return rows


def line(row: dict[str, Any]) -> str:
    name = f"{row['case']:32} {row['variant'] or row.get('tile', ''):22}"
    if "failed" in row:
        return f"{name} failed: {row['failed'][:300]}"
    took = row["schedule"] + row["build"] + row["nvrtc"]
    return (
        f"{name} {row['ms']:8.3f} ms {row['tflops']:6.1f} TFLOP/s   torch {row['torch_ms']:8.3f} ms   "
        f"ratio {row['ratio']:.3f}   ({row['rule']}, {took:.1f} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all rows to this file")
    parser.add_argument("--variants", action="store_true", help="several tiles a size")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--limit", type=float, default=80.0, help="seconds after which no further size begins")
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    start = perf_counter()
    cases = [*CUBES, *ODD, Case(512, 512, 512, batch=32)] if options.variants else [*BAR, *OTHERS]
    names = list(VARIANTS) if options.variants else [""]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        work: dict[Case, list[tuple[str, str, Future[Any]]]] = {}
        for number, case in enumerate(cases):
            work[case] = []
            for variant in names:
                if variant not in SKIPPED.get(case.m, ()):
                    path = f"{folder}/{number}_{len(work[case])}.so"
                    work[case].append((variant, path, pool.submit(built, case, variant, options.target, path)))
        for case, parts in work.items():
            if perf_counter() - start > options.limit:
                print(f"{case.name}: left out, {options.limit:.0f} s are over", flush=True)
                for _, _, future in parts:
                    future.cancel()
                continue
            try:
                result = measure(case, parts, options.target, 7 if options.variants else options.rounds)
            except Exception as error:
                traceback.print_exc()
                result = [{"case": case.name, "variant": "", "failed": f"{type(error).__name__}: {error}"}]
            rows += result
            for row in sorted(result, key=lambda row: row.get("ms", math.inf)):
                print(line(row), flush=True)
    bar = {case.name for case in BAR}
    best: dict[str, float] = {}
    for row in rows:
        if row["case"] in bar and "ratio" in row:
            best[row["case"]] = max(best.get(row["case"], 0.0), row["ratio"])
    if best:
        mean = math.exp(statistics.fmean([math.log(ratio) for ratio in best.values()]))
        print(
            f"geometric mean of {len(best)} of {len(bar)} sizes: {mean:.3f} of cuBLAS; {perf_counter() - start:.0f} s"
        )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
