"""AMX: the tile registers of x86 processors, which a process may use only after asking the kernel.

Without permission the first tile instruction ends the process with SIGILL (Linux, arch/x86/xstate). The kernel gives it
once for the whole process, threads included; asking again is harmless.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from typing import Final

from loopwright.runtime.errors import LoopwrightError

_ARCH_PRCTL: Final = 158  # the system call's number on x86-64
_REQUEST: Final = 0x1023  # ARCH_REQ_XCOMP_PERM
_TILE_DATA: Final = 18  # the state component of the tile registers


class AmxNotAllowed(LoopwrightError, OSError):
    """The kernel does not let this process use AMX tile registers.

    The processor may lack them, the kernel may be older than Linux 5.16, or a container or hypervisor may hide them.
    Build for a target without AMX, or schedule the product with another intrinsic.

    For example:

        # needs a process of its own
        from loopwright.runtime import amx
        amx.ask = lambda: "no such processor"  # what a machine without AMX answers
        amx.require()
    """

    code = "LW0180"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this process may not use AMX tiles: {reason}",
            hint='use another intrinsic, such as "dot_16x4_vnni"',
            fields={"reason": reason},
        )


@cache
def ask() -> str:
    """Ask the kernel for the tile registers: the empty text when it agrees, else why not."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return f"this is {platform.system()} on {platform.machine()}"
    process = ctypes.CDLL(None, use_errno=True)
    if process.syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def require() -> None:
    """Make sure that this process may use AMX tiles."""
    reason = ask()
    if reason:
        raise AmxNotAllowed(reason)
