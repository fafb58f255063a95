"""emit_module: a lowered IRModule as LLVM text: for each function its body, its checked entry and its plain C entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loopwright import ir
from loopwright.analysis.constant_memory import writable_constants
from loopwright.analysis.written_memory import written_pointers
from loopwright.codegen.bounded_recursion import INNER, bounded_recursion
from loopwright.codegen.describe_module import implicit_variables
from loopwright.codegen.llvm.abi import EntryEmitter, entry_signature
from loopwright.codegen.llvm.constant_data import is_elf
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.plain_entry import emit_plain_entry
from loopwright.codegen.llvm.types import BODY_PREFIX, MATH_PREFIX, mangled, quoted, register_type, travels_as_bits
from loopwright.codegen.math import body_types, expand
from loopwright.codegen.with_symbols import with_symbols
from loopwright.ir.deep import deep
from loopwright.runtime.description import SECTION, ModuleDescription
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription


@deep
def emit_module(
    module: ir.IRModule,
    cpu: CpuDescription,
    description: ModuleDescription | None = None,
    data: dict[str, bytes] | None = None,
) -> str:
    """The LLVM text of every function of a lowered module, for that CPU; `description` travels with the code.

    With `data`, the contents of large constants are put there instead of into the text, for `compile_text` to place.
    """
    text = ModuleText(cpu.triple, data=data if is_elf(cpu.triple) else None)
    writer = ModuleEmitter(text, cpu)
    functions = bounded_recursion(with_symbols(module))
    text.functions = dict(functions.functions_items())
    for _, function in functions.functions_items():
        writer.emit_function(function)
    if description is not None:
        emit_description(text, cpu, description)
    return text.text()


def emit_description(text: ModuleText, cpu: CpuDescription, description: ModuleDescription) -> None:
    """Put the description into its section, where `load_module` looks for it."""
    is_apple = "apple" in cpu.triple or "darwin" in cpu.triple
    text.section("__DATA,__loopwright" if is_apple else SECTION, description.to_json() + "\n")


class ModuleEmitter:
    """Writes functions, and the bodies of mathematical functions they call, into one module."""

    def __init__(self, module: ModuleText, cpu: CpuDescription) -> None:
        self.module, self.cpu = module, cpu

    def emit_function(self, function: ir.PrimFunc) -> None:
        implicit = implicit_variables(function)
        written = written_pointers(function)
        self._emit_body(function, implicit)
        if INNER in function.attrs:
            return
        emit_plain_entry(self._emitter, self.module, function, implicit)
        if self.cpu.pointer_bits != 64:
            return  # the layout of tvm-ffi's values and tensors is that of 64-bit machines
        # Checks run once a call and are most of the text: optimizing them doubles the compile time and saves 15 ns.
        builder = FunctionBuilder(self.module, entry_signature(function.name), "nounwind noinline optnone ")
        EntryEmitter(self._emitter(builder), function, written).emit(implicit)
        self.module.define(builder.text())

    def _emitter(self, builder: FunctionBuilder) -> FunctionEmitter:
        return FunctionEmitter(self.module, builder, self.cpu, self.math_body)

    def emit_kernel(self, function: ir.PrimFunc, symbol: str, overlapping: Collection[int] = ()) -> None:
        """The body alone, for the code of another object of the same library, which passes what it has checked.

        Parameters at the positions `overlapping` may be the same memory as one another. Equal code has an equal symbol,
        so of two that meet in one program either will do.
        """
        head = f"weak_odr hidden i32 @{quoted(symbol)}"
        self._emit_body(function, implicit_variables(function), head, overlapping)

    def _emit_body(
        self,
        function: ir.PrimFunc,
        implicit: list[ir.Var],
        head: str = "",
        overlapping: Collection[int] = (),
        more: Sequence[str] = (),
    ) -> None:
        head = head or f"internal i32 @{quoted(BODY_PREFIX + function.name)}"
        no_alias = " noalias" if function.attrs.get("tir.noalias", True) else ""
        values, parameters, apart, shared = {}, [], set(), set()
        for position, param in enumerate(function.params):
            buffer = function.buffer_map.get(param)
            var = param if buffer is None else buffer.data
            attributes = no_alias if buffer is not None and position not in overlapping else ""
            if attributes:
                apart.add(var)
            elif no_alias and buffer is not None:
                shared.add(var)
            values[var] = f"%p{position}"
            parameters.append(f"{register_type(var.dtype)}{attributes} %p{position}")
        for position, var in enumerate(implicit):
            values[var] = f"%s{position}"
            parameters.append(f"{register_type(var.dtype)} %s{position}")
        builder = FunctionBuilder(self.module, f"{head}({', '.join([*parameters, *more, 'ptr %result'])})", "nounwind ")
        emitter = self._emitter(builder)
        emitter.values = values
        emitter.apart, emitter.overlapping = apart, shared
        emitter.writable = writable_constants(function, self.module.functions)
        emitter.run(function.body)
        if builder.open:
            builder.ret("i32 0")
        self.module.define(builder.text())

    def math_body(self, name: str, source: DataType, target: DataType, count: int) -> str:
        """The symbol of a mathematical function for these types; its body is written on first use."""
        symbol = f"{MATH_PREFIX}{name}.{_suffix(source)}.{_suffix(target)}"
        if self.module.is_defined(symbol):
            return symbol
        self.module.mark_defined(symbol)
        given, built = body_types(name, source, target)
        params = [ir.Var(f"x{position}", given) for position in range(count)]
        body = expand(name, params, source, target, self.cpu)
        types = ", ".join(f"{register_type(given)} %x{position}" for position in range(count))
        result = register_type(built)
        builder = FunctionBuilder(
            self.module, f"internal {result} @{symbol}({types})", "alwaysinline nounwind memory(none) "
        )
        emitter = self._emitter(builder)
        emitter.values = {param: f"%x{position}" for position, param in enumerate(params)}
        emitter.body_of = name
        builder.ret(f"{result} {emitter.value(body)}")
        self.module.define(builder.text())
        return symbol


def _suffix(dtype: DataType) -> str:
    return mangled(dtype) if not travels_as_bits(dtype) else str(dtype).replace("_", "")
