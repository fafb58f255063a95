"""Attention by tensor cores beside every SDPA backend of torch: `python benchmarks/gpu/attention.py`.

    python benchmarks/gpu/attention.py                   what the rule chooses: a line a case
    python benchmarks/gpu/attention.py --variants        each case with other plans too, the fastest first
    python benchmarks/gpu/attention.py --only causal     cases whose name contains the text
    python benchmarks/gpu/attention.py --json rows.json  all rows: milliseconds, TFLOP/s, the best backend's time / ours
    python benchmarks/gpu/attention.py --trial           small cases, emulated on the CPU, without torch

All contenders run in turns, between CUDA events, and medians are compared. Results are compared with float64 on some
heads. A case that fails is reported and left out; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION")
# groups, keys, stages, query stages, overlaps, registers; blocks and splits are the rule's own.
PLANS: dict[int, tuple[tuple[int, int, int, int, bool, int], ...]] = {
    64: (
        (3, 128, 3, 1, True, 160),
        (3, 128, 2, 2, True, 160),
        (3, 128, 4, 1, True, 160),
        (3, 128, 3, 1, False, 160),
        (2, 128, 4, 2, True, 232),
        (2, 192, 3, 1, True, 232),
    ),
    128: (
        (2, 128, 2, 1, True, 232),
        (2, 128, 2, 2, True, 232),
        (2, 176, 2, 1, True, 232),
        (2, 160, 2, 1, True, 232),
        (2, 128, 2, 1, False, 232),
        (2, 112, 3, 1, True, 232),
        (2, 96, 3, 1, True, 232),
    ),
    256: ((2, 64, 2, 1, True, 232), (2, 80, 2, 1, True, 232), (2, 64, 2, 1, False, 232)),
}


@dataclass(frozen=True)
class Case:
    """`queries` of them see `keys`; some heads of queries share one of keys."""

    batch: int
    heads: int
    queries: int
    keys: int
    depth: int
    causal: bool = False
    own_heads: int = 0  # of keys; 0 for as many as of queries
    dtype: str = "float16"

    @property
    def name(self) -> str:
        shared = f" of {self.own_heads}" if self.own_heads else ""
        length = f"{self.queries}" if self.queries == self.keys else f"{self.queries}:{self.keys}"
        kind = "" if self.dtype == "float16" else f" {self.dtype}"
        return f"{self.batch}×{self.heads}{shared}×{length}×{self.depth}{kind}{' causal' if self.causal else ''}"

    @property
    def diagonal(self) -> int:
        """The last query sees all keys."""
        return self.keys - self.queries

    @property
    def flops(self) -> float:
        """Of both products; half of them where half of the scores are seen."""
        share = (self.keys - (self.queries - 1) / 2) / self.keys if self.causal else 1.0
        return 4.0 * self.batch * self.heads * self.queries * self.keys * self.depth * share

    @property
    def bytes(self) -> float:
        kept = 2 * self.heads * self.queries + 2 * (self.own_heads or self.heads) * self.keys
        return 2.0 * self.batch * kept * self.depth

    def shapes(self) -> list[tuple[int, ...]]:
        """Of the query, the keys, the values and the result."""
        own = self.own_heads or self.heads
        q, k = (self.batch, self.heads, self.queries, self.depth), (self.batch, own, self.keys, self.depth)
        return [q, k, k, q]


SQUARE = [Case(4, 32, 4096, 4096, 128), Case(2, 16, 8192, 8192, 128), Case(16, 16, 1024, 1024, 64)]
PREFILL = [
    *[one for case in SQUARE for one in (case, replace(case, causal=True))],
    Case(4, 32, 4096, 4096, 64),
    Case(4, 32, 4096, 4096, 64, causal=True),
    Case(4, 32, 4096, 4096, 128, own_heads=4),
    Case(4, 32, 4096, 4096, 128, causal=True, own_heads=4),
    Case(4, 16, 4096, 4096, 256),
    Case(4, 32, 4000, 4000, 128, causal=True),
    Case(4, 32, 4096, 4096, 128, dtype="bfloat16"),
]
DECODE = [
    Case(batch, 32, 1, keys, 128, own_heads=own) for batch, own in ((1, 4), (8, 4), (8, 0)) for keys in (8192, 65536)
]
TRIAL = [
    Case(1, 2, 130, 200, 64),
    Case(1, 4, 150, 150, 128, causal=True, own_heads=2),
    Case(1, 8, 1, 700, 128, own_heads=2),
]


def chosen(case: Case, target: str) -> Any:
    """The program that the rule makes."""
    from loopwright import autosched, te
    from loopwright.topi.nn.attention import attention

    tensors = [te.placeholder(shape, case.dtype, f"t{k}") for k, shape in enumerate(case.shapes()[:3])]
    result = attention(*tensors, causal=case.causal, diagonal=case.diagonal)
    return autosched.apply([*tensors, result], target).mod


def variant(case: Case, plan: Sequence[Any], target: str) -> Any:
    """The program of one plan."""
    from loopwright.autosched.gpu import GpuMachine
    from loopwright.autosched.gpu.attention import AttentionPlan, AttentionShape, attention_kernel
    from loopwright.ir import PrimFunc, decl_buffer

    buffers = [decl_buffer(shape, case.dtype, f"t{k}") for k, shape in enumerate(case.shapes())]
    groups, keys, stages, query_stages, overlaps, registers = plan
    blocks = GpuMachine.of(target).multiprocessors
    of_rule = AttentionPlan(groups, keys, stages, query_stages, blocks, overlaps, registers)
    orders = ("BHSD",) * 4
    group = case.heads // (case.own_heads or case.heads)
    sizes = (case.batch, case.heads, group, case.queries, case.keys, case.depth)
    shape = AttentionShape(*buffers, orders, *sizes, case.depth**-0.5, case.causal, case.diagonal, False)
    function = PrimFunc(buffers, attention_kernel(shape, of_rule))
    return function.with_attr("tir.noalias", True).with_attr("global_symbol", "attention")


def contenders(case: Case, options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Programs by name, made when they are called."""
    result: dict[str, Callable[[], Any]] = {"rule": lambda: chosen(case, options.target)}
    if options.variants and case.queries > 1:
        for plan in PLANS[case.depth]:
            groups, keys, stages, query_stages, overlaps, registers = plan
            name = f"{groups}×64:{keys} {stages}+{query_stages}{'' if overlaps else ' in order'} {registers}"
            result[name] = lambda plan=plan: variant(case, plan, options.target)  # type: ignore[misc]
    return result


def in_float64(case: Case, q: Any, k: Any, v: Any) -> Any:
    """What it means, of arrays of numpy in float64."""
    import numpy as np

    scores = q @ k.swapaxes(-1, -2) * case.depth**-0.5
    if case.causal:
        hidden = np.arange(case.keys)[None] > np.arange(case.queries)[:, None] + case.diagonal
        scores = np.where(hidden, -np.inf, scores)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers @ v / powers.sum(-1, keepdims=True)


def trial(options: argparse.Namespace) -> int:
    """Small cases on the CPU."""
    import numpy as np

    import loopwright as lw

    rng, failed = np.random.default_rng(0), 0
    for case in TRIAL:
        given = [rng.standard_normal(shape).astype("float16") for shape in case.shapes()[:3]]
        q, k, v = [one.astype("float64") for one in given]
        shared = case.heads // (case.own_heads or case.heads)
        expected = in_float64(case, q, np.repeat(k, shared, 1), np.repeat(v, shared, 1))
        for name, made in contenders(case, options).items():
            start = perf_counter()
            module = lw.build(made(), target=options.target)
            result = np.full(case.shapes()[3], np.nan, "float16")
            module(*given, result)
            error = float(np.abs(result.astype("float64") - expected).max())
            failed += not error < 4e-3
            print(f"{case.name:36} {name:30} error {error:.1e}   ({perf_counter() - start:.1f} s)", flush=True)
    return int(failed > 0)


class Tensors:
    """What is computed on the GPU, made once a case."""

    def __init__(self, case: Case) -> None:
        import torch

        self.case, self.torch = case, torch
        generator = torch.Generator(device="cuda").manual_seed(case.keys)
        dtype = getattr(torch, case.dtype)
        shapes = case.shapes()
        self.given = [torch.randn(shape, device="cuda", generator=generator).to(dtype) for shape in shapes[:3]]
        self.ours = torch.zeros(shapes[3], device="cuda", dtype=dtype)

    def backends(self) -> dict[str, Callable[[], Any]]:
        """Those backends of torch that take the case."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        case, (q, k, v) = self.case, self.given
        result: dict[str, Callable[[], Any]] = {}
        for name in BACKENDS:

            backend = getattr(SDPBackend, name)

            def run(backend: Any = backend) -> Any:
                with sdpa_kernel(backend):
                    return scaled_dot_product_attention(q, k, v, is_causal=case.causal, enable_gqa=bool(case.own_heads))

            try:
                run()
                self.torch.cuda.synchronize()
            except Exception as error:
                print(f"  {case.name}: no {name}: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            result[name.removesuffix("_ATTENTION").lower()] = run
        return result

    def error(self, result: Any) -> float:
        """The greatest difference to float64 of two heads."""
        import numpy as np

        case = self.case
        worst = 0.0
        for batch, head in {(0, 0), (case.batch - 1, case.heads - 1)}:
            own = head * (case.own_heads or case.heads) // case.heads
            rows = slice(max(0, case.queries - 256), None)
            q = self.given[0][batch, head, rows].double().cpu().numpy()
            k, v = [one[batch, own].double().cpu().numpy() for one in self.given[1:]]
            part = replace(case, queries=q.shape[0])
            got = result[batch, head, rows].double().cpu().numpy()
            worst = max(worst, float(np.abs(in_float64(part, q, k, v) - got).max()))
        return worst if math.isfinite(float(result.float().sum())) else math.nan


def interleaved(torch: Any, calls: dict[str, Callable[[], Any]], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of a call in each round."""
    repeats = max(1, min(50, int(2e-3 / seconds)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    names = list(calls)
    for turn in range(rounds):
        for name in [*names[turn % len(names) :], *names[: turn % len(names)]]:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            calls[name]()
            begin.record()
            for _ in range(repeats):
                calls[name]()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / repeats)
    return times


def measure(case: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each contender."""
    import loopwright as lw

    tensors = Tensors(case)
    calls = tensors.backends()
    theirs = list(calls)
    rows: list[dict[str, Any]] = []
    for name, made in contenders(case, options).items():
        row: dict[str, Any] = {"case": case.name, "variant": name}
        rows.append(row)
        try:
            start = perf_counter()
            module = lw.build(made(), target=options.target)
            tensors.ours.fill_(math.nan)
            module(*tensors.given, tensors.ours)
            tensors.torch.cuda.synchronize()
            row["build"] = perf_counter() - start
            row["error"] = tensors.error(tensors.ours)
            if not row["error"] < (4e-3 if case.dtype == "float16" else 3e-2):
                raise ArithmeticError(f"the result is wrong by {row['error']:.3g}")
            calls[name] = lambda module=module: module(*tensors.given, tensors.ours)  # type: ignore[misc]
        except Exception as error:
            traceback.print_exc()
            row["failed"] = f"{type(error).__name__}: {error}"
    seconds = max(case.flops / 500e12, case.bytes / 4e12)
    rounds = interleaved(tensors.torch, calls, options.rounds, seconds)
    times = {name: statistics.median(some) for name, some in rounds.items()}
    best = min([times[name] for name in theirs], default=math.nan)
    for row in rows:
        if row["variant"] in times:
            ours = times[row["variant"]]
            row.update(ms=ours, ratio=best / ours, tflops=case.flops / ours / 1e9, gbs=case.bytes / ours / 1e6)
            row["theirs"] = {name: times[name] for name in theirs}
    return rows


def line(row: dict[str, Any]) -> str:
    name = f"{row['case']:32} {row['variant']:26}"
    if "failed" in row:
        return f"{name} failed: {row['failed'][:300]}"
    theirs = ", ".join([f"{name} {ms:.3f}" for name, ms in sorted(row["theirs"].items(), key=lambda item: item[1])])
    return (
        f"{name} {row['ms']:8.3f} ms {row['tflops']:6.1f} TFLOP/s {row['gbs']:5.0f} GB/s   ratio {row['ratio']:.3f} "
        f"({theirs} ms; error {row['error']:.1e}, {row['build']:.1f} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all rows to this file")
    parser.add_argument("--variants", action="store_true", help="other plans, too")
    parser.add_argument("--trial", action="store_true", help="small cases on the CPU")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", default="")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds after which no further case begins")
    options = parser.parse_args()
    options.target = options.target or ("cuda -arch=sm_90a -model=emulated" if options.trial else "cuda -arch=sm_90a")
    if options.trial:
        return trial(options)
    start = perf_counter()
    rows: list[dict[str, Any]] = []
    for case in [case for case in [*PREFILL, *DECODE] if options.only in case.name]:
        if perf_counter() - start > options.limit:
            print(f"{case.name}: left out, {options.limit:.0f} s are over", flush=True)
            continue
        try:
            result = measure(case, options)
        except Exception as error:
            traceback.print_exc()
            result = [{"case": case.name, "variant": "", "failed": f"{type(error).__name__}: {error}"}]
        rows += result
        for row in sorted(result, key=lambda row: row.get("ms", math.inf)):
            print(line(row), flush=True)
    own = [row["ratio"] for row in rows if row["variant"] == "rule" and "ratio" in row]
    if own:
        mean = math.exp(statistics.fmean([math.log(ratio) for ratio in own]))
        print(f"{len(own)} cases, {mean:.3f} of the best backend; {perf_counter() - start:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
