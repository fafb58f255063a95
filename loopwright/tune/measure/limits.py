"""limits: what one process of the search may use, and how it is made to keep to it.

Memory is limited as data (RLIMIT_DATA: writable private memory), over what the parent has already: a limit of address
space would count what allocators and threads only reserve. The process dies with its parent, writes no core file, and
may be pinned to some CPUs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Limits:
    """Seconds of the first stage, bytes of memory beyond what the parent has, and the CPUs to run on (None: any).

    Who is `nice` gives way to others, the more the larger it is (to 19).
    """

    seconds: float
    memory: int = 2 << 30
    cpus: tuple[int, ...] | None = None
    nice: int = 0


def can_fork() -> bool:
    """Whether candidates are built and run in processes of their own here; elsewhere it is done in this one."""
    return sys.platform.startswith("linux")


class ParentTies:
    """What a forked child needs for its limits, looked up before the fork: a child should not have to load anything."""

    def __init__(self) -> None:
        self.parent = os.getpid()
        self._libc = ctypes.CDLL(None)

    def apply(self, limits: Limits) -> None:
        """In the child: keep to the limits from now on."""
        import resource

        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self.parent:  # it died before the call above
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = data_bytes() + limits.memory
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
        if limits.nice:
            os.nice(limits.nice)
        if limits.cpus:
            os.sched_setaffinity(0, limits.cpus)


def data_bytes() -> int:
    """Writable private memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0


def choose_cpus(count: int, turn: int = 0) -> tuple[int, ...]:
    """As many of the CPUs this process may use, on cores of their own first; another `turn` begins elsewhere.

    The last ones come first: interrupts are usually served by the first.
    """
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    cores: dict[str, list[int]] = {}
    for cpu in allowed:
        cores.setdefault(_siblings(cpu), []).append(cpu)
    ordered = [cpus[k] for k in range(max(map(len, cores.values()))) for cpus in cores.values() if k < len(cpus)]
    first = turn % len(ordered)
    return tuple(sorted((ordered[first:] + ordered[:first])[: max(1, count)]))


def _siblings(cpu: int) -> str:
    """The core of a CPU, by a name."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def signal_name(number: int) -> str:
    """A signal by name, also one that Python does not know."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def terminated_by_memory(status: int, stderr: str) -> bool:
    """Whether a child ended since memory ran out: LLVM and C++ abort then, and say so."""
    words: Sequence[str] = ("out of memory", "bad_alloc", "Cannot allocate", "MemoryError", "Allocation failed")
    aborted = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGABRT, signal.SIGSEGV, signal.SIGTRAP)
    return (aborted or os.WIFEXITED(status)) and any([word in stderr for word in words])
