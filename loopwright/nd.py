"""Tensors under the names scripts use: `nd.array`, `nd.empty`, `nd.cpu` …; everything lives in `runtime`."""

from __future__ import annotations

from typing import Any

_DEVICES = [
    "Device",
    "device",
    "cpu",
    "cuda",
    "gpu",
    "opencl",
    "cl",
    "vulkan",
    "metal",
    "mtl",
    "rocm",
    "vpi",
    "ext_dev",
    "hexagon",
    "webgpu",
]
_TENSORS = ["NDArray", "array", "empty", "empty_like", "from_dlpack", "from_numpy", "numpyasarray"]

__all__ = [*_DEVICES, *_TENSORS]


def __getattr__(name: str) -> Any:
    from loopwright import runtime

    if name in __all__:
        value = globals()[name] = getattr(runtime, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
