"""The schedules of the tutorial's page on GPUs, timed: `python benchmarks/gpu/first_kernel.py`.

Sums of nine neighbours of 2²⁶ floats: bound to blocks and threads, with the sum in a register, with shared memory, and
as the rules schedule it. `--trial` runs small ones emulated, on a machine without a GPU: the figures mean nothing then.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import numpy as np

import loopwright as lw
from loopwright import te

ROUNDS = 9


def sums(n: int) -> list[te.Tensor]:
    A = te.placeholder((n + 8,), name="A")
    k = te.reduce_axis((0, 9), name="k")
    return [A, te.compute((n,), lambda i: te.sum(A[i + k], axis=k), name="B")]


def build(n: int, target: str, has_register: bool, has_shared: bool) -> Any:
    A, B = sums(n)
    s = te.create_schedule(B.op)
    L = s.cache_write(B, "local") if has_register else B
    block, thread = s[B].split(B.op.axis[0], factor=256)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    if has_register:
        s[L].compute_at(s[B], thread)
    if has_shared:
        S = s.cache_read(A, "shared", [L])
        s[S].compute_at(s[B], block)
        _, lane = s[S].split(S.op.axis[0], factor=256)
        s[S].bind(lane, te.thread_axis("threadIdx.x"))
    return lw.build(s, [A, B], target=target)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trial", action="store_true", help="emulated, and small")
    options = parser.parse_args()
    device, target = (lw.cpu(), "cuda -model=emulated") if options.trial else (lw.cuda(0), "cuda")
    if not device.exist:
        print("no GPU: --trial runs emulated")
        return 0
    n = 1 << (12 if options.trial else 26)
    modules = {
        "blocks and threads": build(n, target, has_register=False, has_shared=False),
        "the sum in a register": build(n, target, has_register=True, has_shared=False),
        "shared memory": build(n, target, has_register=True, has_shared=True),
        "by rule": lw.build(sums(n), target=target, autosched=True),
    }
    values = np.random.default_rng(0).integers(0, 100, n + 8).astype("float32")
    wanted = np.lib.stride_tricks.sliding_window_view(values, 9).sum(axis=1)
    a, b = lw.nd.array(values, device), lw.nd.empty((n,), device=device)
    seconds: dict[str, list[float]] = {name: [] for name in modules}
    are_right = True
    for module in modules.values():
        module(a, b)
        are_right = are_right and np.array_equal(b.numpy(), wanted)
    for _ in range(ROUNDS):
        for name, module in modules.items():
            timer = module.time_evaluator(module.entry_name, device, number=1 if options.trial else 20)
            seconds[name].append(timer(a, b).mean)
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:24} {1e3 * median:8.3f} ms   {8e-9 * n / median:7.0f} GB/s")
    print("all right" if are_right else "WRONG")
    return int(not are_right)


if __name__ == "__main__":
    sys.exit(main())
