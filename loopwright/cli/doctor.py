"""doctor: what this machine is, what was found on it, and what follows for compiled code.

Every probe answers for itself: one that cannot find something says so and what that means, and never stops the others.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Final, Literal, NamedTuple

from loopwright.display import progress
from loopwright.display.sheet import Sheet, Table, heading
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.link import NoLinker, find_compiler
from loopwright.target import Microarchitecture, detect_host, host_description
from loopwright.target.availability import look_for
from loopwright.target.host import cgroup_quota
from loopwright.target.microarchitecture import store
from loopwright.target.microarchitectures import MICROARCHITECTURES
from loopwright.target.target_sheet import caches_text, size_text, unit_words

State = Literal["fine", "missing", "broken"]  # missing: works without it, for the reason given


class Fact(NamedTuple):
    """One line of the report."""

    key: str
    name: str
    value: str
    state: State = "fine"
    note: str = ""


def examine(version: str) -> list[Fact]:
    """Everything there is to know, in reading order."""
    facts = [Fact("loopwright", "Loopwright", version)]
    for probe in _PROBES:
        try:
            facts += probe()
        except Exception as error:  # a report with a hole is worth more than a traceback
            name = probe.__name__.removeprefix("_")
            facts.append(Fact(name, name, "failed", "broken", f"{type(error).__name__}: {error}"))
    return facts


def measure() -> list[Fact]:
    """This machine's microarchitecture, measured now (in some ten seconds) and stored for compilations to come."""
    from loopwright.model.measure_machine import measure_machine

    with progress.task("measure this machine"):
        measured = measure_machine()
    file = store(measured)
    listed = MICROARCHITECTURES.get(measured.name)
    use = f"used from now on: {measured.name} is not listed" if listed is None else f"not used: {listed.name} is listed"
    if file is None:
        kept = Fact("measured", "Stored", "nowhere", "missing", "no cache folder can be written")
    else:
        kept = Fact("measured", "Stored", str(file), "fine", use)
    return [*_core_facts(measured, "measured"), kept]


def _core_facts(core: Microarchitecture, how: str) -> list[Fact]:
    bits = core.fma_bits
    arithmetic = f"{core.fma_per_cycle(bits)} FMA of {bits} bits a cycle, latency {core.fma_latency}"
    loads = f"{core.loads_per_cycle(core.load_bits)} loads of {core.load_bits} bits a cycle"
    rates = (core.l2_bytes_per_cycle, core.l3_bytes_per_cycle, core.memory_bytes_per_cycle)
    bandwidth = "L2 {:g}, L3 {:g}, memory {:g} B a cycle".format(*rates)
    return [
        Fact(f"core_{how}", f"Core, {how}", f"{arithmetic}; {loads}; {core.gather_cycles:g} cycles a gathered lane"),
        Fact(f"bandwidth_{how}", f"Bandwidth, {how}", f"{bandwidth}; memory is full with {core.memory_cores} cores"),
        Fact(f"fork_{how}", f"Parallel loop, {how}", f"{core.fork_cycles:,} cycles to start and end"),
    ]


def as_json(facts: Iterable[Fact]) -> str:
    """The facts as a JSON object, by key."""
    return json.dumps(
        {fact.key: {"value": fact.value, "state": fact.state, "note": fact.note} for fact in facts}, indent=2
    )


def as_sheet(facts: Iterable[Fact]) -> Sheet:
    """The facts as a table for people."""
    tones = {"fine": "", "missing": "warn", "broken": "bad"}
    marks = {"fine": "✓", "missing": "–", "broken": "✗"}
    listed = list(facts)
    rows = [(marks[fact.state], fact.name, ": ".join(filter(None, (fact.value, fact.note)))) for fact in listed]
    table = Table(("", "what", "found"), tuple(rows), tuple([tones[fact.state] for fact in listed]))
    return Sheet(heading("loopwright doctor"), table)


def _python() -> list[Fact]:
    return [
        Fact("python", "Python", f"{platform.python_version()} ({sys.implementation.name})"),
        Fact("platform", "Platform", platform.platform()),
    ]


def _cpu() -> list[Fact]:
    host, cpu = detect_host(), host_description()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cgroup_quota()
    cores = f"{cpu.num_cores} (affinity {affinity}, quota {'none' if quota is None else f'{quota:g}'})"
    by = "" if host.found_by == "llvm" else "llvmlite is missing: detected from the system, less exactly"
    return [
        Fact("cpu", "CPU", f"{host.cpu} ({host.triple})", "missing" if by else "fine", by),
        Fact("cpu_features", "Features that matter", ", ".join(unit_words(cpu)) or "none known"),
        Fact("vector_bits", "Vectors", f"{cpu.vector_bits} bits, {cpu.registers} registers"),
        Fact("cores", "Cores to use", cores),
        Fact("caches", "Caches", caches_text(cpu)),
        _microarchitecture(cpu.microarchitecture),
    ]


def _microarchitecture(core: Microarchitecture) -> Fact:
    if core.name:
        return Fact("microarchitecture", "Microarchitecture", core.name)
    note = "schedules are priced for a usual core; `loopwright doctor --measure` measures this one"
    return Fact("microarchitecture", "Microarchitecture", "not listed", "missing", note)


def _llvm() -> list[Fact]:
    if not _is_installed("llvmlite"):
        return [Fact("llvm", "LLVM", "not found", "broken", "nothing can be compiled; install llvmlite")]
    import llvmlite
    import llvmlite.binding as llvm

    return [Fact("llvm", "LLVM", f"{'.'.join(map(str, llvm.llvm_version_info))} (llvmlite {llvmlite.__version__})")]


def _needed_packages() -> list[Fact]:
    return [
        _package("tvm_ffi", "tvm-ffi", "apache-tvm-ffi", "broken", "compiled functions cannot be called"),
        _package("islpy", "islpy", "islpy", "broken", "nothing can be proved by integer sets"),
        _package("numpy", "numpy", "numpy", "broken", "arrays cannot be passed"),
    ]


def _c_compiler() -> list[Fact]:
    try:
        command = find_compiler()
    except NoLinker:
        note = "shared libraries cannot be exported; install gcc or clang, or pip install ziglang"
        return [Fact("c_compiler", "C compiler", "not found", "missing", note)]
    value = "ziglang (the Python package)" if "ziglang" in command else str(shutil.which(command[0]))
    return [Fact("c_compiler", "C compiler", value)]


def _thread_pool() -> list[Fact]:
    without = "parallel loops run serially"
    if importlib.util.find_spec("loopwright.runtime.thread_pool") is None:
        return [Fact("thread_pool", "Thread pool", "not part of this version", "missing", without)]
    from loopwright.runtime import thread_pool

    if thread_pool.library() is None:
        reason = thread_pool.why_serial()
        return [Fact("thread_pool", "Thread pool", "serial fallback", "missing", f"{reason}; {without}")]
    kind = "prebuilt" if thread_pool.is_prebuilt() else "built from source here"
    return [Fact("thread_pool", "Thread pool", f"{kind}, {thread_pool.num_threads()} threads")]


def _array_calls() -> list[Fact]:
    from loopwright.runtime import array_call

    reason = array_call.why_not()
    if reason is None:
        return [Fact("array_calls", "Calls with arrays", "straight from the interpreter")]
    note = f"{reason}; a call of a model takes some 2 µs longer"
    return [Fact("array_calls", "Calls with arrays", "through DLPack", "missing", note)]


def _optional_packages() -> list[Fact]:
    torch = "PyTorch models cannot be read; pip install torch"
    onnx = "ONNX models cannot be read; pip install onnx"
    return [_package("torch", "PyTorch", "torch", "missing", torch), _package("onnx", "ONNX", "onnx", "missing", onnx)]


def _cuda() -> list[Fact]:
    looked_for = look_for("cuda")
    is_usable = all("not " not in item for item in looked_for)
    note = "" if is_usable else "builds for CPUs only"
    built = Fact("cuda", "CUDA", "; ".join(looked_for), "fine" if is_usable else "missing", note)
    return [built, *_nvrtc(), *_gpus()]


def _nvrtc() -> list[Fact]:
    from loopwright.runtime.nvidia.nvrtc import NoNvrtc, load_nvrtc

    try:
        found = load_nvrtc()
    except NoNvrtc as error:
        note = f"CUDA kernels cannot be compiled ({error.why}); {error.hint}"
        return [Fact("nvrtc", "NVRTC", "not found", "missing", note)]
    major, minor = found.version
    known = found.architectures()
    return [Fact("nvrtc", "NVRTC", f"{major}.{minor} ({known[0]} to {known[-1]})")]


def _gpus() -> list[Fact]:
    from loopwright.runtime.nvidia.driver import Unusable, find_driver

    found = find_driver()
    if isinstance(found, Unusable):
        return [Fact("gpu", "GPU", "none", "missing", f"{found.why}; nothing runs on a GPU here")]
    version = f"CUDA {found.version // 1000}.{found.version % 1000 // 10}"
    facts = [Fact("cuda_driver", "CUDA driver", f"{version}, {found.device_count} device(s)")]
    for index in range(found.device_count):
        facts += _gpu(index)
    return facts


def _gpu(index: int) -> list[Fact]:
    from loopwright.runtime.devices import cuda

    dev = cuda(index)
    key = "gpu" if index == 0 else f"gpu_{index}"
    try:
        capability, total, free = dev.compute_version, dev.total_global_memory, dev.available_global_memory
        memory = f"{size_text((free or 0) >> 20 << 20)} of {size_text((total or 0) >> 20 << 20)} free"
        words = f"{dev.device_name}, sm_{str(capability).replace('.', '')}, {dev.multi_processor_count} multiprocessors"
        return [Fact(key, f"GPU {index}", f"{words}, {memory}")]
    except LoopwrightError as error:  # such as a device that another process has for itself
        return [Fact(key, f"GPU {index}", "cannot be used", "broken", error.problem)]


_PROBES: Final[tuple[Callable[[], list[Fact]], ...]] = (
    _python,
    _cpu,
    _llvm,
    _needed_packages,
    _c_compiler,
    _thread_pool,
    _array_calls,
    _optional_packages,
    _cuda,
)


def _package(module: str, name: str, distribution: str, without: State, note: str) -> Fact:
    if not _is_installed(module):
        return Fact(module, name, "not found", without, note)
    try:
        return Fact(module, name, metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return Fact(module, name, "version unknown")


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
