"""Our kernels beside torch eager and torch.compile on one GPU: `python benchmarks/gpu/bandwidth.py`.

    --only softmax          cases whose family or name contains the text
    --json FILE             all figures
    --no-compile            without torch.compile
    --sanitize              one call of each small case, without torch on the GPU, for compute-sanitizer
    --trial                 small cases, emulated, on a machine without a GPU: the figures mean nothing

Everything is compiled first, by several processes; then one process measures, all contenders interleaved (`rounds.py`).
A row that fails is counted, and the run goes on. Bars: 1.1 times eager over all, 0.97 of the better of eager and
torch.compile in every family, no row under 0.85. The exit status is 1 where a result is wrong or a row failed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import sys
import tempfile
import time
from math import prod
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]

from case import Case
from children import Job, Row, serve, side_by_side, supervised

MODULES = ("cases_basic", "cases_reduce", "cases_move", "cases_gemm")
SMALL_BYTES = 1 << 22
PATIENCE = 60.0  # seconds for a row


def main() -> int:
    options = _options()
    if options.child:
        return _child(options.child, options.trial)
    if options.sanitize:
        return _sanitize(options.only, options.trial)
    from report import show

    begin = time.monotonic()
    deadline = begin + options.seconds
    jobs: list[Job] = [{"case": title, "compile": not options.no_compile} for title in _titles(options)]
    with tempfile.TemporaryDirectory(prefix="loopwright-bandwidth-") as folder:
        os.environ.setdefault("LOOPWRIGHT_CACHE_DIR", f"{folder}/ours")
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{folder}/torch")
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # we run several processes
        command = [sys.executable, str(Path(__file__).resolve()), *(["--trial"] if options.trial else []), "--child"]
        half = min(deadline, begin + options.seconds * 0.5)
        ready = side_by_side([*command, "prepare"], jobs, options.jobs, PATIENCE, half)
        print(f"{len(jobs)} cases, compiled in {time.monotonic() - begin:.0f} s", flush=True)
        not_compiled = {row["case"]: row["no_compile"] for row in ready if row.get("no_compile")}
        for row in ready:
            if "failed" in row:
                not_compiled[row["case"]] = row["failed"]
        for job in jobs:
            job["compile"] = job["compile"] and job["case"] not in not_compiled
        rows = []
        for row in supervised([*command, "measure"], [{"ceilings": True}, *jobs], PATIENCE, deadline):
            rows.append(row)
            if "failed" in row:
                print(f"FAILED {row.get('case', 'ceilings')}: {row['failed']}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "not_compiled": not_compiled}, indent=1))
    print(f"measured by {time.monotonic() - begin:.0f} s")
    for title, why in not_compiled.items():
        print(f"without torch.compile: {title}: {why[:160]}")
    return show(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose family or name contains this")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--seconds", type=float, default=300, help="start no row after these (default 300)")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1), help="processes that compile")
    parser.add_argument("--sanitize", action="store_true", help="one call of each small case")
    parser.add_argument("--trial", action="store_true", help="small cases, emulated")
    parser.add_argument("--child", choices=("prepare", "measure"), help=argparse.SUPPRESS)
    return parser.parse_args()


def load_cases(is_small: bool) -> dict[str, Case]:
    """The cases of all files that are there, by title; the small ones are those of SMALL, or what has few bytes."""
    result: dict[str, Case] = {}
    for name in MODULES:
        if not (HERE / f"{name}.py").exists():
            continue
        module = importlib.import_module(name)
        cases = module.CASES
        if is_small:
            cases = getattr(module, "SMALL", [case for case in cases if case.input_bytes <= SMALL_BYTES])
        for case in cases:
            assert case.title not in result, f"two cases are {case.title}"
            result[case.title] = case
    return result


def _titles(options: argparse.Namespace) -> list[str]:
    return [title for title in load_cases(options.trial or options.sanitize) if options.only in title]


# --- a child -----------------------------------------------------------------------------------------------------


def _child(kind: str, is_trial: bool) -> int:
    import torch
    from contenders import EMULATED, GPU

    cases, place = load_cases(is_trial), EMULATED if is_trial else GPU
    torch.set_grad_enabled(False)

    def work(job: Job) -> Row:
        if "ceilings" in job:
            return _ceilings(place)
        try:
            return (_prepare if kind == "prepare" else _measure)(cases[job["case"]], place, job["compile"])
        finally:
            gc.collect()
            if place.is_gpu:
                torch.cuda.empty_cache()

    def is_usable() -> bool:
        try:
            if place.is_gpu:
                torch.cuda.synchronize()
                torch.zeros(8, device="cuda").cpu()
        except Exception:
            return False
        return True

    return serve(work, is_usable)


def _prepare(case: Case, place: Any, compiles: bool) -> Row:
    """Fill the caches of both compilers."""
    from case import make_inputs
    from contenders import compiled, ours

    start = time.perf_counter()
    failed: Row = {}
    inputs = make_inputs(case, place.device)
    with contextlib.suppress(Exception):  # the process that measures says so
        ours(case, place, [inputs])(0)
    mine = time.perf_counter() - start
    if compiles:
        try:
            compiled(case)(*inputs)
        except Exception as error:
            failed = {"no_compile": f"{type(error).__name__}: {error}"[:300]}
    return {"build_s": mine, "compile_s": time.perf_counter() - start - mine, **failed}


def _measure(case: Case, place: Any, compiles: bool) -> Row:
    from contenders import prepare
    from rounds import ROUNDS, interleaved

    clock = _clock(place)
    size = case.input_bytes + prod(case.out) * 4
    is_cold = size > clock.l2_bytes // 2  # between the half and the whole it depends on what was evicted
    copies = 1 if is_cold else max(1, min(4, clock.l2_bytes // 2 // max(1, size)))
    prepared = prepare(case, place, copies, compiles)
    moved = case.input_bytes + prepared.out_bytes
    seconds = interleaved(prepared.calls, copies, is_cold, clock, ROUNDS if place.is_gpu else 1)
    row = {"seconds": seconds, "errors": prepared.errors, "bytes": moved, "cold": is_cold, "copies": copies}
    is_read = prepared.out_bytes * 10 < case.input_bytes
    return {**row, "family": case.family, "name": case.name, "reads": is_read, "no_compile": prepared.failures}


_clocks: dict[str, Any] = {}


def _clock(place: Any) -> Any:
    from rounds import GpuClock, HostClock

    if place.device not in _clocks:
        _clocks[place.device] = GpuClock() if place.is_gpu else HostClock()
    return _clocks[place.device]


def _ceilings(place: Any) -> Row:
    """What torch's own copy and reductions reach on a gigabyte."""
    import torch
    from rounds import interleaved

    x = torch.randn(1 << 28 if place.is_gpu else 1 << 16, device=place.device)
    y = torch.empty_like(x)
    calls = {
        "clone": lambda k: x.clone(),
        "copy_": lambda k: y.copy_(x),
        "sum": lambda k: x.sum(),
        "amax": lambda k: x.amax(),
    }
    seconds = interleaved(calls, 1, True, _clock(place), 7)
    device = torch.cuda.get_device_name(0) if place.is_gpu else "no GPU: the figures mean nothing"
    copy = 2 * x.nbytes / min(seconds["clone"], seconds["copy_"])
    read = x.nbytes / min(seconds["sum"], seconds["amax"])
    return {"copy": copy, "read": read, "seconds": seconds, "device": device, "torch": torch.__version__}


# --- under compute-sanitizer -------------------------------------------------------------------------------------


def _sanitize(only: str, is_trial: bool) -> int:
    """One call of every small case; torch stays on the CPU, so that all kernels are ours."""
    import torch
    from case import bound_of, error_of, make_inputs, truth_of
    from contenders import EMULATED, GPU, build

    import loopwright as lw

    place, failures = EMULATED if is_trial else GPU, 0
    device = lw.cpu() if is_trial else lw.cuda(0)
    for title, case in load_cases(is_small=True).items():
        if only not in title:
            continue
        try:
            inputs = make_inputs(case, "cpu")
            module = build(case, place)
            dtype = str(case.program()[-1].dtype)
            there = [lw.nd.array(one.numpy(), device) for one in inputs]
            out = lw.nd.empty(case.out, dtype, device)
            module(*there, out)
            error = error_of(torch.from_numpy(out.numpy()), truth_of(case, inputs))
            said, is_right = f"error {error:.1e}", error <= max(bound_of(dtype), 0)
        except Exception as caught:
            said, is_right = f"{type(caught).__name__}: {str(caught).strip().splitlines()[0]}", False
        failures += not is_right
        print(f"{'right' if is_right else 'WRONG'} {title}: {said}", flush=True)
    print(f"{failures} of the small cases are wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
