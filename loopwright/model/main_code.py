"""main_code: the main function of a model as an object: checked entry, plain C entry, and the calls of its kernels."""

from __future__ import annotations

from dataclasses import replace

from loopwright import ir
from loopwright.codegen.describe_module import describe_module, implicit_variables
from loopwright.codegen.llvm.abi import EntryEmitter, entry_signature
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.emit_module import ModuleEmitter, emit_description
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.engine import Compiled, compile_text
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.plain_entry import emit_plain_entry
from loopwright.codegen.llvm.types import quoted, register_type
from loopwright.ir.deep import deep
from loopwright.model.main_function import MainFunction
from loopwright.runtime.description import ModuleDescription
from loopwright.target import CpuDescription


def describe_main(
    main: MainFunction, cpu: CpuDescription, proved: bool = True, packed: tuple[str, ...] = ()
) -> ModuleDescription:
    """What a library with this function says about itself."""
    module = ir.IRModule({main.func.name: main.func})
    said = describe_module(module, cpu, main.func.name)
    buffers = main.func.argument_buffers()
    function = said.functions[0]
    arguments = tuple(
        replace(argument, is_written=buffer.data in main.written)
        for argument, buffer in zip(function.arguments, buffers, strict=True)
    )
    only = (replace(function, arguments=arguments),)
    return replace(said, functions=only, proved=proved, packed=packed, is_model=True)


def compile_main(main: MainFunction, cpu: CpuDescription, description: ModuleDescription) -> Compiled:
    """The object of the main function; what it calls is elsewhere."""
    # Calls one after another: there is nothing in it for the optimizer to find.
    return compile_text(_main_text(main, cpu, description), cpu, effort=Effort.TIDY)


@deep
def _main_text(main: MainFunction, cpu: CpuDescription, description: ModuleDescription) -> str:
    text = ModuleText(cpu.triple)
    _MainModule(text, cpu).emit_main(main)
    emit_description(text, cpu, description)
    return text.text()


class _CallingEmitter(FunctionEmitter):
    """Calls of other functions are calls of kernels, which other objects hold."""

    def visit_Call(self, call: ir.Call) -> str:
        if not isinstance(call.op, ir.GlobalVar):
            return super().visit_Call(call)
        symbol = quoted(call.op.name)
        types = [register_type(arg.dtype) for arg in call.args]
        given = [f"{text} {self.value(arg)}" for text, arg in zip(types, call.args, strict=True)]
        # Hidden: it is in the same library, so the call needs no table.
        self.module.declare(call.op.name, f"hidden i32 @{symbol}({', '.join([*types, 'ptr'])})")
        self.pass_on(self.b.value(f"call i32 @{symbol}({', '.join([*given, 'ptr null'])})"))
        return "0"


class _MainModule(ModuleEmitter):
    def _emitter(self, builder: FunctionBuilder) -> FunctionEmitter:
        return _CallingEmitter(self.module, builder, self.cpu, self.math_body)

    def emit_main(self, main: MainFunction) -> None:
        """The body and both entries."""
        implicit = implicit_variables(main.func)
        self._emit_body(main.func, implicit)
        emit_plain_entry(self._emitter, self.module, main.func, implicit)
        if self.cpu.pointer_bits != 64:
            return
        builder = FunctionBuilder(self.module, entry_signature(main.func.name), "nounwind noinline optnone ")
        EntryEmitter(self._emitter(builder), main.func, set(main.written)).emit(implicit)
        self.module.define(builder.text())
