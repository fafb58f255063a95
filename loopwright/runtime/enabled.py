"""enabled: whether this installation can build and run for a kind of target."""

from __future__ import annotations

import importlib.util

from loopwright.runtime.devices import Device, UnknownDevice


def enabled(target: str) -> bool:
    """Whether code for `target` ("llvm", "cpu", "cuda -arch=sm_90", …) can be built and run here."""
    kind = str(target).split()[0].partition(":")[0] if str(target).strip() else ""
    if kind == "llvm":
        return importlib.util.find_spec("llvmlite") is not None
    if kind in ("stackvm", "hybrid", "test"):
        return False
    try:
        return Device(kind).exist
    except UnknownDevice:
        return False
