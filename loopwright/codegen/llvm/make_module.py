"""make_module: a lowered IRModule becomes a runtime Module: LLVM text, one object, linked into this process."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from loopwright import ir
from loopwright.codegen.llvm.abi import ENTRY_PREFIX
from loopwright.codegen.llvm.emit_module import emit_module, with_symbols, written_arguments
from loopwright.codegen.llvm.engine import Compiled, compile_text, is_runnable, load, require_runnable
from loopwright.runtime import ffi, thread_pool
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
    text = emit_module(module, cpu)
    emitted = perf_counter()
    compiled = compile_text(text, cpu)
    linking = perf_counter()
    names = [function.name for _, function in module.functions_items()]
    loaded = load(compiled, {**ffi.symbols(), **thread_pool.symbols()}) if is_runnable(cpu) else None
    functions: dict[str, Callable[..., Any]] = {}
    for name in names:
        if loaded is None:
            functions[name] = lambda *_: require_runnable(cpu)  # which refuses, and says why
        else:
            functions[name] = ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), loaded)
    writes = {function.name: written_arguments(function) for _, function in module.functions_items()}
    made = CompiledModule(
        functions,
        entry_name,
        {"ll": compiled.optimized_ll, "asm": compiled.asm, "llvm": lambda: compiled.ll, "": compiled.optimized_ll},
        keep_alive=loaded,
        writes=writes,
    )
    made.compiled = compiled
    made.timings = {
        "emit text": emitted - start,
        **{f"llvm {stage}": seconds for stage, seconds in compiled.timings.items()},
        "link": perf_counter() - linking,
    }
    return made
