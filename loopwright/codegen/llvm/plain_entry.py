"""The plain C entry of a compiled function: pointers and numbers in, a status out, nothing of tvm-ffi.

    int32_t loopwright_main(const float *A, float *B, int32_t n);

A C program that knows only the header calls this one. It checks nothing: the caller passes memory of the declared
shapes, and no written array overlaps another. Lengths and strides that a tensor would carry follow the arguments;
a function that returns a number writes it through a last pointer, which may be null. 0 means success.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loopwright import ir
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.codegen.describe_module import c_name, result_dtype, size_variables
from loopwright.codegen.llvm.ffi_values import PAYLOAD, VALUE
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.types import BODY_PREFIX, quoted, register_type
from loopwright.runtime.dtype import FLOAT32, FLOAT64, INT64, DataType

if TYPE_CHECKING:
    from loopwright.codegen.llvm.emitter import FunctionEmitter


def emit_plain_entry(
    emitter_for: Callable[[FunctionBuilder], FunctionEmitter],
    module: ModuleText,
    function: ir.PrimFunc,
    implicit: Sequence[ir.Var],
    more: Callable[[FunctionBuilder], Sequence[str]] = lambda b: (),
) -> None:
    """Define the C entry of `function`; of two functions whose C names are the same, the first has it.

    `more` writes what the body gets beside arguments and sizes.
    """
    symbol = c_name(function.name)
    if module.is_defined(symbol):
        return
    module.mark_defined(symbol)
    given: dict[ir.Var, tuple[DataType, str]] = {}
    parameters: list[str] = []
    for var in (*_pointers_and_numbers(function), *size_variables(function)):
        if var in given:
            continue
        passed = passed_type(var.dtype)
        name = f"%p{len(parameters)}"
        given[var] = (passed, name)
        parameters.append(f"{_c_parameter(passed)} {name}")
    result = result_dtype(function)
    if result is not None:
        parameters.append("ptr %out")
    b = FunctionBuilder(module, f"i32 @{quoted(symbol)}({', '.join(parameters)})", "nounwind ")
    emitter = emitter_for(b)
    for var in (*given, *implicit):
        passed, name = given.get(var, (var.dtype, "0"))  # 0: an offset, for a pointer points to the first element
        emitter.values[var] = emitter.cast(name, passed, var.dtype)
    for buffer in function.argument_buffers():
        emitter.values[buffer.data] = _before_offset(emitter, buffer)
    arguments = [
        f"{register_type(var.dtype)} {emitter.values[var]}" for var in (*_pointers_and_numbers(function), *implicit)
    ]
    arguments += more(b)
    slot = b.alloca(VALUE, 1, 8)  # where the body writes its result
    # Kept apart from the body, which the checked entry calls too: one copy of it is enough.
    body = quoted(BODY_PREFIX + function.name)
    status = b.value(f"call i32 @{body}({', '.join([*arguments, f'ptr {slot}'])}) noinline")
    if result is not None:
        _give_result(b, status, slot, result)
    b.ret(f"i32 {status}")
    module.define(b.text())


def passed_type(dtype: DataType) -> DataType:
    """The type as which a number comes from C, which has no floats of 8 and 16 bits."""
    return FLOAT32 if dtype.is_float and dtype.bits < 32 else dtype


def _pointers_and_numbers(function: ir.PrimFunc) -> list[ir.Var]:
    return [param if param not in function.buffer_map else function.buffer_map[param].data for param in function.params]


def _before_offset(emitter: FunctionEmitter, buffer: ir.Buffer) -> str:
    """The address that the body adds the declared offset to."""
    pointer = emitter.values[buffer.data]
    if isinstance(buffer.elem_offset, ir.IntImm) and buffer.elem_offset.value == 0:
        return pointer
    elements = emitter.index(in_64_bits(buffer.elem_offset))
    if elements == "0":
        return pointer
    distance = emitter.b.value(f"mul i64 {elements}, {-buffer.dtype.nbytes * buffer.dtype.lanes}")
    return emitter.b.value(f"getelementptr i8, ptr {pointer}, i64 {distance}")


def _c_parameter(dtype: DataType) -> str:
    text = register_type(dtype)
    if dtype.kind not in ("int", "uint", "bool") or dtype.bits >= 32:
        return text
    return f"{text} {'signext' if dtype.kind == 'int' else 'zeroext'}"


def _give_result(b: FunctionBuilder, status: str, slot: str, result: DataType) -> None:
    fine = b.value(f"icmp eq i32 {status}, 0")
    asked = b.value("icmp ne ptr %out, null")
    give, after = b.label("give"), b.label("after")
    b.branch(b.value(f"and i1 {fine}, {asked}"), give, after)
    b.start(give)
    text = register_type(FLOAT64 if result.is_float else INT64)
    where = b.value(f"getelementptr inbounds i8, ptr {slot}, i64 {PAYLOAD}")
    b.do(f"store {text} {b.value(f'load {text}, ptr {where}')}, ptr %out")
    b.jump(after)
    b.start(after)
