"""Calls that name what a CPU has too: halves of vectors, typed pointers; and hints that a CPU need not follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.types import register_type
from loopwright.runtime.dtype import INT64


def _vector_part(emitter: ControlFlow, call: ir.Call) -> str:
    """The first or second half of a vector's lanes."""
    source, lanes = call.args[0].dtype, call.dtype.lanes
    value = emitter.value(call.args[0])
    first = 0 if call.op.name == "tir.vectorlow" else lanes
    if lanes == 1:
        return emitter.lane(value, source, first)
    return _shuffle(emitter, source, value, "poison", list(range(first, first + lanes)))


def _vectorcombine(emitter: ControlFlow, call: ir.Call) -> str:
    """Two vectors, one after the other."""
    low, high = [emitter.value(arg) for arg in call.args]
    source = call.args[0].dtype
    if source.lanes == 1:
        return emitter.vector([low, high], call.dtype)
    return _shuffle(emitter, source, low, high, list(range(2 * source.lanes)))


def _shuffle(emitter: ControlFlow, source: ir.DataType, a: str, b: str, lanes: list[int]) -> str:
    text = register_type(source)
    mask = ", ".join([f"i32 {lane}" for lane in lanes])
    return emitter.b.value(f"shufflevector {text} {a}, {text} {b}, <{len(lanes)} x i32> <{mask}>")


def _access_ptr(emitter: ControlFlow, call: ir.Call) -> str:
    """tvm_access_ptr(type, data, offset, extent, mask): the address `offset` elements of that type behind `data`."""
    kind, data, offset = call.args[:3]
    elements = emitter.cast(emitter.value(offset), offset.dtype, INT64)
    size = emitter.b.value(f"mul i64 {elements}, {kind.dtype.nbytes * kind.dtype.lanes}")
    return emitter.b.value(f"getelementptr i8, ptr {emitter.value(data)}, i64 {size}")


def _static_handle(emitter: ControlFlow, call: ir.Call) -> str:
    """The address of a pointer that lives as long as the module; each place in the code has its own, null at first."""
    return emitter.module.variable(emitter.module.unique("lw.handle"), "ptr null", 8)


def _nothing(emitter: ControlFlow, call: ir.Call) -> str:
    return "0"


MACHINE_RULES: Final[dict[str, Callable[[ControlFlow, ir.Call], str]]] = {
    "vectorlow": _vector_part,
    "vectorhigh": _vector_part,
    "vectorcombine": _vectorcombine,
    "tvm_access_ptr": _access_ptr,
    "tvm_static_handle": _static_handle,
    "start_profile_intrinsic": _nothing,
    "end_profile_intrinsic": _nothing,
}
