"""Kernels launched from Python: for tests, measurements and kernels of one's own. Compiled functions need none of this.

    module = KernelModule([Image(cubin, arch=90)])
    add = module.kernel("add", "*A *B n")
    add(a, b, 1024, grid=8, block=128)              on the current stream of the tensors' device
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from loopwright.runtime.call_errors import ArgumentCountMismatch, ArgumentKindMismatch, DeviceMismatch
from loopwright.runtime.ffi import core
from loopwright.runtime.nvidia.driver import driver
from loopwright.runtime.nvidia.images import Image, pack
from loopwright.runtime.nvidia.memory import CUDA, current_stream


class Figures(NamedTuple):
    """What a loaded kernel needs."""

    max_threads: int  # of a block
    static_shared: int  # bytes
    registers: int  # of a thread


class KernelModule:
    """Images of the same kernels for several architectures; loaded on a device when one of them is launched there."""

    def __init__(self, images: Sequence[Image]) -> None:
        packed = pack(images)
        self._driver = driver()
        self._handle = self._driver.pointer("module", packed, len(packed))

    def kernel(self, name: str, arguments: str) -> Kernel:
        """The kernel of that name; `arguments` names its arguments in order, a pointer with a star: "*A *B n"."""
        handle = self._driver.pointer("kernel", self._handle, name.encode(), arguments.encode())
        return Kernel(self, handle, name, arguments.split())

    def note(self, device: int = 0) -> str | None:
        """Why another image than the best was loaded, if so."""
        return self._driver.note(self._handle, device)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._driver._native.lw_cuda_module_release(self._handle)


class Kernel:
    """A kernel to launch; tensors pass as pointers, Python's numbers as int32 and float32, numpy's as they are."""

    def __init__(self, module: KernelModule, handle: int, name: str, arguments: list[str]) -> None:
        self._module, self.handle, self.name, self.arguments = module, handle, name, arguments

    def figures(self, device: int = 0) -> Figures:
        """Load it, and tell what it needs."""
        result = (ctypes.c_int32 * 3)()
        self._module._driver.call("kernel_load", self.handle, device, result)
        return Figures(*result)

    def __call__(
        self,
        *args: object,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        cluster: int | Sequence[int] = 1,
        shared: int = 0,
        device: int | None = None,
    ) -> None:
        """Queue the kernel; `grid` and `cluster` count blocks, `block` threads, each along x, y and z."""
        if len(args) != len(self.arguments):
            raise ArgumentCountMismatch(f"{self.name}: {len(args)} arguments, expected {len(self.arguments)}")
        values = [self._value(name, value) for name, value in zip(self.arguments, args)]
        homes = {value.__dlpack_device__()[1] for value in args if isinstance(value, core.Tensor)}
        where = device if device is not None else next(iter(homes), 0)
        if homes - {where}:
            places = ", ".join([f"cuda({one})" for one in sorted({*homes, where})])
            raise DeviceMismatch(f"{self.name}: the kernel and its tensors are on {places}")
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        sizes = (ctypes.c_int64 * 9)(*_three(grid), *_three(block), *_three(cluster))
        stream = current_stream(where)
        self._module._driver.call("launch", self.handle, where, stream, sizes, shared, pointers)

    def _value(self, name: str, value: object) -> ctypes.Array[ctypes.c_char] | ctypes._SimpleCData:
        if name.startswith("*") and isinstance(value, core.Tensor):
            if value.__dlpack_device__()[0] != CUDA:
                raise DeviceMismatch(
                    f"{self.name}: argument {name[1:]} lies on {value.device}, and the kernel runs on a GPU\x1f\x1f"
                    f"copy it there: {name[1:]}.copyto(cuda(0))"
                )
            return ctypes.c_void_p(value.data_ptr())
        if not name.startswith("*") and isinstance(value, np.generic):
            return ctypes.create_string_buffer(value.tobytes(), value.nbytes)
        if not name.startswith("*") and isinstance(value, (int, float)):
            return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int32(value)
        wanted = "tensor on a GPU" if name.startswith("*") else "number"
        given = type(value).__name__
        raise ArgumentKindMismatch(f"{self.name}: argument {name.lstrip('*')} is {given}, expected a {wanted}")


def _three(size: int | Sequence[int]) -> tuple[int, ...]:
    given: Final = (size,) if isinstance(size, int) else tuple(size)
    return (*given, *(1,) * (3 - len(given)))
