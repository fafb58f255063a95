"""Random programs for GPUs, scheduled at random or by rule: emulated in three orders of threads, evaluated, on a GPU.

    python benchmarks/fuzz_gpu.py --count 2000 --seed 0 --jobs 2           random schedules, without a GPU
    python benchmarks/fuzz_gpu.py --count 400 --seed 0 --rules             programs that the rules schedule
    python benchmarks/fuzz_gpu.py --count 300 --seed 0 --jobs 8 --device   on the GPU of this machine
    python benchmarks/fuzz_gpu.py --show 17                                the program of a seed, and what became of it
    python benchmarks/fuzz_gpu.py --count 2000 --record folder --seconds 240     goes on where it stopped

Exit status 1 when a program gives another result, or an error that is no refusal. Refusals are counted by reason.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("LOOPWRIGHT_FREEZE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.campaign_record import Record
from benchmarks.gpu.children import Job, Row, serve, side_by_side
from tests import check_kernels, check_rules
from tests.check_kernels import Verdict

PART = 20  # programs a job takes at a time
PATIENCE = 60  # seconds that a program may take
EVALUATED = 2  # every so many-th program also runs in the evaluator


class _TooSlow(Exception):
    pass


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="how many programs (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--rules", action="store_true", help="unscheduled programs, for autosched")
    parser.add_argument("--device", action="store_true", help="on the GPU instead of emulated")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--record", type=Path, help="a folder for the parts that are done, to go on with later")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="with --record or --device: start nothing after these"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--show", type=int, metavar="SEED", help="show one program instead")
    options = parser.parse_args()
    checks = check_rules if options.rules else check_kernels
    if options.show is not None:
        print(checks.describe(options.show))
        print(checks.check(options.show, device=options.device))
        return 0
    if options.child:
        warnings.simplefilter("ignore")
        return serve(_on_gpu, _gpu_is_usable)
    start = time.perf_counter()
    if options.device:
        return _show(_device_campaign(options), time.perf_counter() - start)
    stop = options.seed + options.count
    parts = [(first, min(first + PART, stop)) for first in range(options.seed, stop, PART)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOOPWRIGHT_CACHE_DIR"] = folder  # thousands of small libraries that nobody asks for again
        if options.record:
            settings = {"count": options.count, "seed": options.seed, "device": False}
            record = Record(options.record, settings | ({"rules": True} if options.rules else {}))
            work = _rules_part if options.rules else _part
            record.run(work, {str(part[0]): part for part in parts}, options.jobs, options.seconds)
            done: Iterable[dict[str, Any]] = record.parts()
        elif options.jobs == 1:
            done = [_part(part, options.rules) for part in parts]
        else:
            with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
                done = list(pool.map(_rules_part if options.rules else _part, parts))
    return _show([Verdict(*one) for part in done for one in part["verdicts"]], time.perf_counter() - start)


def _device_campaign(options: argparse.Namespace) -> list[Verdict]:
    """On the GPU, in processes that are followed by others when a kernel has taken their GPU, or hangs."""
    seeds = range(options.seed, options.seed + options.count)
    jobs: list[Job] = [{"seed": seed, "rules": options.rules} for seed in seeds]
    deadline = time.monotonic() + min(options.seconds, 3600)
    command = [sys.executable, str(Path(__file__).resolve()), "--child"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOOPWRIGHT_CACHE_DIR"] = folder
        rows = side_by_side(command, jobs, options.jobs, PATIENCE + 5, deadline)
    return [_verdict(row) for row in rows]


def _verdict(row: Row) -> Verdict:
    why = str(row.get("failed", row.get("why", "")))
    is_late = why.startswith("left out")
    return Verdict(row["seed"], "refused" if is_late else row.get("kind", "broken"), why)


def _on_gpu(job: Job) -> Row:
    result = _checked(job["seed"], device=True, rules=job["rules"])
    if result.kind == "broken":
        return {"failed": result.why}
    return {"kind": result.kind, "why": result.why}


def _gpu_is_usable() -> bool:
    import loopwright as lw

    try:
        lw.cuda(0).sync()
    except Exception:
        return False
    return True


def _part(part: tuple[int, int], rules: bool = False) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    verdicts = [_checked(seed, device=False, rules=rules) for seed in range(*part)]
    return {"verdicts": [[one.seed, one.kind, one.why] for one in verdicts]}


def _rules_part(part: tuple[int, int]) -> dict[str, Any]:
    return _part(part, rules=True)


def _checked(seed: int, device: bool, rules: bool) -> Verdict:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow(f"not done after {PATIENCE} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        if rules:
            return check_rules.check(seed, device=device, evaluates=not device)
        return check_kernels.check(seed, device=device, evaluates=not device and seed % EVALUATED == 0)
    except _TooSlow as error:
        return Verdict(seed, "refused", str(error))
    except Exception:  # an error that is none of ours is what a campaign looks for
        return Verdict(seed, "broken", traceback.format_exc(limit=-4))
    finally:
        signal.alarm(0)


def _show(verdicts: list[Verdict], seconds: float) -> int:
    kinds = Counter([verdict.kind for verdict in verdicts])
    reasons = Counter([verdict.why for verdict in verdicts if verdict.kind == "refused"])
    faults = [verdict for verdict in verdicts if verdict.kind in ("wrong", "broken")]
    for verdict in faults:
        print(f"--- seed {verdict.seed} is {verdict.kind}\n{verdict.why}")
    print(f"{len(verdicts)} programs in {seconds:.0f} s: " + ", ".join([f"{n} {kind}" for kind, n in kinds.items()]))
    for text, count in reasons.most_common():
        print(f"  {count:5d} refused  {text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
