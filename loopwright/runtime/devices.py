"""Device: where memory lies and code runs, and an honest answer about what is there.

A device can always be named (`cuda(0)`), so that a script may ask `cuda(0).exist`. Using one that cannot be used
raises `DeviceUnavailable`, which says what was looked for, what was found, and what still works.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from loopwright.runtime.call_errors import SEPARATOR
from loopwright.runtime.device_errors import DeviceUnavailable
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import core
from loopwright.runtime.nvidia import memory
from loopwright.runtime.nvidia.driver import driver, why_unusable
from loopwright.runtime.nvidia.emulated import FACTS, is_emulated

CPU: Final = 1
CUDA: Final = memory.CUDA

# The driver's numbers (CUdevice_attribute) for what a device is asked for.
_MAX_THREADS, _MAX_BLOCK_X, _SHARED, _WARP, _REGISTERS, _CLOCK, _PROCESSORS, _L2 = 1, 2, 8, 10, 12, 13, 16, 38
_MAJOR, _MINOR, _SHARED_OPT_IN = 75, 76, 97

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
_DRIVER_VERSION: Final = Path("/proc/driver/nvidia/version")
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
        if self.device_type == CUDA:
            return why_unusable(self.index) is None
        return self.device_type == CPU and self.index == 0

    def sync(self, stream: object = None) -> None:
        """Wait until everything started on this device (or in that stream of it) is done; a CPU is never behind."""
        self.require("sync")
        if self.device_type == CUDA and stream is not None:
            driver().call("stream_synchronize", self.index, memory.check_stream(stream))
        elif self.device_type == CUDA:
            driver().call("synchronize", self.index)

    def create_raw_stream(self) -> int | None:
        """A new queue of work on the device; a CPU has none, and None stands for its only one."""
        self.require("create_raw_stream")
        return driver().new("stream_create", self.index) if self.device_type == CUDA else None

    def free_raw_stream(self, stream: object) -> None:
        """Wait for a queue and give it back; a thread that was using it goes on with the default one."""
        self.require("free_raw_stream")
        handle = memory.check_stream(stream) if self.device_type == CUDA else 0
        if handle:
            if memory.current_stream(self.index) == handle:
                memory.set_current_stream(self.index, 0)
            driver().call("stream_destroy", self.index, handle)

    def set_raw_stream(self, stream: object) -> None:
        """Put what this thread starts from now on into that queue; None is the default one."""
        self.require("set_raw_stream")
        if self.device_type == CUDA:
            memory.set_current_stream(self.index, memory.check_stream(stream))

    def trim(self) -> None:
        """Give memory that dropped tensors left in the pool back to the device, for other processes."""
        self.require("trim")
        if self.device_type == CUDA:
            driver().call("trim", self.index)

    def require(self, wanted: str) -> None:
        """Raise `DeviceUnavailable`, or a subclass, unless the device can be used; `wanted` is what for."""
        if self.exist:
            return
        problem, looked, kind = f"{wanted}: the device {self} cannot be used here", [], DeviceUnavailable
        why = f"this version of Loopwright has no runtime for {self.type} devices"
        if self.device_type == CPU:
            looked, why = ["cpu(0)"], "all processors of this machine are one device, cpu(0)"
        elif self.device_type == CUDA and (found := why_unusable(self.index)) is not None:
            looked, kind, why = ["libcuda.so.1", "/dev/nvidia*"], found.kind, found.why
        raise kind(f"{problem}{SEPARATOR}{why}", fields={"device": str(self), "looked_for": looked})

    @property
    def device_name(self) -> str | None:
        """The name of the processor, or None where the system does not tell."""
        self.require("device_name")
        if self.device_type == CUDA:
            return driver().device_name(self.index)
        import platform

        return platform.processor() or platform.machine() or None

    @property
    def multi_processor_count(self) -> int:
        """How many processors run code at once."""
        return self._fact("multi_processor_count", _PROCESSORS) or os.cpu_count() or 1

    # What follows describes thread blocks and memory of its own, and a CPU has none: its answer is None.
    @property
    def max_threads_per_block(self) -> int | None:
        """Threads in one block at most."""
        return self._fact("max_threads_per_block", _MAX_THREADS)

    @property
    def max_thread_dimensions(self) -> tuple[int, int, int] | None:
        """Threads in one block at most, by axis."""
        along = [self._fact("max_thread_dimensions", _MAX_BLOCK_X + axis) for axis in range(3)]
        return None if along[0] is None else (along[0], along[1] or 1, along[2] or 1)

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of memory that the threads of a block share, without asking for more than the usual 48 KiB."""
        return self._fact("max_shared_memory_per_block", _SHARED)

    @property
    def max_dynamic_shared_memory_per_block(self) -> int | None:
        """Bytes of memory that the threads of a block share at most, where a kernel asks for it."""
        return self._fact("max_dynamic_shared_memory_per_block", _SHARED_OPT_IN)

    @property
    def max_registers_per_block(self) -> int | None:
        """Registers of 32 bits that the threads of a block have together."""
        return self._fact("max_registers_per_block", _REGISTERS)

    @property
    def warp_size(self) -> int | None:
        """Threads that run in lockstep."""
        return self._fact("warp_size", _WARP)

    @property
    def compute_version(self) -> str | None:
        """The version of the instruction set, such as "9.0"."""
        major = self._fact("compute_version", _MAJOR)
        return None if major is None else f"{major}.{self._fact('compute_version', _MINOR)}"

    @property
    def max_clock_rate(self) -> int | None:
        """The clock in kHz."""
        return self._fact("max_clock_rate", _CLOCK)

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Bytes of the cache that all processors of an accelerator share."""
        return self._fact("l2_cache_size_bytes", _L2)

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of the device's memory."""
        self.require("total_global_memory")
        return driver().memory(self.index)[1] if self.device_type == CUDA else None

    @property
    def available_global_memory(self) -> int | None:
        """Bytes of the device's memory that nobody holds; what dropped tensors left in the pool comes on top."""
        self.require("available_global_memory")
        if self.device_type != CUDA:
            return None
        free, _, reserved, used = driver().memory(self.index)
        return free + reserved - used

    @property
    def api_version(self) -> int | None:
        """The version of the interface that the vendor's driver offers: 13000 is CUDA 13.0."""
        self.require("api_version")
        return driver().version if self.device_type == CUDA else None

    @property
    def driver_version(self) -> str | None:
        """The version of the vendor's driver, such as "580.65.06", where the system tells."""
        self.require("driver_version")
        if self.device_type != CUDA or not _DRIVER_VERSION.is_file():
            return None
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", _DRIVER_VERSION.read_text(errors="replace"))
        return found[0] if found else None

    def _fact(self, name: str, attribute: int) -> int | None:
        self.require(name)
        if self.device_type == CUDA:
            return driver().attribute(self.index, attribute)
        return FACTS.get(attribute) if is_emulated() else None

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
    return Device("cuda", index)


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
    code, index = _read(asked, index)
    # A number says where a tensor lies, and stays what it is.
    return (CPU if code == CUDA and isinstance(asked, str) and is_emulated() else code), index


def _read(asked: str | int, index: int | None) -> tuple[int, int]:
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
