"""make_cuda_module: a split module becomes a runtime Module whose functions launch its kernels.

    module.get_source("cuda")                      the kernels; also of module.imported_modules[0]
    module.get_source("ptx")                       compiled by NVRTC, where it is
    module(a, b)                                   launched on the GPU where a and b are; compiled when first called
    build(…, target="cuda -model=emulated")        the kernels run on the CPU

The source is there at once. What is emulated is compiled when it is first called, like modules of C.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from loopwright import ir
from loopwright.codegen.describe_module import describe_module, kernels_of
from loopwright.codegen.source.c.emit_c import CSource, emit_c
from loopwright.codegen.source.c.make_module import CompiledSource, LazyFunction
from loopwright.codegen.source.cuda.emit_cuda import emit_cuda
from loopwright.codegen.source.cuda.emulate import ORDERS, compile_emulated, kernel_unit, launches
from loopwright.codegen.source.cuda.errors import UnknownThreadOrder
from loopwright.codegen.source.cuda.host import emit_host, images_symbol
from loopwright.codegen.source.cuda.images import TEXT_HOOK, hook, ptx_of
from loopwright.codegen.source.cuda.kernels import CudaKernels
from loopwright.codegen.source.cuda.launching import CudaFunction, CudaFunctions
from loopwright.codegen.source.names import symbol
from loopwright.codegen.with_symbols import with_symbols
from loopwright.runtime.c_header import c_header
from loopwright.runtime.call_errors import SEPARATOR, KernelStopped
from loopwright.runtime.description import DeviceCode, ModuleDescription
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.module import DeviceModule, Module
from loopwright.runtime.nvidia.emulated import is_emulated
from loopwright.target import CpuDescription, Target, describe_gpu
from loopwright.target.gpu import EMULATED


class CudaModule(Module):
    """A Module of functions that launch kernels: `kernels` is what they launch, `timings` the seconds of each stage."""

    kernels: CudaKernels
    timings: dict[str, float]


class LaunchingModule(CudaModule):
    """A CudaModule for GPUs: `compiled` is what its functions are loaded from."""

    compiled: CudaFunctions


class EmulatedModule(CudaModule):
    """A CudaModule whose kernels run on the CPU."""

    why_not_exported = "its kernels are emulated, which is for tests"
    instead_of_export = 'build for the GPUs that will run it: target="cuda -arch=sm_80,sm_90a"'

    _compiled: CompiledSource
    _order: tuple[str, int] = ("forwards", 0)

    @property
    def thread_order(self) -> str:
        """The order in which the threads of a block run between two barriers."""
        return self._order[0]

    def set_thread_order(self, order: str, seed: int = 0) -> None:
        """Threads run "forwards", "backwards", or in an order that is "random" (by `seed`) between any two barriers.

        A program that computes something else in another order lacks a barrier.
        """
        if order not in ORDERS:
            raise UnknownThreadOrder(order, list(ORDERS))
        self._order = order, seed


class _Emulated:
    """One function; where a kernel fails, the emulation knows more than the code that the function returns."""

    def __init__(self, function: LazyFunction, module: EmulatedModule) -> None:
        self.function, self.module = function, module

    def __call__(self, *args: object) -> Any:
        compiled = self.module._compiled
        compiled.function(self.function.name)
        library, (order, seed) = compiled.library, self.module._order
        assert library is not None
        # Before each call: modules of the same text share a library, and a random order begins anew.
        library.lw_emulation_order(ORDERS[order], ctypes.c_uint64(seed))
        try:
            return self.function(*args)
        except KernelStopped as error:
            library.lw_emulation_message.restype = ctypes.c_char_p
            why = library.lw_emulation_message().decode("utf-8", "replace")
            raise KernelStopped(SEPARATOR.join([error.problem, why, ""])) from None

    def __repr__(self) -> str:
        return f"EmulatedFunction({self.function.name})"


def make_cuda_module(
    module: ir.IRModule, target: Target, cpu: CpuDescription, entry_name: str | None = None
) -> CudaModule:
    """The Module of what `split_host_device` made; `cpu` is the host's."""
    start = perf_counter()
    module = with_symbols(module)
    kernels = emit_cuda(module, target)
    if hook(TEXT_HOOK) is not None:
        kernels = kernels._replace(text=str(hook(TEXT_HOOK)(kernels.text, target)))
    description = describe_module(module, cpu, entry_name)
    if target.model == EMULATED or is_emulated():  # LOOPWRIGHT_CUDA says it for all targets
        result: CudaModule = _emulated(module, kernels, cpu, description, target)
    else:
        description = replace(description, device=DeviceCode(str(target), images_symbol(kernels)))
        host = emit_host(module, kernels, cpu, description)
        result = launching_module(CudaFunctions(host, kernels, cpu, target), description)
    result.timings = {"emit CUDA": perf_counter() - start}
    return result


def _sources(kernels: CudaKernels, target: Target) -> dict[str, Any]:
    arch = describe_gpu(target).arch
    return {
        "cuda": lambda: kernels.text,
        "cu": lambda: kernels.text,
        "ptx": lambda: ptx_of(kernels, arch, target),
    }


def _device_module(kernels: CudaKernels, target: Target) -> Module:
    """The kernels by themselves, for those who look for their source among the imported modules."""
    return DeviceModule(_sources(kernels, target))


def launching_module(compiled: CudaFunctions, description: ModuleDescription) -> LaunchingModule:
    """The Module of functions that launch kernels, which are compiled when one is called or exported."""
    kernels, target = compiled.kernels, compiled.target
    names = [function.name for function in description.functions]
    result = LaunchingModule(
        {},
        description.entry,
        {
            **_sources(kernels, target),
            "host": lambda: compiled.host,
            "h": lambda: c_header(description),
            "json": description.to_json,
        },
        type_key="cuda",
        description=description,
        object_code=compiled.host_object,
        extra_objects=lambda: [compiled.images_object()],
    )

    def load_all() -> Mapping[str, PackedFunction]:
        loaded = compiled.functions(names)
        result.set_functions(loaded)  # from now on no Python is on the way
        result.timings = {**result.timings, **compiled.timings}
        return loaded

    result.set_functions({name: CudaFunction(name, load_all) for name in names})
    result.kernels, result.compiled, result.timings = kernels, compiled, {}
    result.import_module(_device_module(kernels, target))
    return result


def _emulated(
    module: ir.IRModule, kernels: CudaKernels, cpu: CpuDescription, described: ModuleDescription, target: Target
) -> EmulatedModule:
    functions = kernels_of(module)
    entry_name = described.entry
    host: CSource = emit_c(module, None if entry_name is None else symbol(entry_name), launches(kernels, functions))
    unit = kernel_unit(kernels, functions)
    compiled = CompiledSource(module, host, cpu, lambda code, cpu: compile_emulated(unit, code, cpu))
    description = replace(
        described, functions=tuple(replace(f, c_name=host.symbols[f.name]) for f in described.functions)
    )
    sources = {**_sources(kernels, target), "host": lambda: host.code}
    result = EmulatedModule({}, entry_name, sources, type_key="cuda", description=description)
    result._compiled = compiled
    result.set_functions({name: _Emulated(LazyFunction(name, compiled), result) for name in host.symbols})
    result.kernels = kernels
    result.import_module(_device_module(kernels, target))
    return result
