"""What a target shows of itself: what was said, and what it means for compiled code."""

from __future__ import annotations

from loopwright.display.sheet import Sheet, Table, heading
from loopwright.runtime.errors import LoopwrightError
from loopwright.target.availability import BUILDABLE
from loopwright.target.cpu import CpuDescription
from loopwright.target.gpu import GpuDescription, describe_gpu
from loopwright.target.target import Target, describe


def target_sheet(target: Target) -> Sheet:
    """The target at a glance."""
    built = "" if str(target.kind) in BUILDABLE else "cannot be built yet"
    rows = [("keys", ", ".join(target.keys))] if target.keys else []
    rows += [(name, _value(value)) for name, value in target.attrs.items()]
    if target.host is not None:
        rows.append(("host", str(target.host)))
    said = Table(("said", ""), tuple(rows))
    cpu = known_cpu(target)
    gpu = known_gpu(target)
    rows = _cpu_rows(cpu) if cpu is not None else _gpu_rows(gpu) if gpu is not None else []
    means = [Table(("means", ""), tuple(rows))] if rows else []
    return Sheet(heading(f"Target {target.tag or target.kind}", built), said, *means)


def known_cpu(target: Target) -> CpuDescription | None:
    """The processor that a target means; None for a device, or for a processor that is not known."""
    if "cpu" not in target.kind.default_keys:
        return None
    try:
        return describe(target)
    except LoopwrightError:  # building for it says what is wrong
        return None


def known_gpu(target: Target) -> GpuDescription | None:
    """The GPU that a target means; None for other kinds, or where the architecture is not known."""
    if str(target.kind) != "cuda":
        return None
    try:
        return describe_gpu(target)
    except LoopwrightError:  # building for it says what is wrong
        return None


def _gpu_rows(gpu: GpuDescription) -> list[tuple[str, str]]:
    most, usual = size_text(gpu.max_shared_memory_per_block), size_text(gpu.static_shared_memory_per_block)
    rows = [
        ("gpu", f"{gpu.name or 'any'} ({gpu.arch}{', this machine' * gpu.is_host})"),
        ("multiprocessors", f"{gpu.multiprocessors}{', assumed' * (not gpu.name)}"),
        ("threads", f"{gpu.max_threads_per_block} a block, {gpu.max_threads_per_multiprocessor} a multiprocessor"),
        ("shared memory", f"{most} a block at most, {usual} without asking"),
        ("registers", f"{gpu.registers_per_block:,} a block"),
    ]
    if gpu.l2_cache_bytes:
        rows.append(("L2", size_text(gpu.l2_cache_bytes)))
    if gpu.memory_bandwidth:
        rows.append(("memory", f"{size_text(gpu.memory_bytes)}, {gpu.memory_bandwidth / 1e9:,.0f} GB/s"))
    return rows


def _cpu_rows(cpu: CpuDescription) -> list[tuple[str, str]]:
    where = f"{cpu.name or 'generic'} ({cpu.triple}){', this machine' * cpu.is_host}"
    rows = [
        ("cpu", where),
        ("vectors", f"{cpu.vector_bits} bits, {cpu.registers} registers"),
        ("cores", str(cpu.num_cores)),
        ("caches", caches_text(cpu)),
    ]
    units = ", ".join(unit_words(cpu))
    return [*rows, ("units", units)] if units else rows


def unit_words(cpu: CpuDescription) -> list[str]:
    """The units of a CPU in words."""
    units = cpu.units
    words = {
        "FMA": units.has_fma,
        "float16 arithmetic": units.has_native_f16,
        "float16 conversion": units.has_f16_convert,
        "bfloat16 arithmetic": units.has_native_bf16,
        "bfloat16 conversion": units.has_bf16_convert,
        "bfloat16 dot product": units.has_bf16_dot,
        "int8 dot product": units.has_int8_dot,
        "matrix unit": units.has_matrix_unit,
        "scalable vectors": units.has_scalable_vectors,
    }
    return [word for word, has in words.items() if has]


def caches_text(cpu: CpuDescription) -> str:
    """The sizes of the caches."""
    caches = cpu.cache_sizes
    sizes = [f"{name} {size_text(size)}" for name, size in zip(("L1d", "L2", "L3"), caches[:3], strict=False) if size]
    return f"{', '.join(sizes)}, line {caches.line} B"


def size_text(size: int) -> str:
    """Bytes in the largest unit that fits."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def _value(value: object) -> str:
    return ", ".join([str(item) for item in value]) if isinstance(value, list) else str(value)
