"""CudaFunctions: functions that launch kernels, compiled and loaded when the first of them is called.

Kernels go through NVRTC then, and what it makes is kept on disk; a machine without a GPU builds, shows sources and
exports. What is exported is the same code of the host with the images of the kernels in another object beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.engine import Compiled, compile_text
from loopwright.codegen.llvm.load_object import load, require_runnable
from loopwright.codegen.source.cuda.host import images_symbol
from loopwright.codegen.source.cuda.images import exported_images, images_here, images_object
from loopwright.codegen.source.cuda.kernels import CudaKernels
from loopwright.runtime import ffi
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.images import EmbeddedImages, Image
from loopwright.target import CpuDescription, Target


class CudaFunctions:
    """The functions of one module for `target`, launched by code for `cpu`."""

    def __init__(self, host: str | Compiled, kernels: CudaKernels, cpu: CpuDescription, target: Target) -> None:
        """`host` is the LLVM text of the functions, or what was compiled of it."""
        self.kernels, self.cpu, self.target = kernels, cpu, target
        self.when_compiled: Callable[[Compiled], None] = lambda compiled: None
        self.timings: dict[str, float] = {}  # seconds of what the first call does; NVRTC runs beside LLVM
        self._host = host
        self._lock = threading.RLock()
        self._alive: tuple[object, ...] = ()
        self._functions: dict[str, PackedFunction] = {}

    @property
    def host(self) -> str:
        """The LLVM text of the code that launches."""
        return self._host if isinstance(self._host, str) else self._host.ll

    def functions(self, names: list[str]) -> Mapping[str, PackedFunction]:
        """The functions, ready to be called."""
        with self._lock:
            if not self._alive:
                self._load(names)
            return self._functions

    def host_object(self) -> bytes:
        """The code of the host; it refers to the images and to the runtime."""
        return self._compiled_host().object_bytes

    def images_object(self) -> bytes:
        """An object with the images of the kernels, for every architecture that the target names."""
        images = exported_images(self.kernels, self.target)
        return images_object(images, images_symbol(self.kernels), self.cpu).object_bytes

    def _compiled_host(self) -> Compiled:
        with self._lock:
            if isinstance(self._host, str):
                start = perf_counter()
                self._host = compile_text(self._host, self.cpu, effort=Effort.TIDY)
                self.timings["compile host"] = perf_counter() - start
                self.when_compiled(self._host)
            return self._host

    def _load(self, names: list[str]) -> None:
        require_runnable(self.cpu)
        driver.driver()  # which says what is missing, before anything is compiled
        with ThreadPoolExecutor(1) as pool:  # neither NVRTC nor LLVM holds the lock of the interpreter
            compiling = pool.submit(self._images)
            host = self._compiled_host()
            images = EmbeddedImages(compiling.result())
        start = perf_counter()
        symbols: dict[str, int] = {**ffi.symbols(), **driver.symbols(), images_symbol(self.kernels): images.address}
        loaded = load(host, symbols)
        self._functions = {
            name: ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), (loaded, images)) for name in names
        }
        self._alive = loaded, images
        self.timings["link"] = perf_counter() - start

    def _images(self) -> list[Image]:
        start = perf_counter()
        result = images_here(self.kernels, self.target)
        self.timings["compile kernels"] = perf_counter() - start
        return result


class CudaFunction:
    """One function: the first call compiles, and puts what was compiled into the module."""

    def __init__(self, name: str, load_all: Callable[[], Mapping[str, PackedFunction]]) -> None:
        self.name, self._load_all = name, load_all
        self._function: PackedFunction | None = None

    def __call__(self, *args: object) -> Any:
        if self._function is None:
            self._function = self._load_all()[self.name]
        return self._function(*args)

    def __repr__(self) -> str:
        return f"CudaFunction({self.name})"
