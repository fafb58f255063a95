"""native_module: one object becomes a runtime Module, linked into this process; where it came from does not matter."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from loopwright.codegen.llvm.engine import Compiled
from loopwright.codegen.llvm.load_object import MissingSymbols, is_runnable, load, require_runnable
from loopwright.runtime import amx, ffi, thread_pool
from loopwright.runtime.c_header import c_header
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.module import Module
from loopwright.target import CpuDescription


class CompiledModule(Module):
    """A Module that remembers how it was compiled: `timings` holds the seconds each stage took."""

    timings: dict[str, float]
    compiled: Compiled
    uses_amx: bool


def uses_amx(ll: str) -> bool:
    """Whether the code needs the kernel's permission for AMX before it runs."""
    return "@llvm.x86.ldtilecfg" in ll


def native_module(compiled: Compiled, description: ModuleDescription, needs_amx: bool) -> CompiledModule:
    """The module of an object and its description; `timings` says what linking took.

    Code that this machine cannot run makes a module all the same: its source can be read, and a call says what is
    missing.
    """
    start = perf_counter()
    result = CompiledModule(
        {},
        description.entry,
        {
            "ll": compiled.optimized_ll,
            "asm": compiled.asm,
            "s": compiled.asm,
            "llvm": lambda: compiled.ll,
            "h": lambda: c_header(description),
            "json": description.to_json,
            "": compiled.optimized_ll,
        },
        description=description,
        object_code=lambda: compiled.object_bytes,
    )
    result.compiled, result.uses_amx = compiled, needs_amx
    result.set_functions(_functions(result, compiled.cpu, [function.name for function in description.functions]))
    result.timings = {"link": perf_counter() - start}
    return result


def _functions(result: CompiledModule, cpu: CpuDescription, names: list[str]) -> dict[str, PackedFunction]:
    """The callable of each function. Code that cannot run here, or calls what is not there, says so when called."""
    if not is_runnable(cpu):
        return {name: lambda *_: require_runnable(cpu) for name in names}  # which refuses, and says why
    if result.uses_amx:
        amx.require()
    try:
        loaded = load(result.compiled, {**ffi.symbols(), **thread_pool.symbols()})
    except MissingSymbols:
        return {name: _Later(result, cpu, names, name) for name in names}
    result.keep_alive(loaded)
    return {name: ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), loaded) for name in names}


class _Later:
    """A function whose module needs symbols that are nowhere yet: each call tries to link again.

    So a module whose C functions come from elsewhere can be exported, and can be called once they are loaded.
    """

    def __init__(self, result: CompiledModule, cpu: CpuDescription, names: list[str], name: str) -> None:
        self.made, self.cpu, self.names, self.name = result, cpu, names, name

    def __call__(self, *args: object) -> Any:
        load(self.made.compiled, {**ffi.symbols(), **thread_pool.symbols()})  # raises while something is missing
        self.made.set_functions(_functions(self.made, self.cpu, self.names))
        return self.made[self.name](*args)
