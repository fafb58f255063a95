"""make_module: a lowered IRModule becomes a runtime Module: LLVM text, one object, linked into this process."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from loopwright import ir
from loopwright.codegen.describe_module import describe_module
from loopwright.codegen.llvm.abi import ENTRY_PREFIX
from loopwright.codegen.llvm.emit_module import emit_module, with_symbols
from loopwright.codegen.llvm.engine import (
    Compiled,
    MissingSymbols,
    compile_text,
    is_runnable,
    load,
    require_runnable,
)
from loopwright.codegen.llvm.laid_out import is_laid_out
from loopwright.runtime import amx, ffi, thread_pool
from loopwright.runtime.c_header import c_header
from loopwright.runtime.module import Module
from loopwright.target import CpuDescription


class CompiledModule(Module):
    """A Module that remembers how it was compiled: `timings` holds the seconds each stage took."""

    timings: dict[str, float]
    compiled: Compiled


def make_module(module: ir.IRModule, cpu: CpuDescription, entry_name: str | None = None) -> CompiledModule:
    """Compile every function of a lowered module for `cpu` and load the result.

    Code that this machine cannot run is compiled all the same: its source can be read, and a call says what is missing.
    """
    start = perf_counter()
    module = with_symbols(module)
    description = describe_module(module, cpu, entry_name)
    constants: dict[str, bytes] = {}
    text = emit_module(module, cpu, description, constants)
    emitted = perf_counter()
    compiled = compile_text(text, cpu, data=constants, laid_out=is_laid_out(module))
    linking = perf_counter()
    made = CompiledModule(
        {},
        entry_name,
        {
            "ll": compiled.optimized_ll,
            "asm": compiled.asm,
            "llvm": lambda: compiled.ll,
            "h": lambda: c_header(description),
            "json": description.to_json,
            "": compiled.optimized_ll,
        },
        description=description,
        object_code=lambda: compiled.object_bytes,
    )
    made.set_functions(_functions(made, compiled, cpu, [function.name for _, function in module.functions_items()]))
    made.compiled = compiled
    made.timings = {
        "emit text": emitted - start,
        **{f"llvm {stage}": seconds for stage, seconds in compiled.timings.items()},
        "link": perf_counter() - linking,
    }
    return made


def _functions(
    made: CompiledModule, compiled: Compiled, cpu: CpuDescription, names: list[str]
) -> dict[str, Callable[..., Any]]:
    """The callable of each function. Code that cannot run here, or calls what is not there, says so when called."""
    if not is_runnable(cpu):
        return {name: lambda *_: require_runnable(cpu) for name in names}  # which refuses, and says why
    if "@llvm.x86.ldtilecfg" in compiled.ll:
        amx.require()
    try:
        loaded = load(compiled, {**ffi.symbols(), **thread_pool.symbols()})
    except MissingSymbols:
        return {name: _Later(made, compiled, cpu, names, name) for name in names}
    made.keep_alive(loaded)
    return {name: ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), loaded) for name in names}


class _Later:
    """A function whose module needs symbols that are nowhere yet: each call tries to link again.

    So a module whose C functions come from elsewhere can be exported, and can be called once they are loaded.
    """

    def __init__(
        self, made: CompiledModule, compiled: Compiled, cpu: CpuDescription, names: list[str], name: str
    ) -> None:
        self.made, self.compiled, self.cpu, self.names, self.name = made, compiled, cpu, names, name

    def __call__(self, *args: Any) -> Any:
        load(self.compiled, {**ffi.symbols(), **thread_pool.symbols()})  # raises while something is missing
        self.made.set_functions(_functions(self.made, self.compiled, self.cpu, self.names))
        return self.made[self.name](*args)
