"""Device: where memory lies and code runs, and an honest answer about what is there.

A device can always be named (`cuda(0)`), so that a script may ask `cuda(0).exist`. Using one that cannot be used
raises `DeviceUnavailable`, which says what was looked for, what was found, and what still works.
"""

from __future__ import annotations

import glob
import os
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import core

CPU: Final = 1
CUDA: Final = 2

# Every name a device may be asked by, and DLPack's code for it.
_TYPES: Final = {
    "cpu": CPU,
    "llvm": CPU,
    "c": CPU,
    "stackvm": CPU,
    "hybrid": CPU,
    "test": CPU,
    "cuda": CUDA,
    "nvptx": CUDA,
    "gpu": CUDA,
    "cl": 4,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "mtl": 8,
    "vpi": 9,
    "rocm": 10,
    "ext_dev": 12,
    "webgpu": 15,
    "hexagon": 16,
    "composite": CPU,
    "sdaccel": 4,
    "aocl": 5,
    "aocl_sw_emu": 5,
}
_NAMES: Final = {code: name for name, code in reversed(_TYPES.items()) if name not in ("cl", "mtl")}


class UnknownDevice(LoopwrightError, ValueError):
    """A text or number that names no kind of device.

    A device is a kind and an index: `device("cpu")`, `device("cuda", 1)`, `device("cuda:1")`. A target kind names the
    device it runs on, so `device("llvm")` is a CPU.

    For example:

        import loopwright
        loopwright.device("abacus")
    """

    code = "LW0102"

    def __init__(self, asked: object, why: str | None = None) -> None:
        super().__init__(
            f"unknown device {asked!r}",
            why=why,
            hint=f"use a kind and an index, such as 'cpu' or 'cuda:1'; the kinds are {', '.join(_TYPES)}",
            fields={"device": str(asked)},
        )


class DeviceUnavailable(LoopwrightError):
    """The device cannot be used here: it is missing, or this version of Loopwright has no runtime for it.

    The message lists what was looked for. The CPU always works: build for target "llvm" and put tensors on cpu(0).

    For example:

        import loopwright
        loopwright.nd.empty((4,), device=loopwright.device("vulkan"))
    """

    code = "LW0103"

    def __init__(self, device: Device, wanted: str) -> None:
        looked, why = _what_is_there(device)
        super().__init__(
            f"{wanted}: the device {device} cannot be used here",
            why=why,
            hint="cpu(0) works: build for target 'llvm' and keep the tensors on cpu(0)",
            fields={"device": str(device), "looked_for": looked},
        )


class Device(core.Device):
    """One device: `type` ("cpu", "cuda", …) and `index`; passes to functions as it is."""

    __slots__ = ()

    # DLPack's codes by the names of its header, and what each word means.
    kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI = 1, 2, 3, 4, 7, 8, 9
    kDLROCM, kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI, kDLWebGPU, kDLHexagon = 10, 11, 12, 13, 14, 15, 16
    STR2MASK: Final = _TYPES
    MASK2STR: Final = _NAMES

    def __init__(self, device_type: str | int, index: int | None = None) -> None:
        code, index = _parse(device_type, index)
        super().__init__(code, index)

    @property
    def device_type(self) -> int:
        """DLPack's code for the kind of device."""
        return self.dlpack_device_type()

    @property
    def device_id(self) -> int:
        """The index among the devices of this kind."""
        return self.index

    @property
    def exist(self) -> bool:
        """Whether Loopwright can run code and hold tensors on this device."""
        return self.device_type == CPU and self.index == 0

    def sync(self, stream: object = None) -> None:
        """Wait until everything started on this device is done; on a CPU calls return when they are done."""
        self.require("sync")

    def create_raw_stream(self) -> int | None:
        """A new queue of work on the device; a CPU has none, and None stands for its only one."""
        self.require("create_raw_stream")
        return None

    def free_raw_stream(self, stream: object) -> None:
        """Give a queue back."""
        self.require("free_raw_stream")

    def set_raw_stream(self, stream: object) -> None:
        """Put what this thread starts from now on into that queue."""
        self.require("set_raw_stream")

    def require(self, wanted: str) -> None:
        """Raise `DeviceUnavailable` unless the device can be used; `wanted` is what for."""
        if not self.exist:
            raise DeviceUnavailable(self, wanted)

    @property
    def device_name(self) -> str | None:
        """The name of the processor, or None where the system does not tell."""
        self.require("device_name")
        import platform

        return platform.processor() or platform.machine() or None

    @property
    def multi_processor_count(self) -> int:
        """How many processors run code at once."""
        self.require("multi_processor_count")
        return os.cpu_count() or 1

    # The limits below describe thread blocks, and a CPU has none: its answer is None. No other device can be used yet.
    @property
    def max_threads_per_block(self) -> int | None:
        """Threads in one block at most."""
        return self._block_limit("max_threads_per_block")

    @property
    def max_thread_dimensions(self) -> tuple[int, int, int] | None:
        """Threads in one block at most, by axis."""
        self._block_limit("max_thread_dimensions")
        return None

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of memory that the threads of a block share."""
        return self._block_limit("max_shared_memory_per_block")

    @property
    def warp_size(self) -> int | None:
        """Threads that run in lockstep."""
        return self._block_limit("warp_size")

    @property
    def compute_version(self) -> str | None:
        """The version of the instruction set, such as "9.0"."""
        self._block_limit("compute_version")
        return None

    @property
    def max_clock_rate(self) -> int | None:
        """The clock in kHz."""
        return self._block_limit("max_clock_rate")

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Bytes of the cache that all processors of an accelerator share."""
        return self._block_limit("l2_cache_size_bytes")

    @property
    def api_version(self) -> int | None:
        """The version of the vendor's runtime."""
        return self._block_limit("api_version")

    @property
    def driver_version(self) -> str | None:
        """The version of the vendor's driver."""
        self._block_limit("driver_version")
        return None

    def _block_limit(self, name: str) -> int | None:
        self.require(name)
        return None

    def __str__(self) -> str:
        return f"{_NAMES.get(self.device_type) or self.type}({self.index})"

    __repr__ = __str__


if core._CLASS_DEVICE is core.Device:
    # Devices that functions return or hand to Python callbacks are then of this class too, unless another package was
    # here first with its own.
    core._set_class_device(Device)


def device(dev_type: str | int, dev_id: int | None = None) -> Device:
    """The device named `"cuda"`, `"cuda:1"`, by a target kind (`"llvm"`), or by DLPack's number."""
    return Device(dev_type, dev_id)


def cpu(index: int = 0) -> Device:
    """The host's processor."""
    return Device(CPU, index)


def cuda(index: int = 0) -> Device:
    """An NVIDIA GPU."""
    return Device(CUDA, index)


def opencl(index: int = 0) -> Device:
    """An OpenCL device."""
    return Device("opencl", index)


def vulkan(index: int = 0) -> Device:
    """A Vulkan device."""
    return Device("vulkan", index)


def metal(index: int = 0) -> Device:
    """An Apple GPU."""
    return Device("metal", index)


def rocm(index: int = 0) -> Device:
    """An AMD GPU."""
    return Device("rocm", index)


def vpi(index: int = 0) -> Device:
    """A simulated hardware device."""
    return Device("vpi", index)


def ext_dev(index: int = 0) -> Device:
    """An extension device."""
    return Device("ext_dev", index)


def hexagon(index: int = 0) -> Device:
    """A Hexagon processor."""
    return Device("hexagon", index)


def webgpu(index: int = 0) -> Device:
    """A WebGPU device."""
    return Device("webgpu", index)


gpu = cuda
cl = opencl
mtl = metal


def _parse(asked: str | int, index: int | None) -> tuple[int, int]:
    if index is not None and (isinstance(index, str) or int(index) != index):
        raise UnknownDevice(asked, why=f"{index!r} is no index")
    if not isinstance(asked, str):
        if asked not in core.Device._DEVICE_TYPE_TO_NAME:  # type: ignore[attr-defined]
            raise UnknownDevice(asked)
        return asked, index or 0
    kind, _, tail = asked.partition(" ")[0].partition(":")  # "cuda -arch=sm_80" is a target text: its first word counts
    if kind not in _TYPES:
        raise UnknownDevice(asked)
    if ":" not in asked.partition(" ")[0]:
        return _TYPES[kind], index or 0
    if not tail.isdecimal():
        raise UnknownDevice(asked, why=f"{tail!r} is no index")
    return _TYPES[kind], int(tail)


def _what_is_there(device: Device) -> tuple[list[str], str]:
    """What was looked for to find `device`, and in words what came of it."""
    if device.device_type == CPU:
        return ["cpu(0)"], "all processors of this machine are one device, cpu(0)"
    if device.device_type != CUDA:
        return [], f"this version of Loopwright has no runtime for {device.type} devices"
    import ctypes

    looked = ["libcuda.so.1", "/dev/nvidia*"]
    try:
        ctypes.CDLL("libcuda.so.1")
        driver = "the driver library libcuda.so.1 is there"
    except OSError:
        driver = "the driver library libcuda.so.1 was not found"
    nodes = glob.glob("/dev/nvidia[0-9]*")
    result = f"{len(nodes)} device file(s) /dev/nvidia* are there" if nodes else "there is no device file /dev/nvidia*"
    if nodes and driver.endswith("is there"):
        return looked, f"{driver} and {result}, but this version of Loopwright has no CUDA runtime yet"
    return looked, f"{driver}, and {result}"
