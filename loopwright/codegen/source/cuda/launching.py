"""CudaFunctions: functions that launch kernels, compiled and loaded when the first of them is called.

Kernels go through NVRTC then, and what it makes is kept on disk; a machine without a GPU builds and shows sources.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.load_object import load, require_runnable
from loopwright.codegen.source.cuda.host import KERNEL_PREFIX
from loopwright.codegen.source.cuda.kernels import CudaKernels
from loopwright.runtime import ffi
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.kernels import Image, KernelModule
from loopwright.runtime.nvidia.nvrtc import compile_cuda
from loopwright.target import CpuDescription, GpuDescription

# What results rest on: no multiply-add but those of the text, and divisions and roots as IEEE 754 rounds them.
OPTIONS: Final = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--std=c++17")


def ptx_of(kernels: CudaKernels, arch: str) -> str:
    """The kernels as PTX."""
    return compile_cuda(kernels.text, arch, OPTIONS, is_ptx=True).code.rstrip(b"\0").decode()


def images_of(kernels: CudaKernels, arch: str, is_host: bool = False) -> list[Image]:
    """What a GPU loads: machine code, and unless that is for the GPU of this machine, PTX for later ones, too."""
    result = [Image.of(compile_cuda(kernels.text, arch, OPTIONS).code, arch)]
    if not is_host:
        result.append(Image.of(ptx_of(kernels, arch).encode() + b"\0", arch, is_ptx=True))
    return result


class CudaFunctions:
    """The functions of one module, whose kernels are compiled for `gpu`."""

    def __init__(self, host: str, kernels: CudaKernels, cpu: CpuDescription, gpu: GpuDescription) -> None:
        self.host, self.kernels, self.cpu, self.gpu = host, kernels, cpu, gpu
        self._lock = threading.Lock()
        self._alive: tuple[object, ...] = ()
        self._functions: dict[str, PackedFunction] = {}

    def function(self, name: str) -> PackedFunction:
        """The function of that name, ready to be called."""
        with self._lock:
            if not self._alive:
                self._load()
            if name not in self._functions:
                loaded: Any = self._alive[0]
                self._functions[name] = ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), self._alive)
            return self._functions[name]

    def _load(self) -> None:
        require_runnable(self.cpu)
        driver.driver()  # which says what is missing, before anything is compiled
        module = KernelModule(images_of(self.kernels, self.gpu.arch, self.gpu.is_host))
        handles = [
            (name, module.kernel(kernel.name, " ".join([f"{'*' * p.is_pointer}{p.name}" for p in kernel.parameters])))
            for name, kernel in self.kernels.kernels.items()
        ]
        addresses = {f"{KERNEL_PREFIX}{name}": kernel.handle for name, kernel in handles}
        code = compile_text(self.host, self.cpu, effort=Effort.SEARCH)
        self._alive = load(code, {**ffi.symbols(), **driver.symbols(), **addresses}), module


class CudaFunction:
    """One function: the first call compiles."""

    def __init__(self, name: str, functions: CudaFunctions) -> None:
        self.name, self._functions = name, functions
        self._function: PackedFunction | None = None

    def __call__(self, *args: object) -> Any:
        if self._function is None:
            self._function = self._functions.function(self.name)
        return self._function(*args)

    def __repr__(self) -> str:
        return f"CudaFunction({self.name})"
