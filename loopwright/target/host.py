"""This machine: its triple, CPU name, features, caches and the cores we may use. Detected once, then remembered."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from loopwright.runtime.host_features import kernel_features, known_features
from loopwright.target.architectures import architecture_of
from loopwright.target.microarchitecture import Caches


@dataclass(frozen=True)
class Host:
    """What was found out about this machine."""

    triple: str
    cpu: str  # LLVM's name
    features: Mapping[str, bool]  # LLVM's names; False where LLVM knows the feature and the machine lacks it
    caches: Caches
    num_cores: int
    found_by: str  # "llvm", or "system" when llvmlite cannot be loaded


@functools.cache
def detect_host() -> Host:
    """This machine; the first call costs loading llvmlite."""
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError):
        triple, cpu, features, found_by = _system_triple(), "generic", _system_features(), "system"
    else:
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        # On AArch64 LLVM names next to none of them: the rest it takes from the CPU's name, which may be "generic".
        features, found_by = {**known_features(), **llvm.get_host_cpu_features()}, "llvm"
    caches = _sys_caches() or _sysconf_caches() or Caches(*architecture_of(triple).default_caches)
    return Host(triple, cpu, MappingProxyType(features), caches, available_cores(), found_by)


def available_cores() -> int:
    """How many cores this process may keep busy: those of its affinity mask, within its cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))  # rounded up, as the thread pool does


def cgroup_quota(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float | None:
    """The CPU quota of this process in cores, the tightest of its cgroup and the groups around it; None without one."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            quotas += _quotas(root, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            quotas += _quotas(root / controllers, path, _quota_v1) + _quotas(root / "cpu", path, _quota_v1)
    return min(quotas, default=None)


def _quotas(root: Path, path: str, read: Callable[[Path], float | None]) -> list[float]:
    # In a container the path may name groups outside what is mounted here, so each level that is missing is skipped.
    group = Path(path.lstrip("/"))
    result = (read(root / level) for level in (group, *group.parents))
    return [quota for quota in result if quota is not None]


def _quota_v2(group: Path) -> float | None:
    fields = _read(group / "cpu.max").split()
    return int(fields[0]) / int(fields[1]) if len(fields) == 2 and fields[0] != "max" else None


def _quota_v1(group: Path) -> float | None:
    quota, period = _read(group / "cpu.cfs_quota_us").strip(), _read(group / "cpu.cfs_period_us").strip()
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _sys_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches | None:
    """The caches the kernel describes; None when it describes none."""
    sizes = {1: 0, 2: 0, 3: 0}
    line = 0
    for index in sorted(folder.glob("index*")):
        level, kind, size = (_read(index / name).strip() for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind == "Instruction" or match is None or not level.isdecimal():
            continue
        sizes[int(level)] = int(match[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]]
        line = line or int(_read(index / "coherency_line_size").strip() or 0)
    return Caches(sizes[1], sizes[2], sizes[3], line or 64) if sizes[1] else None


def _sysconf_caches() -> Caches | None:
    """What the C library knows; Python does not name these settings, so they go by glibc's numbers."""
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return None
    l1d, line, l2, l3 = (max(0, os.sysconf(number)) for number in (188, 190, 191, 194))
    return Caches(l1d, l2, l3, line or 64) if l1d else None


def _system_triple() -> str:
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    if ctypes.sizeof(ctypes.c_void_p) == 4 and machine == "x86_64":
        machine = "i386"
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin", "Windows": "pc-windows-msvc"}
    return f"{machine or 'unknown'}-{system.get(platform.system(), 'unknown')}"


def _system_features() -> dict[str, bool]:
    """Features by the kernel's flags, in LLVM's spelling; used only where LLVM cannot be asked."""
    return dict.fromkeys(kernel_features(), True)


def _read(path: Path) -> str:
    """The file's text, empty when it is not there or may not be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
