"""The machine: what it is, which versions run on it, and what it can do at most: the roofline, measured in the run."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench.case import Array, aligned

STREAMS = {"read": 1, "copy": 2, "add": 3}  # arrays that pass through the core
FOOTPRINTS = [1 << power for power in (17, 19, 21, 23, 25, 27, 28)]
QUICK_FOOTPRINTS = [1 << power for power in (18, 22, 27)]


def describe() -> dict[str, Any]:
    """The machine, without anything that names its owner."""
    from loopwright.target.host import detect_host

    host = detect_host()
    model = _model_name() or host.cpu
    return {
        "cpu": model,
        "llvm_cpu": host.cpu,
        "arch": platform.machine(),
        "cores": host.num_cores,
        "caches": host.caches._asdict(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def short_name(machine: Mapping[str, Any]) -> str:
    """A name for files, such as `aarch64-neoverse-n1-2`."""
    return re.sub(r"[^a-z0-9]+", "-", f"{machine['arch']}-{machine['llvm_cpu']}-{machine['cores']}".lower()).strip("-")


def versions(compiler: str) -> dict[str, str]:
    """What takes part; a peer that is not installed is not listed."""
    import numpy as np

    import loopwright

    found = {"python": platform.python_version(), "loopwright": loopwright.__version__, "C compiler": compiler}
    for name in ("numpy", "scipy", "torch", "onnxruntime", "openvino", "llvmlite"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    found["numpy's BLAS"] = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    return {name: version for name, version in found.items() if version}


def _model_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def measure_roofline(library: str, threads: int, quick: bool = False) -> dict[str, Any]:
    """Operations a second in registers, and bytes a second of streams by the size of all their data."""
    loops = ctypes.CDLL(library)
    with ThreadPoolExecutor(threads) as pool:
        flops = {
            dtype: _peak(loops, function, threads, pool, 9 if quick else 25)
            for dtype, function in (("float32", "peak_float"), ("float64", "peak_double"))
        }
        bandwidth: dict[str, list[list[float]]] = {name: [] for name in STREAMS}
        for footprint in QUICK_FOOTPRINTS if quick else FOOTPRINTS:
            for name, arrays in STREAMS.items():
                rate = _stream(loops, name, arrays, footprint, threads, pool, 3 if quick else 9)
                bandwidth[name].append([footprint, rate])
    return {"flops": flops, "bandwidth": bandwidth}


def _peak(loops: Any, function: str, threads: int, pool: ThreadPoolExecutor, repeats: int) -> float:
    run, operations = getattr(loops, function), getattr(loops, f"{function}_flops")
    run.restype, run.argtypes, operations.restype = ctypes.c_double, [ctypes.c_long], ctypes.c_long
    steps = 2_000_000
    best = min(_together(pool, [lambda: run(steps)] * threads) for _ in range(repeats))
    return float(operations() * steps * threads / best)


def _stream(
    loops: Any, name: str, arrays: int, footprint: int, threads: int, pool: ThreadPoolExecutor, repeats: int
) -> float:
    count = max(footprint // (4 * arrays * threads), 64)
    times = max(1, (1 << 26) // footprint)
    data = [[aligned(count) for _ in range(arrays)] for _ in range(threads)]
    calls = [_stream_call(loops, name, own, count, times) for own in data]
    for own in data:
        for x in own:
            x.fill(1)
    _together(pool, calls)
    best = min(_together(pool, calls) for _ in range(repeats))
    return 4.0 * count * arrays * threads * times / best


def _stream_call(loops: Any, name: str, arrays: Sequence[Array], count: int, times: int) -> Callable[[], Any]:
    function = getattr(loops, f"stream_{name}")
    function.restype = ctypes.c_double if name == "read" else None
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    return lambda: function(*pointers, ctypes.c_long(count), ctypes.c_long(times))


def _together(pool: ThreadPoolExecutor, calls: Sequence[Callable[[], Any]]) -> float:
    """Seconds until all of them are done; ctypes lets other threads run meanwhile."""
    start = perf_counter()
    for future in [pool.submit(call) for call in calls]:
        future.result()
    return perf_counter() - start


def attainable(
    roofline: Mapping[str, Any], flops: int, read: int, written: int, dtype: str = "float32"
) -> tuple[float, str]:
    """The least seconds this work can take, and what limits it: "compute" or "memory"."""
    from loopwright.model.machine_limits import bandwidth_at

    stream = "read" if written * 8 < read else "add" if read > 1.5 * written else "copy"
    computing = flops / roofline["flops"].get(dtype, roofline["flops"]["float32"])
    moving = (read + written) / bandwidth_at(roofline["bandwidth"][stream], read + written)
    return (computing, "compute") if computing > moving else (moving, "memory")
