"""make_cuda_module: a split module becomes a runtime Module whose functions launch its kernels.

    module.get_source("cuda")                      the kernels; also of module.imported_modules[0]
    module.get_source("ptx")                       compiled by NVRTC, where it is
    build(…, target="cuda -model=emulated")        the kernels run on the CPU

The source is there at once. What is emulated is compiled when it is first called, like modules of C.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from time import perf_counter
from typing import Any, Final, NoReturn

from loopwright import ir
from loopwright.codegen.describe_module import describe_module, kernels_of
from loopwright.codegen.source.c.emit_c import CSource, emit_c
from loopwright.codegen.source.c.make_module import CompiledSource, LazyFunction
from loopwright.codegen.source.cuda.emit_cuda import emit_cuda
from loopwright.codegen.source.cuda.emulate import ORDERS, compile_emulated, kernel_unit, launches
from loopwright.codegen.source.cuda.errors import NoCudaRuntime
from loopwright.codegen.source.cuda.kernels import CudaKernels
from loopwright.codegen.source.cuda.nvrtc import compile_text
from loopwright.codegen.source.names import symbol
from loopwright.codegen.with_symbols import with_symbols
from loopwright.runtime.call_errors import SEPARATOR, KernelFailed
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.module import Module
from loopwright.target import CpuDescription, Target

EMULATED: Final = "emulated"  # the `-model` of a target whose kernels run on the CPU


class CudaModule(Module):
    """A Module of functions that launch kernels: `kernels` is what they launch, `timings` the seconds of each stage."""

    kernels: CudaKernels
    timings: dict[str, float]


class EmulatedModule(CudaModule):
    """A CudaModule whose kernels run on the CPU."""

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
            raise LoopwrightError(f"there is no thread order {order!r}", hint=f"it is one of {', '.join(ORDERS)}")
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
        except KernelFailed as error:
            library.lw_emulation_message.restype = ctypes.c_char_p
            why = library.lw_emulation_message().decode("utf-8", "replace")
            raise KernelFailed(SEPARATOR.join([error.problem, why, ""])) from None

    def __repr__(self) -> str:
        return f"EmulatedFunction({self.function.name})"


class _NotHere:
    """A function of a module that was built where kernels cannot be launched."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: object) -> NoReturn:
        raise NoCudaRuntime(self.name)

    def __repr__(self) -> str:
        return f"CudaFunction({self.name})"


def make_cuda_module(
    module: ir.IRModule, target: Target, cpu: CpuDescription, entry_name: str | None = None
) -> CudaModule:
    """The Module of what `split_host_device` made; `cpu` is the host's."""
    start = perf_counter()
    module = with_symbols(module)
    kernels = emit_cuda(module, target)
    make = _emulated if target.model == EMULATED else _built
    result: CudaModule = make(module, kernels, cpu, entry_name)
    result.kernels = kernels
    result.import_module(_device_module(kernels))
    result.timings = {"emit CUDA": perf_counter() - start}
    return result


def _sources(kernels: CudaKernels) -> dict[str, Any]:
    return {
        "cuda": lambda: kernels.text,
        "cu": lambda: kernels.text,
        "ptx": lambda: compile_text(kernels.text, kernels.architecture.replace("sm_", "compute_")).decode(),
    }


def _device_module(kernels: CudaKernels) -> Module:
    """The kernels by themselves, for those who look for their source among the imported modules."""
    return Module({}, None, _sources(kernels), type_key="cuda")


def _built(module: ir.IRModule, kernels: CudaKernels, cpu: CpuDescription, entry_name: str | None) -> CudaModule:
    description = describe_module(module, cpu, entry_name)
    functions = {function.name: _NotHere(function.name) for function in description.functions}
    return CudaModule(functions, entry_name, _sources(kernels), type_key="cuda", description=description)


def _emulated(module: ir.IRModule, kernels: CudaKernels, cpu: CpuDescription, entry_name: str | None) -> EmulatedModule:
    functions = kernels_of(module)
    host: CSource = emit_c(module, None if entry_name is None else symbol(entry_name), launches(kernels, functions))
    unit = kernel_unit(kernels, functions)
    compiled = CompiledSource(module, host, cpu, lambda code, cpu: compile_emulated(unit, code, cpu))
    described = describe_module(module, cpu, entry_name)
    description = replace(
        described, functions=tuple(replace(f, c_name=host.symbols[f.name]) for f in described.functions)
    )
    sources = {**_sources(kernels), "host": lambda: host.code}
    result = EmulatedModule({}, entry_name, sources, type_key="cuda", description=description)
    result._compiled = compiled
    result.set_functions({name: _Emulated(LazyFunction(name, compiled), result) for name in host.symbols})
    return result
