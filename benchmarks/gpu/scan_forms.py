"""Which form of a scan of long rows is the fastest: `python benchmarks/gpu/scan_forms.py`.

    --sizes 22,24,26,28   powers of two: elements of one row of float32
    --only "one pass"     forms whose name contains the text
    --json FILE           all figures
    --seconds 60          start no further size after these
    --trial               small rows, emulated, on a machine without a GPU: the figures mean nothing

Each form is a plan of `autosched/gpu/scan_plan.py`; what wins here becomes a constant there. "rule" is what the rule
chooses. Beside them: torch's cumsum, and a copy, which moves as many bytes. Times of one size are interleaved.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]
os.environ["LOOPWRIGHT_CACHE"] = "0"  # modules are kept by their program, which is the same for all forms

ROUNDS = 7


def _forms(length: int) -> Iterator[tuple[str, Any]]:
    """Names and plans (None: the rule's)."""
    from loopwright.autosched.gpu.scan_plan import ScanPlan

    def one_pass(threads: int, vectors: int) -> ScanPlan:
        return ScanPlan(threads, vectors, 4, tiles=1, looks_back=True)

    def pipelined(vectors: int, stages: int) -> ScanPlan:
        return ScanPlan(512, vectors, 4, tiles=1, stages=stages, looks_back=True, blocks=132)

    yield "rule", None
    for vectors, stages in ((4, 6), (4, 4), (2, 12), (6, 4), (8, 3)):
        yield f"pipelined 512×{vectors}, {stages} stages", pipelined(vectors, stages)
    tiles = max(1, length // (4096 * 2048))
    yield "two kernels", ScanPlan(256, 4, 4, tiles=1 << (tiles.bit_length() - 1))
    for threads, vectors in ((256, 8), (256, 4), (512, 8), (512, 4), (128, 8), (1024, 4), (256, 12)):
        yield f"one pass {threads}×{vectors}", one_pass(threads, vectors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="22,24,26,28", help="powers of two")
    parser.add_argument("--only", default="", help="forms whose name contains the text")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--seconds", type=float, default=60, help="start no further size after these")
    parser.add_argument("--trial", action="store_true", help="small rows, emulated")
    options = parser.parse_args()
    begin, result, failures = time.monotonic(), [], 0
    for bits in [12, 17] if options.trial else map(int, options.sizes.split(",")):
        if time.monotonic() - begin > options.seconds and not options.trial:
            print(f"not measured: 2^{bits}")
            continue
        row = measured(1 << bits, options.only, options.trial)
        result.append(row)
        failures += len(row["failed"])
        print(show(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    print(f"done by {time.monotonic() - begin:.0f} s; {failures} forms failed")
    return int(failures > 0)


def measured(length: int, only: str, is_trial: bool) -> dict[str, Any]:
    """Seconds of each form on one row."""
    import torch
    from case import error_of
    from rounds import GpuClock, HostClock, interleaved

    device = "cpu" if is_trial else "cuda"
    clock = HostClock() if is_trial else GpuClock()
    data = torch.randn(length, generator=torch.Generator(device).manual_seed(0), device=device)
    truth = torch.cumsum(data.double(), 0)
    out, other = torch.empty_like(data), torch.empty_like(data)
    calls: dict[str, Any] = {"copy": lambda k: other.copy_(data), "torch": lambda k: torch.cumsum(data, 0, out=other)}
    errors, failed = {"torch": error_of(torch.cumsum(data, 0), truth)}, {}
    for name, plan in _forms(length):
        if only not in name and name != "rule":
            continue
        try:
            call = _built(length, plan, data, out, is_trial)
            bits = []
            for _ in range(3):
                out.fill_(float("nan"))
                call(0)
                bits.append(out.clone())
            errors[name] = error_of(out, truth)
            assert errors[name] <= max(2e-5, 4 * errors["torch"]), f"wrong: error {errors[name]:.1e}"
            assert torch.equal(bits[0], bits[1]) and torch.equal(bits[0], bits[2]), "other bits in another run"
            calls[name] = call
        except Exception as error:  # one form less
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    is_cold = 8 * length > clock.l2_bytes // 2
    seconds = interleaved(calls, 1, is_cold, clock, 1 if is_trial else ROUNDS)
    return {"length": length, "seconds": seconds, "errors": errors, "failed": failed, "cold": is_cold}


def _built(length: int, plan: Any, data: Any, out: Any, is_trial: bool) -> Any:
    import importlib

    import loopwright as lw
    from loopwright import te, topi

    scan = importlib.import_module("loopwright.autosched.gpu.parallel_scan")
    given = te.placeholder((length,), name="data")
    with ExitStack() as stack:
        if plan is not None:
            stack.enter_context(patch.object(scan, "scan_plan", lambda *_: plan))
        target = "cuda -model=emulated -arch=sm_90" if is_trial else "cuda"
        module = lw.build([given, topi.cumsum(given, 0)], target=target, autosched=True)
        tensors = [one.numpy() if is_trial else lw.nd.from_dlpack(one) for one in (data, out)]
        function = module[module.entry_name]
        function(*tensors)  # compiles it
    return lambda k: function(*tensors)


def show(row: dict[str, Any]) -> str:
    """One size: microseconds, bytes a second, and how close to a copy."""
    seconds, length = row["seconds"], row["length"]
    lines = [f"2^{length.bit_length() - 1} float32, {'cold' if row['cold'] else 'in L2'}"]
    for name, time_of in sorted(seconds.items(), key=lambda item: item[1]):
        speed, share = 8 * length / time_of * 1e-12, seconds["copy"] / time_of
        lines.append(f"  {name:<28} {time_of * 1e6:9.1f} µs  {speed:6.2f} TB/s  {share:5.2f} of a copy")
    return "\n".join([*lines, *[f"  FAILED {name}: {why}" for name, why in row["failed"].items()]])


if __name__ == "__main__":
    sys.exit(main())
