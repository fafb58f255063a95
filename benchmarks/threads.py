"""What threads cost and what they bring, here:  python benchmarks/threads.py [--threads N] [--quick] [--json FILE]

    start and join   what a parallel loop costs beyond its work: empty loops, and loops of a few µs a thread, back to
                     back (workers spin) and after a pause (workers sleep)
    compute          a loop of multiply-adds in registers, at 1 to N threads: should scale with the threads
    bandwidth        a[i] = b[i] * x + c[i] on arrays far larger than the caches: scales until the memory is busy
    workspace        a call with a large temporary buffer, against memory fresh from the system each time
    idle             processor time of a process that runs a tiny loop every millisecond

Times are the least and the median of many; the least is what the machine can do, the median what it did today.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import loopwright as lw
from loopwright import runtime
from loopwright.script import tir as T


def spinning_rows(rows: int, steps: int) -> Any:
    """`rows` iterations, each a chain of `steps` dependent vector multiply-adds."""

    @T.prim_func
    def func(B: T.Buffer((rows, 16), "float32")):
        for i in T.parallel(rows):
            with T.block("row"):
                vi = T.axis.spatial(rows, i)
                x = T.alloc_buffer((16,), "float32", scope="local")
                for j in T.vectorized(16):
                    x[j] = B[vi, j]
                for _ in range(steps):
                    for j in T.vectorized(16):
                        x[j] = x[j] * T.float32(0.999) + T.float32(0.001)
                for j in T.vectorized(16):
                    B[vi, j] = x[j]

    return lw.build(func)


def triad(length: int, block: int) -> Any:
    @T.prim_func
    def func(A: T.Buffer((length,), "float32"), B: T.Buffer((length,), "float32"), C: T.Buffer((length,), "float32")):
        for i in T.parallel(length // block):
            for j in range(block // 16):
                for k in T.vectorized(16):
                    A[i * block + j * 16 + k] = B[i * block + j * 16 + k] * T.float32(3) + C[i * block + j * 16 + k]

    return lw.build(func)


def with_temporary(length: int) -> Any:
    @T.prim_func
    def func(A: T.Buffer((16,), "float32")):
        temporary = T.alloc_buffer((length,), "float32")
        for i in range(length // 1024):  # one write a page
            temporary[i * 1024] = A[0]
        for i in range(16):
            A[i] = temporary[i * 1024]

    return lw.build(func)


def timed(module: Any, *args: Any, repeat: int, number: int = 1) -> tuple[float, float]:
    """Least and median time of a call in µs, calls following each other without Python in between."""
    results = module.time_evaluator(module.entry_name, lw.cpu(), number=number, repeat=repeat)(*args).results
    return min(results) * 1e6, statistics.median(results) * 1e6


def timed_after_pause(call: Callable[[], Any], pause: float, repeat: int) -> tuple[float, float]:
    """Least and median time of a call in µs, each after a pause in which workers fall asleep."""
    taken = []
    for _ in range(repeat):
        time.sleep(pause)
        start = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - start) / 1e3)
    return min(taken), statistics.median(taken)


def steps_per_us() -> float:
    """How many dependent multiply-adds a thread does in a microsecond."""
    return 20_000 / timed(spinning_rows(1, 20_000), np.zeros((1, 16), "float32"), repeat=50)[0]


def start_and_join(counts: list[int], steps: int, repeat: int) -> list[dict[str, Any]]:
    print("\nstart and join: µs beyond the work itself, least / median")
    print(f"{'threads':>8}  {'empty':>15}  {'20 µs a thread':>15}  {'empty, asleep':>15}  {'20 µs, asleep':>15}")
    rows = []
    for count in counts:
        row: dict[str, Any] = {"threads": count}
        for name, module in (("empty", spinning_rows(count, 0)), ("work", spinning_rows(count, steps))):
            out = np.zeros((count, 16), "float32")
            one, single = np.zeros((1, 16), "float32"), spinning_rows(1, 0 if name == "empty" else steps)
            alone = timed(single, one, repeat=repeat, number=10)[0]
            alone_paused = timed_after_pause(partial(single, one), 0.001, repeat // 2)
            with runtime.threads(count):
                least, median = timed(module, out, repeat=repeat, number=10)
                paused = timed_after_pause(partial(module, out), 0.001, repeat // 2)
            row[name] = least - alone, median - alone
            row[f"{name}_asleep"] = paused[0] - alone_paused[0], paused[1] - alone_paused[1]
        rows.append(row)
        cells = (row["empty"], row["work"], row["empty_asleep"], row["work_asleep"])
        print(f"{count:>8}  " + "  ".join(f"{least:7.2f}{median:8.2f}" for least, median in cells))
    return rows


def scaling(
    title: str, module: Any, args: list[Any], counts: list[int], repeat: int, unit: str, amount: float
) -> list[dict[str, Any]]:
    print(f"\n{title}")
    print(f"{'threads':>8}  {'least µs':>10}  {'median µs':>10}  {'speed-up':>9}  {'of ideal':>9}  {unit:>9}")
    rows: list[dict[str, Any]] = []
    for count in counts:
        with runtime.threads(count):
            timed(module, *args, repeat=2)
            least, median = timed(module, *args, repeat=repeat)
        rows.append({"threads": count, "least": least, "median": median, "rate": amount / least})
        speedup = rows[0]["least"] / least
        print(
            f"{count:>8}  {least:10.1f}  {median:10.1f}  {speedup:9.2f}  {speedup / count:9.0%}  {amount / least:9.2f}"
        )
    return rows


def workspace(repeat: int) -> dict[str, float]:
    size = 4 << 20
    kept = timed(with_temporary(size // 4), np.zeros(16, "float32"), repeat=repeat, number=5)

    def fresh() -> None:
        with mmap.mmap(-1, size) as memory:
            view = np.frombuffer(memory, "float32")
            view[::1024] = 1
            del view

    again = timed_after_pause(fresh, 0, repeat)
    print(f"\nworkspace: a call with a 4 MiB temporary {kept[0]:.1f} µs; writing to fresh memory {again[0]:.1f} µs")
    return {"kept": kept[0], "fresh": again[0]}


def idle(count: int, calls: int) -> float:
    module, out = spinning_rows(count, 0), np.zeros((count, 16), "float32")
    with runtime.threads(count):
        before = time.process_time()
        for _ in range(calls):
            time.sleep(0.001)
            module(out)
        spent = (time.process_time() - before) / calls * 1e6
    print(f"\nidle: a tiny loop on {count} threads every millisecond costs {spent:.1f} µs of processor time each")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description="What threads cost and what they bring.")
    parser.add_argument("--threads", type=int, default=runtime.num_threads(), help="the most threads to try")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller arrays")
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    counts = sorted({1, *(2**k for k in range(1, 11) if 2**k < options.threads), options.threads})
    repeat, length = (60, 1 << 22) if options.quick else (300, 1 << 25)
    print(f"{os.cpu_count()} processors, {runtime.num_threads()} for this process; up to {options.threads} threads")

    rate = steps_per_us()
    several = [count for count in counts if count > 1] or [1]
    figures: dict[str, Any] = {"start_and_join": start_and_join(several, int(20 * rate), repeat)}
    rows, steps = 16 * options.threads, int(40 * rate)
    figures["compute"] = scaling(
        f"compute: {rows} rows of {steps} vector multiply-adds",
        spinning_rows(rows, steps), [np.zeros((rows, 16), "float32")], counts, repeat // 10, "Gflop/s",
        rows * steps * 32 / 1e3,
    )  # fmt: skip
    arrays = [np.ones(length, "float32") for _ in range(3)]
    figures["bandwidth"] = scaling(
        f"bandwidth: three arrays of {length * 4 >> 20} MiB",
        triad(length, 1 << 14), arrays, counts, repeat // 10, "GB/s", 12 * length / 1e3,
    )  # fmt: skip
    figures["workspace"] = workspace(repeat)
    figures["idle"] = idle(options.threads, repeat)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
