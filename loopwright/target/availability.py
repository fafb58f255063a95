"""What this version can build here, and a straight answer when it cannot."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target.kinds import BUILDABLE
from loopwright.target.target import Target, as_target

# What a device needs from the system: (library to load, device file) per kind.
_DRIVERS: Final = {
    "cuda": ("libcuda.so.1", "/dev/nvidia0"),
    "nvptx": ("libcuda.so.1", "/dev/nvidia0"),
    "rocm": ("libamdhip64.so", "/dev/kfd"),
    "opencl": ("libOpenCL.so.1", None),
    "vulkan": ("libvulkan.so.1", None),
}


class TargetNotBuildable(LoopwrightError, ValueError):
    """The target is well formed, but this version of Loopwright has no backend for it, or the machine lacks its driver.

    The message lists what was looked for and whether it was found. `loopwright doctor` shows the same for everything.

    For example:

        from loopwright.target import require_buildable

        require_buildable("vulkan")
    """

    code = "LW0607"

    def __init__(self, target: Target, looked_for: list[str]) -> None:
        kind = str(target.kind)
        works = '"llvm", "c" (this machine\'s CPU; other CPUs with -mtriple and -mcpu), "cuda"'
        super().__init__(
            f"cannot build for target {kind!r}",
            asked=f"a build for {str(target)!r}",
            why="looked for: " + "; ".join(looked_for),
            hint=f"what works here: {works}",
            fields={"kind": kind, "looked_for": looked_for, "works": list(BUILDABLE)},
        )


def require_buildable(target: Target | str) -> Target:
    """`target`, if this version can build for it and for its host; otherwise `TargetNotBuildable`."""
    checked = as_target(target)
    if checked.kind not in BUILDABLE:
        raise TargetNotBuildable(checked, look_for(str(checked.kind)))
    if checked.host is not None:
        require_buildable(checked.host)
    return checked


def look_for(kind: str) -> list[str]:
    """What a build for `kind` needs, each with whether it is here, in words."""
    result = []
    library, device = _DRIVERS.get(kind, (None, None))
    if library is not None:
        result.append(f"{library} ({'found' if can_load(library) else 'not found'})")
    if device is not None:
        result.append(f"{device} ({'found' if os.path.exists(device) else 'not found'})")
    name = {"cuda": "CUDA", "opencl": "OpenCL", "rocm": "ROCm"}.get(kind, kind)
    built = "built" if kind in BUILDABLE else "not built in this version"
    result.append(f"the {name} backend ({built})")
    return result


def can_load(library: str) -> bool:
    """Whether the dynamic loader finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
