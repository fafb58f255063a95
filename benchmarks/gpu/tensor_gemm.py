"""Matrix products on tensor cores by rule beside torch's (cuBLAS): `python benchmarks/gpu/tensor_gemm.py`.

    python benchmarks/gpu/tensor_gemm.py                     what the rule chooses: a line a case
    python benchmarks/gpu/tensor_gemm.py --variants          each case with several tiles too, the fastest first
    python benchmarks/gpu/tensor_gemm.py --only bfloat16     cases whose name or family contains the text
    python benchmarks/gpu/tensor_gemm.py --json rows.json    all rows: milliseconds, TFLOP/s, torch's time / ours
    python benchmarks/gpu/tensor_gemm.py --power             watts and MHz while each of both runs
    python benchmarks/gpu/tensor_gemm.py --trial             small cases, emulated, without GPU and torch

All run in turns, between CUDA events, and medians are compared. Operands that fit L2 stay in it, but for products of
few rows: before each of their calls L2 is filled with other data. Some rows of every result are compared with float64.
Several processes schedule and compile before anything is measured; another one measures, and is started again where a
kernel takes its GPU with it. A case that fails is reported and left out; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

from cases_tensor import CASES, TORCH, TRIAL, VARIANTS, Case
from children import Row, serve, supervised
from report import geomean

EMULATED = "cuda -model=emulated -arch=sm_90a"
_PATIENCE = 60.0  # seconds for a case
_LOAD = 0.6  # seconds under which power is read


# --- building ---------------------------------------------------------------------------------------------------------


def choices(variant: str) -> dict[str, Any] | None:
    if not variant:
        return None
    rows, columns, resident, parts = VARIANTS[variant]
    tile = {"rows": rows, "columns": columns, "resident": resident}
    return {"0.tile": tile, "0.splits": {"value": parts}}


def scheduled(case: Case, variant: str, target: str) -> Any:
    from loopwright import autosched
    from loopwright.autosched.choices import Choices

    given = choices(variant)
    with Choices(given) if given is not None else nullcontext():
        return autosched.apply(case.program(), target)


def built(case: Case, variant: str, target: str, path: str) -> Row:
    """Compile into the file at `path`, in a process of its own; how long that takes, and what was chosen."""
    import loopwright as lw

    start = perf_counter()
    plan = scheduled(case, variant, target)
    after = perf_counter()
    module = lw.build(plan.mod, target=target)
    lowered = perf_counter()
    module.export_library(path)
    done = perf_counter()
    said = [choice.what for decision in plan.decisions for choice in decision.choices]
    kept = [what for what in said if what.startswith(("tile", "the transposed")) or what.endswith(("sum", "first"))]
    return {
        "schedule": after - start,
        "build": lowered - after,
        "nvrtc": done - lowered,
        "rule": ", ".join([decision.rule for decision in plan.decisions if decision.rule != "inlined"]),
        "tile": ", ".join(kept).removeprefix("tile "),
        "predicted_ms": sum([1e3 * one.roofline.expected for one in plan.decisions if one.roofline is not None]),
    }


# --- measuring --------------------------------------------------------------------------------------------------------


class Tensors:
    """Operands on the GPU, made once a case, as torch has them and as our functions take them."""

    def __init__(self, case: Case) -> None:
        import torch

        self.case, self.torch = case, torch
        generator = torch.Generator(device="cuda").manual_seed(case.k)
        self.given = []
        for at, shape in enumerate(case.shapes()[:-1]):
            dtype = case.dtype if at < 2 else case.result
            if dtype == "int8":
                one = torch.randint(-128, 128, shape, device="cuda", generator=generator, dtype=torch.int8)
            else:
                one = torch.randn(shape, device="cuda", generator=generator, dtype=torch.float16)
                one = one.to(getattr(torch, TORCH.get(dtype, dtype)))
            self.given.append(one)
        self.result = torch.zeros(case.shapes()[-1], device="cuda", dtype=getattr(torch, case.result))
        self.reference = case.reference(self.given, torch.zeros_like(self.result))
        self.ours = [self._ours(one, case.dtype if at < 2 else "") for at, one in enumerate(self.given)]
        self.ours.append(self._ours(self.result, ""))

    def _ours(self, tensor: Any, dtype: str) -> Any:
        import loopwright as lw

        if not dtype.startswith("float8"):
            return lw.nd.from_dlpack(tensor)
        import ml_dtypes  # DLPack has no float8 that both sides know

        data = tensor.view(self.torch.uint8).cpu().numpy().view(getattr(ml_dtypes, TORCH.get(dtype, dtype)))
        return lw.nd.array(data, lw.cuda(0))


def power_under(call: Any) -> dict[str, float]:
    """Watts and the clock of multiprocessors in MHz while a call runs again and again."""
    import torch

    done = threading.Event()
    result: dict[str, float] = {}

    def ask() -> None:
        time.sleep(_LOAD / 2)
        query = ["nvidia-smi", "--query-gpu=power.draw,clocks.sm", "--format=csv,noheader,nounits", "--id=0"]
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip().split(",")
        if len(said) == 2:
            result.update(watts=float(said[0]), mhz=float(said[1]))
        done.set()

    asker = threading.Thread(target=ask)
    asker.start()
    end = time.monotonic() + 10
    while not done.is_set() and time.monotonic() < end:
        for _ in range(20):
            call()
        torch.cuda.synchronize()
    asker.join()
    return result


def measure(job: dict[str, Any]) -> Row:
    """The rows of a case: one for each variant that was built."""
    import torch
    from rounds import GpuClock, interleaved

    from loopwright.runtime import load_module

    case, rows = Case(**job["of"]), [dict(row) for row in job["built"]]
    tensors = Tensors(case)
    calls: dict[str, Any] = {}
    for row in rows:
        if "failed" in row:
            continue
        try:
            module = load_module(row["path"])
            tensors.result.fill_(float("nan") if tensors.result.is_floating_point() else -1)
            module(*tensors.ours)
            torch.cuda.synchronize()
            row["error"] = case.checked(tensors.given, tensors.result)
            if not row["error"] <= 1.0:
                raise ArithmeticError(f"the result is wrong: {row['error']:.3g} times what rounding may cause")
            function = module[module.entry_name]
            calls[row["variant"]] = lambda k, function=function: function(*tensors.ours)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:600]
    try:
        torch_error = ""
        tensors.reference()
        torch.cuda.synchronize()
        calls["torch"] = lambda k: tensors.reference()
    except RuntimeError as error:  # cuBLAS has no such product
        torch_error = str(error).splitlines()[0]
    is_cold = case.m <= 128
    medians = interleaved(calls, 1, is_cold, GpuClock(), int(job["rounds"]))
    reference = medians.get("torch", math.nan)
    powers = {name: power_under(lambda call=call: call(0)) for name, call in calls.items()} if job["power"] else {}
    for row in rows:
        if row["variant"] in medians:
            ours = medians[row["variant"]]
            row.update(ms=1e3 * ours, tflops=case.flops / ours / 1e12, is_cold=is_cold, torch_error=torch_error)
            if reference == reference:
                row.update(torch_ms=1e3 * reference, torch_tflops=case.flops / reference / 1e12, ratio=reference / ours)
            row.update(power=powers.get(row["variant"], {}), torch_power=powers.get("torch", {}))
    best = min([row["ms"] for row in rows if "ms" in row], default=math.nan)
    for row in rows:
        if not row["variant"] and "ms" in row:
            row["of_best"] = best / row["ms"]
    return {"rows": rows, "device": torch.cuda.get_device_name(0), "torch": torch.__version__}


def is_usable() -> bool:
    """Whether the GPU of this process still answers."""
    import torch

    try:
        torch.cuda.synchronize()
        return bool(torch.ones(1, device="cuda").item() == 1.0)
    except RuntimeError:
        return False


# --- what is printed --------------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    name = f"{row['case']:40} {row['variant'] or 'rule: ' + row.get('tile', ''):34}"
    if "ms" not in row:
        return f"{name} failed: {row.get('failed', 'not measured')[:300]}"
    took = row["schedule"] + row["build"] + row["nvrtc"]
    best = f"   {row['of_best']:.3f} of the best" if row.get("of_best", 1.0) != 1.0 else ""
    peer = f"torch: {row['torch_error'][:60]}"
    if "ratio" in row:
        peer = f"torch {row['torch_ms']:8.4f} ms {row['torch_tflops']:6.1f}   ratio {row['ratio']:.3f}"
    power = "".join(
        [f"   {who} {one['watts']:.0f} W {one['mhz']:.0f} MHz" for who, one in _powers(row) if "watts" in one]
    )
    return (
        f"{name} {row['ms']:8.4f} ms {row['tflops']:6.1f} TFLOP/s   {peer}   "
        f"(expected {row['predicted_ms']:.4f}, built in {took:.1f} s){best}{power}"
    )


def _powers(row: Row) -> list[tuple[str, dict[str, float]]]:
    return [("ours", row.get("power", {})), ("torch", row.get("torch_power", {}))]


def report(rows: list[Row]) -> None:
    """Geometric means: of the rule's own choices, and of the best variants."""
    own = [row for row in rows if not row["variant"] and "ratio" in row]
    groups = {"all": own} | {name: [row for row in own if row["family"] == name] for name in _families(own)}
    for name, some in groups.items():
        ratio = geomean([row["ratio"] for row in some])
        against = geomean([row.get("of_best", 1.0) for row in some])
        print(f"{name}: {len(some)} cases, {ratio:.3f} of torch, {against:.3f} of the best variant")


def _families(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys([row["family"] for row in rows]))


# --- without a GPU ----------------------------------------------------------------------------------------------------


def trial(only: str) -> int:
    """Small cases on the emulated GPU, against float64."""
    import ml_dtypes
    import numpy as np

    import loopwright as lw

    def kind(dtype: str) -> Any:
        return getattr(ml_dtypes, TORCH.get(dtype, dtype)) if "float8" in dtype or dtype == "bfloat16" else dtype

    failures = 0
    for case in [case for case in TRIAL if only in case.name]:
        module = lw.build(scheduled(case, "", EMULATED).mod, target=EMULATED)
        rng = np.random.default_rng(case.k)
        types = [case.dtype, case.dtype, case.result]
        given = [
            rng.integers(-128, 128, shape).astype("int8")
            if dtype == "int8"
            else rng.standard_normal(shape).astype(kind(dtype))
            for shape, dtype in zip(case.shapes()[:-1], types, strict=False)
        ]
        out = lw.nd.array(np.zeros(case.shapes()[-1], kind(case.result)))
        module(*[lw.nd.array(one) for one in given], out)
        a, b, *bias = [one.astype("float64") for one in given]
        a = a if case.layout[0] == "n" else a.swapaxes(-1, -2)
        b = b if case.layout[1] == "n" else b.swapaxes(-1, -2)
        wanted = np.maximum(a @ b + bias[0], 0) if bias else a @ b
        error = float((abs(out.numpy().astype("float64") - wanted) / (abs(a) @ abs(b) + 1)).max())
        is_right = error <= (0 if case.dtype == "int8" else 2**-8)
        failures += not is_right
        print(f"{'right' if is_right else 'WRONG'} {case.name}: error {error:.1e}", flush=True)
    return int(failures > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all rows to this file")
    parser.add_argument("--variants", action="store_true", help="several tiles a case")
    parser.add_argument("--only", default="", help="cases whose name or family contains this")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--power", action="store_true", help="watts and clocks, by nvidia-smi")
    parser.add_argument("--trial", action="store_true", help="small cases, emulated")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--limit", type=float, default=400.0, help="seconds after which no further case begins")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return serve(measure, is_usable)
    if options.trial:
        return trial(options.only)
    start, deadline = perf_counter(), time.monotonic() + options.limit
    cases = [case for case in CASES if options.only in case.name or options.only in case.family]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        work: list[tuple[Case, list[tuple[str, str, Future[Row]]]]] = []
        with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
            for number, case in enumerate(cases):
                parts = []
                for variant in ("", *case.variants) if options.variants else ("",):
                    path = f"{folder}/{number}_{len(parts)}.so"
                    parts.append((variant, path, pool.submit(built, case, variant, options.target, path)))
                work.append((case, parts))
        jobs = []
        for case, parts in work:
            made: list[Row] = []
            for variant, path, future in parts:
                row: Row = {"family": case.family, "case": case.name, "variant": variant, "path": path}
                try:
                    row.update(future.result())
                except Exception as error:
                    row["failed"] = f"{type(error).__name__}: {error}"[:600]
                made.append(row)
            jobs.append({"of": vars(case), "built": made, "rounds": options.rounds, "power": options.power})
        print(f"built in {perf_counter() - start:.0f} s", flush=True)
        command = [sys.executable, str(Path(__file__).resolve()), "--child"]
        for one in supervised(command, jobs, _PATIENCE, deadline):
            result = one.get("rows") or [{**row, "failed": one.get("failed")} for row in one["built"][:1]]
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
