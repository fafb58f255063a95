"""Matrix products and convolutions by rule beside torch's (cuBLAS, cuDNN; TF32 off): `python benchmarks/gpu/gemm.py`.

    python benchmarks/gpu/gemm.py                        what the rule chooses: a line a case
    python benchmarks/gpu/gemm.py --variants             each case with several tiles too, the fastest first
    python benchmarks/gpu/gemm.py --only conv            cases whose name contains the text
    python benchmarks/gpu/gemm.py --json rows.json       all rows: milliseconds, TFLOP/s, torch's time / ours, and
                                                         the rule's own choice / the best variant

Both run in turns, between CUDA events, and medians are compared. Some rows of every result are compared with float64.
Programs are scheduled and compiled by several processes before anything is measured. Bar: a geometric mean of 0.85 for
the sizes in `BAR`, of the rule's own choice. A case that fails is reported and left out; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

from cases_conv import CONVOLUTIONS, Conv

LARGE_TILES = (
    "128×128",
    "128×256",
    "256×128",
    "128×128, 128 threads",
    "128×64, 64 threads",
    "64×128, 64 threads",
    "64×128, 128 threads",
    "128×64, 128 threads",
)
SMALL_TILES = ("64×128", "64×64", "64×64, 64 threads", "64×64×32, 64 threads", "32×64")
PARTS = ("128×128, 2 parts", "128×256, 4 parts", "64×128, 128 threads, 4 parts", "64×64, 64 threads, 8 parts")
FEW_ROWS = ("16×128, 8 parts", "16×128, 16 parts", "16×128, 32 parts", "16×128×32, 16 parts", "8×256, 16 parts")


@dataclass(frozen=True)
class Case:
    """A product of m × k by k × n; `layout` says with t which operand is given transposed."""

    m: int
    n: int
    k: int
    layout: str = "nn"
    batch: int = 0
    epilogue: bool = False
    dtype: str = "float32"

    family = "gemm"
    @property
    def variants(self) -> tuple[str, ...]:
        if min(self.m, self.n) <= 16:
            return FEW_ROWS
        size = self.m * self.n
        return LARGE_TILES + (SMALL_TILES if size < 1 << 26 else ()) + (PARTS if size <= 1 << 21 else ())

    @property
    def name(self) -> str:
        batch = f"{self.batch} × " if self.batch else ""
        dtype = "" if self.dtype == "float32" else f" {self.dtype}"
        return f"{batch}{self.m}×{self.n}×{self.k} {self.layout}{' bias relu' if self.epilogue else ''}{dtype}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * max(1, self.batch)

    @property
    def terms(self) -> int:
        """How many products are summed for a result."""
        return self.k

    def shapes(self) -> list[tuple[int, ...]]:
        """Of the inputs and the result."""
        outer = (self.batch,) if self.batch else ()
        a = (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)
        b = (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)
        result = [(*outer, *a), (*outer, *b), (*outer, self.m, self.n)]
        return [*result[:2], (self.n,), result[2]] if self.epilogue else result

    def program(self) -> list[Any]:
        from loopwright import te

        shapes = self.shapes()
        a, b = (te.placeholder(shape, self.dtype, name=name) for shape, name in zip(shapes[:2], "AB", strict=True))
        k = te.reduce_axis((0, self.k), name="k")

        def cell(*index: Any) -> Any:
            outer, (i, j) = index[:-2], index[-2:]
            first = a[(*outer, i, k)] if self.layout[0] == "n" else a[(*outer, k, i)]
            second = b[(*outer, k, j)] if self.layout[1] == "n" else b[(*outer, j, k)]
            return te.sum(first * second, axis=k)

        c = te.compute(shapes[-1], cell, name="C")
        if not self.epilogue:
            return [a, b, c]
        bias = te.placeholder(shapes[2], name="bias")
        biased = te.compute(shapes[-1], lambda *index: c(*index) + bias[index[-1]], name="biased")
        zero = te.const(0, "float32")
        return [a, b, bias, te.compute(shapes[-1], lambda *index: te.max(biased(*index), zero), name="relu")]

    def _operands(self, given: Sequence[Any]) -> tuple[Any, Any]:
        a, b = given[:2]
        return (
            a if self.layout[0] == "n" else a.transpose(-1, -2),
            b if self.layout[1] == "n" else b.transpose(-1, -2),
        )

    def reference(self, given: Sequence[Any], out: Any) -> Callable[[], object]:
        """What torch does."""
        import torch

        a, b = self._operands(given)
        if self.epilogue:
            return lambda: torch._addmm_activation(given[2], a, b, out=out)  # relu, in cuBLAS's epilogue
        if self.dtype == "int32":  # torch has no product of integers on a GPU
            return lambda: out.copy_(a.double() @ b.double())
        return lambda: torch.matmul(a, b, out=out)

    def checked(self, given: Sequence[Any], result: Any) -> tuple[Any, Any, Any]:
        """Some rows of the result, what they are in float64, and the sums of magnitudes."""
        import torch

        a, b = self._operands(given)
        rows = torch.linspace(0, self.m - 1, min(self.m, 16), device=a.device).long()
        some, other = a[..., rows, :].double(), b.double()
        expected, bound = some @ other, some.abs() @ other.abs()
        if self.epilogue:
            bias = given[2].double()
            expected, bound = (expected + bias).clamp(min=0), bound + bias.abs()
        return result[..., rows, :].double(), expected, bound


CUBES = [Case(size, size, size) for size in (1024, 2048, 4096, 8192)]
ODD = [Case(1000, 1001, 777), Case(3000, 4097, 513), Case(4095, 4095, 4095)]
BAR = [*CUBES, *ODD]
BATCHED = Case(512, 512, 512, batch=32)
OTHERS = [
    Case(1023, 1023, 1023),
    Case(2048, 2048, 2048, "nt"),
    Case(2048, 2048, 2048, "tn"),
    Case(2048, 2048, 2048, "tt"),
    Case(1023, 1023, 1023, "nt"),
    BATCHED,
    Case(2048, 2048, 2048, epilogue=True),
    Case(2048, 2048, 2048, dtype="float64"),
    Case(2048, 2048, 2048, dtype="int32"),
    *[Case(m, 4096, 4096, layout) for m in (1, 8, 16) for layout in ("nn", "nt")],
    Case(64, 4096, 4096),
    Case(128, 128, 65536),
    Case(4096, 64, 4096),
]
FEW = [Case(64, 4096, 4096), Case(8, 4096, 4096), Case(16, 4096, 4096, "nt"), Case(128, 128, 65536)]
VARIED = [*BAR, OTHERS[0], BATCHED, *FEW, *[case for case in CONVOLUTIONS if case.is_typical]]
# Threads along y and z, pieces of a thread along rows and columns, depth of a slab, parts of the sum.
VARIANTS = {
    "128×128": (16, 4, 2, 2, 16, 1),
    "128×128, 2 parts": (16, 4, 2, 2, 16, 2),
    "128×128×32": (16, 4, 2, 2, 32, 1),
    "128×256": (16, 4, 2, 4, 16, 1),
    "128×256, 4 parts": (16, 4, 2, 4, 16, 4),
    "256×128": (16, 4, 4, 2, 16, 1),
    "128×128, 128 threads": (8, 4, 4, 2, 16, 1),
    "128×64, 64 threads": (8, 2, 4, 2, 16, 1),
    "64×128, 64 threads": (8, 2, 2, 4, 16, 1),
    "64×128": (16, 4, 1, 2, 16, 1),
    "64×128, 128 threads": (8, 4, 2, 2, 16, 1),
    "64×128, 128 threads, 4 parts": (8, 4, 2, 2, 16, 4),
    "128×64, 128 threads": (16, 2, 2, 2, 16, 1),
    "128×64, 128 threads, 4 parts": (16, 2, 2, 2, 16, 4),
    "64×64": (16, 4, 1, 1, 16, 1),
    "64×64, 64 threads": (8, 2, 2, 2, 16, 1),
    "64×64, 64 threads, 8 parts": (8, 2, 2, 2, 16, 8),
    "64×64, 64 threads, 32 parts": (8, 2, 2, 2, 16, 32),
    "64×64×32, 64 threads": (8, 2, 2, 2, 32, 1),
    "32×64": (8, 4, 1, 1, 16, 1),
    "16×128, 8 parts": (4, 4, 1, 2, 16, 8),
    "16×128, 16 parts": (4, 4, 1, 2, 16, 16),
    "16×128, 32 parts": (4, 4, 1, 2, 16, 32),
    "16×128×32, 16 parts": (4, 4, 1, 2, 32, 16),
    "8×256, 16 parts": (2, 8, 1, 2, 16, 16),
}


def choices(variant: str) -> dict[str, Any] | None:
    if not variant:
        return None
    y, z, rows, columns, depth, parts = VARIANTS[variant]
    tile = {"x": 4, "y": y, "z": z, "row_pieces": rows, "column_pieces": columns, "vector": 4, "depth": depth}
    return {"0.tile": tile, "0.splits": {"value": parts}}


def scheduled(case: Case | Conv, variant: str, target: str) -> Any:
    from contextlib import nullcontext

    from loopwright import autosched
    from loopwright.autosched.choices import Choices

    given = choices(variant)
    with Choices(given) if given is not None else nullcontext():
        return autosched.apply(case.program(), target)


def is_size(what: str) -> bool:
    return what.startswith("tile") or what.endswith("parts of the sum")


def built(case: Case | Conv, variant: str, target: str, path: str) -> dict[str, Any]:
    """Compile into the file at `path`, in a process of its own; how long that takes, and what was chosen."""
    import loopwright as lw

    start = perf_counter()
    plan = scheduled(case, variant, target)
    after = perf_counter()
    module = lw.build(plan.mod, target=target)
    lowered = perf_counter()
    module.export_library(path)
    done = perf_counter()
    what = [choice.what for decision in plan.decisions for choice in decision.choices if is_size(choice.what)]
    return {
        "schedule": after - start,
        "build": lowered - after,
        "nvrtc": done - lowered,
        "rule": ", ".join([decision.rule for decision in plan.decisions if decision.rule != "inlined"]),
        "tile": ", ".join(what).removeprefix("tile "),
        "predicted_ms": sum([1e3 * one.roofline.expected for one in plan.decisions if one.roofline is not None]),
    }


class Tensors:
    """Operands on the GPU, made once a case."""

    def __init__(self, case: Case | Conv) -> None:
        import torch

        self.case, self.torch = case, torch
        generator = torch.Generator(device="cuda").manual_seed(case.terms)
        dtype = getattr(torch, case.dtype)
        self.given = [torch.randn(shape, device="cuda", generator=generator) for shape in case.shapes()[:-1]]
        if not dtype.is_floating_point:
            self.given = [(8 * one).round() for one in self.given]
        self.given = [one.to(dtype) for one in self.given]
        self.ours = torch.zeros(case.shapes()[-1], device="cuda", dtype=dtype)
        self.reference = case.reference(self.given, torch.zeros_like(self.ours))

    def error(self, result: Any) -> float:
        """The greatest difference to float64, in units of as many roundings of |A|·|B| as there are terms."""
        got, expected, bound = self.case.checked(self.given, result)
        difference = (got - expected).abs() / bound.clamp(min=1e-30)
        unit = {"float32": 2.0**-24, "float64": 2.0**-52, "int32": 2.0**-52}[self.case.dtype]
        return float(difference.max().item() / ((self.case.terms + 2) * unit))


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


def loaded(path: str, case: Case | Conv, variant: str, target: str) -> Any:
    import loopwright as lw
    from loopwright.runtime import load_module

    try:
        return load_module(path)
    except Exception as error:
        print(f"  {case.name}: built again, as the library is not loaded: {error}", flush=True)
        return lw.build(scheduled(case, variant, target).mod, target=target)


def measure(
    case: Case | Conv, parts: list[tuple[str, str, Future[Any]]], target: str, rounds: int
) -> list[dict[str, Any]]:
    """One row for each variant that was built."""
    tensors = Tensors(case)
    rows: list[dict[str, Any]] = []
    calls: list[Any] = [tensors.reference]
    for variant, path, future in parts:
        row: dict[str, Any] = {"family": case.family, "case": case.name, "variant": variant}
        rows.append(row)
        try:
            row.update(future.result())
            module = loaded(path, case, variant, target)
            tensors.ours.fill_(float("nan") if tensors.ours.is_floating_point() else -1)
            module(*tensors.given, tensors.ours)
            tensors.torch.cuda.synchronize()
            row["error"] = tensors.error(tensors.ours)
            if not row["error"] <= 1.0:
                raise ArithmeticError(f"the result is wrong: {row['error']:.3g} times what rounding may cause")
            row["call"] = len(calls)
            calls.append(lambda module=module: module(*tensors.given, tensors.ours))
        except Exception as error:
            traceback.print_exc()
            row["failed"] = f"{type(error).__name__}: {error}"
    medians = interleaved(calls, rounds, case.flops)
    for row in rows:
        if "call" in row:
            ours = medians[row.pop("call")]
            row.update(ms=ours, torch_ms=medians[0], ratio=medians[0] / ours, tflops=case.flops / ours / 1e9)
    best = min([row["ms"] for row in rows if "ms" in row], default=math.nan)
    for row in rows:
        if not row["variant"] and "ms" in row:
            row["of_best"] = best / row["ms"]
    return rows


def line(row: dict[str, Any]) -> str:
    name = f"{row['case']:36} {row['variant'] or 'rule: ' + row.get('tile', ''):30}"
    if "failed" in row:
        return f"{name} failed: {row['failed'][:300]}"
    took = row["schedule"] + row["build"] + row["nvrtc"]
    best = f"   {row['of_best']:.3f} of the best" if row.get("of_best", 1.0) != 1.0 else ""
    return (
        f"{name} {row['ms']:8.3f} ms {row['tflops']:6.1f} TFLOP/s   torch {row['torch_ms']:8.3f} ms   "
        f"ratio {row['ratio']:.3f}   ({row['rule']}, {took:.1f} s){best}"
    )


def report(rows: Sequence[dict[str, Any]]) -> None:
    """Geometric means: the rule's own choices, and the best of all variants."""

    def mean(ratios: Sequence[float]) -> str:
        return f"{math.exp(statistics.fmean([math.log(ratio) for ratio in ratios])):.3f}" if ratios else "-"

    bar = {case.name for case in BAR}
    groups = {"the bar's sizes": [row for row in rows if row["case"] in bar]}
    for family in dict.fromkeys([row["family"] for row in rows]):
        groups[family] = [row for row in rows if row["family"] == family]
    for name, some in groups.items():
        own = {row["case"]: row for row in some if not row["variant"] and "ratio" in row}
        best: dict[str, float] = {}
        for row in some:
            best[row["case"]] = max(best.get(row["case"], 0.0), row.get("ratio", 0.0))
        ratios = [row["ratio"] for row in own.values()]
        against = [row["ratio"] / best[case] for case, row in own.items()]
        print(f"{name}: {len(own)} cases, {mean(ratios)} of torch, {mean(against)} of the best variant")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all rows to this file")
    parser.add_argument("--variants", action="store_true", help="several tiles a case")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds after which no further case begins")
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    start = perf_counter()
    cases: list[Case | Conv] = VARIED if options.variants else [*BAR, *OTHERS, *CONVOLUTIONS]
    cases = [case for case in cases if options.only in case.name]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        work: dict[Case | Conv, list[tuple[str, str, Future[Any]]]] = {}
        for number, case in enumerate(cases):
            work[case] = []
            for variant in ("", *case.variants) if options.variants else ("",):
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
                failed = f"{type(error).__name__}: {error}"
                result = [{"family": case.family, "case": case.name, "variant": "", "failed": failed}]
            rows += result
            for row in sorted(result, key=lambda row: row.get("ms", math.inf)):
                print(line(row), flush=True)
    report(rows)
    print(f"{perf_counter() - start:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
