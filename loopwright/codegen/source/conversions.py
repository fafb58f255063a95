"""Casts between data types in C, by the rules of docs/semantics.md.

Floats become integers by saturation, anything becomes bool by comparing with zero. Small floats meet other types by way
of float32: their conversions are the bodies of `codegen/math`, which work on bits.
"""

from __future__ import annotations

from loopwright.codegen.small_floats import is_small_float
from loopwright.codegen.source.code import COMPARISON, SUM, Code, call, converted
from loopwright.codegen.source.types import literal, value_type
from loopwright.codegen.source.value_writer import ValueWriter
from loopwright.runtime.dtype import FLOAT32, DataType


def emit_cast(emitter: ValueWriter, value: Code, source: DataType, target: DataType) -> Code:
    """`value` of type `source` converted to `target`."""
    if source is target:
        return value
    if is_small_float(source):
        decoded = emitter.call_body("decode", source, FLOAT32, value)
        return emit_cast(emitter, decoded, FLOAT32, target)
    if target.is_bool:
        return _to_bool(value, source)
    if is_small_float(target):
        single = emit_cast(emitter, value, source, FLOAT32)
        return emitter.call_body("encode", FLOAT32, target, single)
    if source.is_float and target.is_int:
        return call(emitter.helpers.saturating(source, target), value)
    if source.kind == "handle":
        return emit_cast(emitter, converted("uintptr_t", value), DataType("uint64"), target)
    if target.kind == "handle":
        return converted("void *", converted("uintptr_t", value))
    if target.bits < 8 and not target.is_float and (source.bits > target.bits or source.kind != target.kind):
        return call(emitter.helpers.wrap(target), converted("int64_t", value))
    return converted(value_type(target), value)


def _to_bool(value: Code, source: DataType) -> Code:
    if source.kind == "handle":
        return Code(f"{value.within(SUM)} != NULL", COMPARISON, value.depth + 1)
    return Code(f"{value.within(SUM)} != {literal(source, 0)}", COMPARISON, value.depth + 1)
