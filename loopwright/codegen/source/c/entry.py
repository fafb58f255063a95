"""The checked entries of C functions: what Python calls, in LLVM text, with the checks and messages of native code.

The entry unpacks and checks the caller's values as `codegen/llvm/abi.py` writes it, then calls the C function instead
of a body in LLVM, and turns the code it returns into the error it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright import ir
from loopwright.analysis.written_memory import written_pointers
from loopwright.codegen.describe_module import implicit_variables, kernels_of, size_variables
from loopwright.codegen.llvm.abi import EntryEmitter, entry_signature
from loopwright.codegen.llvm.constant_data import is_elf
from loopwright.codegen.llvm.emit_module import ModuleEmitter, emit_description
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.ffi_values import RESULT_TOO_LARGE, store_result
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.raising import emit_raise
from loopwright.codegen.llvm.types import quoted, register_type
from loopwright.codegen.source.c.emit_c import CSource
from loopwright.codegen.source.c.function import result_type
from loopwright.codegen.with_symbols import with_symbols
from loopwright.ir.annotations import LAUNCH_PARAMS
from loopwright.ir.deep import deep
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.dtype import FLOAT32, DataType
from loopwright.target import CpuDescription

_HINTS: Final = {"WorkspaceExhausted": "\x1f\x1ffree memory, or tile the program"}


@deep
def emit_entries(
    module: ir.IRModule, source: CSource, cpu: CpuDescription, description: ModuleDescription | None = None
) -> str:
    """LLVM text with an entry for every function of `module`, calling those of `source`."""
    text = ModuleText(cpu.triple)
    bodies = ModuleEmitter(text, cpu).math_body  # numbers become small floats by them
    text.functions = dict(with_symbols(module).functions_items())
    kernels = kernels_of(module)
    for function in text.functions.values():
        if LAUNCH_PARAMS in function.attrs:
            continue  # which no caller sees
        builder = FunctionBuilder(text, entry_signature(function.name), "nounwind noinline optnone ")
        emitter = FunctionEmitter(text, builder, cpu, bodies)
        _CEntry(emitter, function, written_pointers(function, kernels), source).emit(implicit_variables(function))
        text.define(builder.text())
    if description is not None:
        emit_description(text, cpu, description)
    return text.text()


class _CEntry(EntryEmitter):
    def __init__(self, emitter: FunctionEmitter, function: ir.PrimFunc, written: set[ir.Var], source: CSource) -> None:
        super().__init__(emitter, function, written)
        self.symbol = source.symbols[function.name]
        self.errors: Mapping[int, tuple[str, str]] = source.errors

    def _call_body(self, implicit: Sequence[ir.Var]) -> None:
        arguments = []
        for param in self.function.params:
            buffer = self.function.buffer_map.get(param)
            arguments.append(self._argument(param if buffer is None else buffer.data))
        arguments += [self._argument(var) for var in size_variables(self.function)]
        result, slot = result_type(self.function), ""
        if result is not None:
            slot = self.b.alloca("i64", 1, 8)
            arguments.append(f"ptr {slot}")
        self.b.do("store i64 0, ptr %result")  # the value None, unless the function returns another
        types = ", ".join(argument.rpartition(" ")[0] for argument in arguments)
        # Protected: offered by the library, but what it calls itself is its own, whatever else the process has loaded.
        # Libraries that are not ELF call their own functions in any case.
        protected = "protected " if is_elf(self.emitter.target.triple) else ""
        self.module.declare(self.symbol, f"{protected}i32 @{quoted(self.symbol)}({types})")
        status = self.b.value(f"call i32 @{quoted(self.symbol)}({', '.join(arguments)})")
        self._raise_if(status)
        if result is not None:
            self._take_result(result, slot)
        self.b.ret("i32 0")

    def _argument(self, var: ir.Var) -> str:
        """A value as C takes it: narrow integers extended, small floats as their bits."""
        dtype, value = var.dtype, self.emitter.values[var]
        if dtype.is_float and dtype.bits < 32:
            bits = DataType(f"uint{dtype.bits}")
            if register_type(dtype) != register_type(bits):
                value = self.b.value(f"bitcast {register_type(dtype)} {value} to {register_type(bits)}")
            dtype = bits
        elif dtype.is_int and dtype.bits < 8:
            wide = DataType("uint8" if dtype.is_unsigned else "int8")
            dtype, value = wide, self.emitter.cast(value, dtype, wide)
        extension = ""
        if dtype.is_bool or (dtype.is_int and dtype.bits < 32):
            extension = "zeroext " if dtype.is_unsigned else "signext "
        return f"{register_type(dtype)} {extension}{value}"

    def _raise_if(self, status: str) -> None:
        """Report the error that a code other than 0 stands for."""
        b = self.b
        bad, good = b.label("bad"), b.label("good")
        b.branch(b.value(f"icmp eq i32 {status}, 0"), good, bad)
        b.start(bad)
        for code, (kind, message) in self.errors.items():
            this, other = b.label("this"), b.label("other")
            b.branch(b.value(f"icmp eq i32 {status}, {code}"), this, other)
            b.start(this)
            emit_raise(self.module, b, kind, self.module.string(message + _HINTS.get(kind, "")))
            b.ret("i32 -1")
            b.start(other)
        emit_raise(self.module, b, "InternalError", self.module.string("the C function returned an unknown code"))
        b.ret("i32 -1")
        b.start(good)

    def _take_result(self, dtype: DataType, slot: str) -> None:
        """The result as a tvm-ffi value: its kind, then the number, widened."""
        memory = DataType(f"uint{max(8, dtype.bits)}") if dtype.is_bool or dtype.bits < 8 else dtype
        value = self.b.value(f"load {register_type(memory)}, ptr {slot}")
        if dtype.is_float and dtype.bits < 32:
            value, dtype = self.emitter.cast(value, dtype, FLOAT32), FLOAT32
        elif memory is not dtype:
            value = self.emitter.cast(value, memory, dtype)
        if dtype == "uint64":
            self._check(self.b.value(f"icmp sge i64 {value}, 0"), "ResultOutOfRange", RESULT_TOO_LARGE)
        store_result(self.emitter, dtype, value)
