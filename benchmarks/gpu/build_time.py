"""From te to a result on a GPU, and what a call costs the host: `python benchmarks/gpu/build_time.py`.

    process    a new process: import, then the first program until its result is back
    cold       this process, nothing kept: te, schedule, proof, lowering, NVRTC, LLVM, loading, one launch, waiting
    disk       nothing in memory, all on disk; memory: built before by this process
    export     a library for two architectures; loaded by a process without NVRTC and LLVM until its first result
    calls      microseconds of the host a call, in bursts that the GPU keeps up with: from Python, and from C

Every result is compared with numpy. Bars: cold 500 ms, disk 20 ms, a call 5 µs. Takes half a minute; needs no torch.
`--no-check` is for drivers that only pretend. The exit status is 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
BURST, BURSTS = 200, 30  # launches are queued: more of them would wait for the GPU

FIRST_RESULT = """
import sys, time
begin = time.perf_counter()
import numpy as np
import loopwright as lw
from loopwright import te
imported = time.perf_counter()
A, B = te.placeholder((4096,), name="A"), te.placeholder((4096,), name="B")
C = te.compute((4096,), lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
block, thread = s[C].split(C.op.axis[0], factor=256)
s[C].bind(block, te.thread_axis("blockIdx.x"))
s[C].bind(thread, te.thread_axis("threadIdx.x"))
dev = lw.cuda(0)
a, c = lw.nd.array(np.ones(4096, "float32"), dev), lw.nd.empty((4096,), device=dev)
device = time.perf_counter()
lw.build(s, [A, B, C], target="cuda")(a, a, c)
dev.sync()
print(imported - begin, device - imported, time.perf_counter() - device, c.numpy().sum())
"""
LOAD = """
import sys, time
begin = time.perf_counter()
import numpy as np
import loopwright as lw
from loopwright.runtime import load_module
add = load_module(sys.argv[1])
loaded = time.perf_counter()
dev = lw.cuda(0)
a, c = lw.nd.array(np.ones(4096, "float32"), dev), lw.nd.empty((4096,), device=dev)
ready = time.perf_counter()
add(a, a, c)
dev.sync()
print(loaded - begin, time.perf_counter() - ready, c.numpy().sum(), "llvmlite" in sys.modules)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-check", action="store_true")
    checks = not parser.parse_args().no_check
    os.environ.pop("LOOPWRIGHT_CACHE", None)
    home = Path(tempfile.mkdtemp(prefix="loopwright-build-time-"))
    os.environ["LOOPWRIGHT_CACHE_DIR"] = str(home / "warm-up")
    import loopwright as lw

    if not lw.cuda(0).exist:
        print("there is no GPU here")
        return 0
    print(f"{lw.cuda(0).device_name}, {os.cpu_count()} processors; milliseconds, medians")
    failures: list[str] = []
    try:
        build_times(home, failures, checks)
        processes(home, failures, checks)
        exported(home, failures, checks)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    call_times()
    for failure in failures:
        print("WRONG:", failure)
    return bool(failures)


# --- programs -----------------------------------------------------------------------------------------------------


def vector_add(n: int = 1 << 20) -> tuple[object, list[object], list[tuple[int, ...]]]:
    from loopwright import te

    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=256)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B, C], [(n,)] * 3


def softmax(rows: int = 128, columns: int = 1000) -> tuple[object, list[object], list[tuple[int, ...]]]:
    from loopwright import te, tir

    A = te.placeholder((rows, columns), name="A")
    k, j = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "j")
    top = te.compute((rows,), lambda i: te.max(A[i, k], axis=k), name="top")
    powers = te.compute((rows, columns), lambda i, c: tir.exp(A[i, c] - top[i]), name="powers")
    total = te.compute((rows,), lambda i: te.sum(powers[i, j], axis=j), name="total")
    B = te.compute((rows, columns), lambda i, c: powers[i, c] / total[i], name="B")
    return None, [A, B], [(rows, columns)] * 2


def gemm(size: int = 512) -> tuple[object, list[object], list[tuple[int, ...]]]:
    from loopwright import te

    A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), "k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return None, [A, B, C], [(size, size)] * 3


PROGRAMS = {"vector add": vector_add, "softmax": softmax, "GEMM": gemm}


def wanted(name: str, given: list) -> object:
    """What numpy says in float64, and how far the result may be away."""
    import numpy as np

    a, *more = [array.astype("float64") for array in given]
    if name == "vector add":
        return a + more[0], 1e-6
    if name == "GEMM":
        return a @ more[0], a.shape[1] * 2.0**-23 * (np.abs(a) @ np.abs(more[0])).max()
    powers = np.exp(a - a.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True), a.shape[1] * 2.0**-23


def run_once(name: str, arrays: list) -> tuple[float, object, object]:
    """Milliseconds from te to the result, the module, and the result."""
    import loopwright as lw

    dev = lw.cuda(0)
    given = [lw.nd.array(array, dev) for array in arrays]
    dev.sync()
    start = perf_counter()
    schedule, args, shapes = PROGRAMS[name]()
    if schedule is None:
        module = lw.build(args, target="cuda", autosched=True)
    else:
        module = lw.build(schedule, args, target="cuda")
    result = lw.nd.empty(shapes[-1], device=dev)
    module(*given, result)
    dev.sync()
    return (perf_counter() - start) * 1e3, module, result


# --- tables -------------------------------------------------------------------------------------------------------


def build_times(home: Path, failures: list[str], checks: bool) -> None:
    import numpy as np

    from loopwright.codegen import compile_cache

    stages = ("key", "schedule", "check", "lower", "emit CUDA", "compile host", "compile kernels", "link")
    print(f"\n{'':12}{'cold':>9}{'disk':>9}{'memory':>9}   of the cold one: {', '.join(stages)}")
    for number, name in enumerate(PROGRAMS):
        random = np.random.default_rng(number)
        shapes = PROGRAMS[name]()[2]
        arrays = [random.standard_normal(shape, dtype="float32") for shape in shapes[:-1]]
        run_once(name, arrays)  # imports, NVRTC's own start, the device's
        times: dict[str, list[float]] = {"cold": [], "disk": [], "memory": []}
        for repeat in range(5):
            os.environ["LOOPWRIGHT_CACHE_DIR"] = str(home / f"{number}-{repeat}")
            for kind in times:
                if kind != "memory":
                    compile_cache.forget()
                took, module, result = run_once(name, arrays)
                times[kind].append(took)
                if kind == "cold":
                    parts = module.timings
                exact, room = wanted(name, arrays)
                if checks and not np.abs(result.numpy() - exact).max() <= room:
                    failures.append(f"{name}, {kind}: {np.abs(result.numpy() - exact).max()} away, {room} allowed")
        medians = "".join(f"{statistics.median(one):9.1f}" for one in times.values())
        print(f"{name:12}{medians}   {', '.join(f'{parts.get(stage, 0) * 1e3:.1f}' for stage in stages)}")


def run_python(program: str, *args: str, **settings: str) -> list[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, **settings}
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout.split()


def processes(home: Path, failures: list[str], checks: bool) -> None:
    print(f"\n{'process':28}{'import':>9}{'device':>9}{'te → result':>13}")
    for kind in ("nothing kept", "all kept"):
        folder = home / "processes"
        if kind == "nothing kept":  # but our part in C, which a wheel brings along
            folder.mkdir()
            for library in (home / "warm-up").glob("*.so"):
                shutil.copy(library, folder)
        imported, device, took, total = map(float, run_python(FIRST_RESULT, LOOPWRIGHT_CACHE_DIR=str(folder)))
        print(f"{kind:28}{imported * 1e3:9.0f}{device * 1e3:9.0f}{took * 1e3:13.0f}")
        if checks and total != 8192:
            failures.append(f"process, {kind}: {total}")


def exported(home: Path, failures: list[str], checks: bool) -> None:
    import loopwright as lw

    schedule, args, _ = vector_add(4096)
    os.environ["LOOPWRIGHT_CACHE_DIR"] = str(home / "warm-up")
    start = perf_counter()
    module = lw.build(schedule, args, target="cuda -arch=sm_80,sm_90a")
    path = module.export_library(home / "add.so")
    took = perf_counter() - start
    none = {"LOOPWRIGHT_NVRTC": "none.so", "LOOPWRIGHT_CACHE_DIR": str(home / "warm-up")}
    loaded, first, total, with_llvm = run_python(LOAD, str(path), **none)
    print(f"\nexport for two architectures {took * 1e3:.0f} ms, {os.path.getsize(path) >> 10} KiB")
    print(f"load in a new process {float(loaded) * 1e3:.0f} ms (with imports), first call {float(first) * 1e3:.1f} ms")
    if (checks and float(total) != 8192) or with_llvm != "False":
        failures.append(f"exported: {total}, LLVM loaded: {with_llvm}")


def summed(count: int) -> tuple[object, list]:
    """A kernel of `count` tensors, the smallest there is to launch."""
    from loopwright import te

    tensors = [te.placeholder((32,), name=f"A{k}") for k in range(max(count - 1, 1))]
    C = te.compute((32,), lambda i: sum([one[i] for one in tensors[1:]], tensors[0][i]), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [*tensors, C] if count > 1 else [C]


def filled() -> tuple[object, list]:
    """A kernel of one tensor."""
    from loopwright import te

    C = te.compute((32,), lambda i: i.astype("float32"), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [C]


def call_times() -> None:
    import loopwright as lw
    from loopwright.runtime.timing import timed_loop

    print(f"\n{'µs of the host a call':28}{'module(…)':>12}{'function':>12}{'from C':>12}{'(quickest)':>12}")
    dev = lw.cuda(0)
    for count in (1, 3, 6):
        schedule, args = filled() if count == 1 else summed(count)
        module = lw.build(schedule, args, target="cuda")
        tensors = [lw.nd.empty((32,), device=dev) for _ in args]
        module(*tensors)
        function = module["main"]
        bursts = {
            "module": burst(calls(module, tensors), dev),
            "function": burst(calls(function, tensors), dev),
            "C": burst(functools.partial(timed_loop(function, tensors), BURST), dev),
        }
        row = "".join(f"{statistics.median(one):12.2f}" for one in bursts.values())
        print(f"{f'{count} tensors':28}{row}{min(bursts['module']):12.2f}")
    torch_calls()


def calls(function: Callable[..., object], args: list) -> Callable[[], object]:
    """Calls from Python, with the arguments there."""

    def body() -> None:
        for _ in range(BURST):
            function(*args)

    return body


def burst(body: Callable[[], object], dev: object) -> list[float]:
    """Microseconds a call, of each burst."""
    result = []
    for _ in range(BURSTS):
        dev.sync()
        start = perf_counter()
        body()
        result.append((perf_counter() - start) / BURST * 1e6)
    dev.sync()
    return result


def torch_calls() -> None:
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    import loopwright as lw

    a, b, c = [torch.ones(32, device="cuda") for _ in range(3)]
    eager = burst(calls(lambda: torch.add(a, b, out=c), []), lw.cuda(0))
    print(f"{'torch.add(a, b, out=c)':28}{statistics.median(eager):12.2f}{'':36}{min(eager):12.2f}")
    schedule, args = summed(3)
    module = lw.build(schedule, args, target="cuda")
    module(a, b, c)
    ours = burst(calls(module, [a, b, c]), lw.cuda(0))
    print(f"{'3 tensors of torch':28}{statistics.median(ours):12.2f}{'':36}{min(ours):12.2f}")


if __name__ == "__main__":
    sys.exit(main())
