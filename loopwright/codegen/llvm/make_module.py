"""make_module: a lowered IRModule becomes a runtime Module: LLVM text, one object, linked into this process."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

from loopwright import ir
from loopwright.codegen.describe_module import describe_module
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.effort_for import effort_for
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import Compiled, compile_text
from loopwright.codegen.llvm.imports import imports_of, link_imports
from loopwright.codegen.llvm.native_module import CompiledModule, native_module, uses_amx
from loopwright.codegen.with_symbols import with_symbols
from loopwright.runtime.description import ModuleDescription
from loopwright.target import CpuDescription


class ObjectCode(NamedTuple):
    """A module compiled and not loaded: what another process needs to call it."""

    compiled: Compiled
    description: ModuleDescription
    uses_amx: bool
    timings: dict[str, float]


def make_module(module: ir.IRModule, cpu: CpuDescription, entry_name: str | None = None) -> CompiledModule:
    """Compile every function of a lowered module for `cpu` and load the result.

    Code that this machine cannot run is compiled all the same: its source can be read, and a call says what is missing.
    """
    code = make_object(module, cpu, entry_name)
    result = native_module(code.compiled, code.description, code.uses_amx)
    result.timings = {**code.timings, **result.timings}
    return result


def make_object(module: ir.IRModule, cpu: CpuDescription, entry_name: str | None = None) -> ObjectCode:
    """Compile every function of a lowered module for `cpu`; nothing is loaded."""
    start = perf_counter()
    module = with_symbols(module)
    description = describe_module(module, cpu, entry_name)
    constants: dict[str, bytes] = {}
    imports = imports_of(module)
    text = link_imports(emit_module(module, cpu, description, constants), imports, cpu)
    emitted = perf_counter()
    effort = Effort.SEARCH if imports else effort_for(module)
    compiled = compile_text(text, cpu, data=constants, effort=effort)
    timings = {
        "emit text": emitted - start,
        **{f"llvm {stage}": seconds for stage, seconds in compiled.timings.items()},
    }
    return ObjectCode(compiled, description, uses_amx(text), timings)
