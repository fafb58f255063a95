"""make_c_module: a lowered IRModule becomes a runtime Module that holds C, and compiles it when it is first called.

Making the source takes milliseconds and needs no compiler; compiling it may take seconds. So whoever only wants the
source pays nothing, and a machine without a compiler gives source all the same.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from loopwright import ir
from loopwright.codegen.describe_module import describe_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.load_object import load, require_runnable
from loopwright.codegen.source.c.compile_c import compile_library, load_library
from loopwright.codegen.source.c.emit_c import CSource, emit_c
from loopwright.codegen.source.c.entry import emit_entries
from loopwright.codegen.source.names import symbol
from loopwright.codegen.with_symbols import with_symbols
from loopwright.runtime import ffi
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.module import Module
from loopwright.target import CpuDescription


class CompiledSource:
    """The functions of a source, compiled (`make` says how) and loaded when the first of them is called."""

    def __init__(
        self,
        module: ir.IRModule,
        source: CSource,
        cpu: CpuDescription,
        make: Callable[[str, CpuDescription], Path] = compile_library,
    ) -> None:
        self.module, self.source, self.cpu, self.make = module, source, cpu, make
        self.library: ctypes.CDLL | None = None  # once it is loaded
        self.timings: dict[str, float] = {}
        self._lock = threading.Lock()
        self._functions: dict[str, PackedFunction] = {}

    def function(self, name: str) -> PackedFunction:
        with self._lock:
            if not self._functions:
                self._load()
        return self._functions[name]

    def _load(self) -> None:
        require_runnable(self.cpu)
        start = perf_counter()
        library = self.library = load_library(self.make(self.source.code, self.cpu))
        compiled = perf_counter()
        addresses = {
            name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            for name in self.source.symbols.values()
        }
        entries = compile_text(emit_entries(self.module, self.source, self.cpu), self.cpu, opt_level=1)
        loaded = load(entries, {**ffi.symbols(), **addresses})
        for name in self.source.symbols:
            self._functions[name] = ffi.function_from_address(loaded.address(ENTRY_PREFIX + name), (loaded, library))
        self.timings = {"C compiler": compiled - start, "entries": perf_counter() - compiled}


class CModule(Module):
    """A Module of C functions: `source` is what they are made from, `timings` the seconds each stage took."""

    source: CSource
    _compiled: CompiledSource

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by stage; those of the C compiler appear after the first call."""
        return {**self._timings, **self._compiled.timings}

    @timings.setter
    def timings(self, seconds: dict[str, float]) -> None:
        self._timings = seconds


class LazyFunction:
    """One function: the first call compiles."""

    def __init__(self, name: str, compiled: CompiledSource) -> None:
        self.name, self._compiled = name, compiled
        self._function: PackedFunction | None = None

    def __call__(self, *args: object) -> Any:
        if self._function is None:
            self._function = self._compiled.function(self.name)
        return self._function(*args)

    def __repr__(self) -> str:
        return f"CFunction({self.name})"


def make_c_module(module: ir.IRModule, cpu: CpuDescription, entry_name: str | None = None) -> CModule:
    """A module whose `get_source("c")` and `get_source("h")` are the source; its functions compile when called."""
    start = perf_counter()
    module = with_symbols(module)
    source = emit_c(module, None if entry_name is None else symbol(entry_name))
    timings = {"emit C": perf_counter() - start}
    compiled = CompiledSource(module, source, cpu)
    functions = {name: LazyFunction(name, compiled) for name in source.symbols}
    described = describe_module(module, cpu, entry_name)
    description = replace(
        described, functions=tuple(replace(f, c_name=source.symbols[f.name]) for f in described.functions)
    )
    result = CModule(
        functions,
        entry_name,
        {"c": lambda: source.code, "h": lambda: source.header},
        type_key="c",
        description=description,
        extra_objects=lambda: [] if cpu.pointer_bits != 64 else [_entries(module, source, cpu, description)],
    )
    result.source, result._compiled, result.timings = source, compiled, timings
    return result


def _entries(module: ir.IRModule, source: CSource, cpu: CpuDescription, description: ModuleDescription) -> bytes:
    """The object that goes with the compiled source into a library: checked entries, and what the library holds."""
    return compile_text(emit_entries(module, source, cpu, description), cpu, opt_level=1).object_bytes
