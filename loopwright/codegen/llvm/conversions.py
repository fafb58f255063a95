"""Casts between data types, by the rules of docs/semantics.md.

Floats become integers by saturation (NaN gives 0), anything becomes bool by comparing with zero, narrowing rounds to
nearest even. bfloat16 and float8, and float16 where the target has no conversion instruction, go through integer
operations on their bits, written as IR in `codegen/math`.
"""

from __future__ import annotations

from loopwright.codegen.llvm.types import mangled, register_type, travels_as_bits, zero
from loopwright.codegen.llvm.value_emitter import ValueEmitter
from loopwright.codegen.small_floats import is_small_float
from loopwright.runtime.dtype import FLOAT32, DataType


def emit_cast(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """`value` of type `source` converted to `target`; both have the same lane count."""
    if source is target:
        return value
    if target.is_bool:
        return _to_bool(emitter, value, source)
    soft_source, soft_target = emitter.is_soft_float(source), emitter.is_soft_float(target)
    single = FLOAT32.with_lanes(source.lanes)
    # Small floats meet other types by way of float32, also where an instruction would round only once.
    if single not in (source, target) and (is_small_float(source) or is_small_float(target)):
        return emit_cast(emitter, emit_cast(emitter, value, source, single), single, target)
    if soft_source:
        return emit_cast(emitter, _decoded(emitter, value, source), single, target)
    if soft_target:
        encoded = emitter.call_body("encode", single, target, emit_cast(emitter, value, source, single))
        return _bits_as(emitter, encoded, target)
    if source.is_float and target.is_float:
        operation = "fpext" if target.bits > source.bits else "fptrunc"
    elif source.is_float:
        return _saturate(emitter, value, source, target)
    elif target.is_float:
        operation = "uitofp" if source.is_unsigned else "sitofp"
    elif source.kind == "handle":
        operation = "ptrtoint"
    elif target.kind == "handle":
        operation = "inttoptr"
    elif target.bits == source.bits:
        return value
    elif target.bits < source.bits:
        operation = "trunc"
    else:
        operation = "zext" if source.is_unsigned else "sext"
    return emitter.b.value(f"{operation} {register_type(source)} {value} to {register_type(target)}")


def _decoded(emitter: ValueEmitter, value: str, source: DataType) -> str:
    """A value of a type without instructions, as float32."""
    bits = DataType(f"uint{source.bits}").with_lanes(source.lanes)
    if not travels_as_bits(source):
        value = emitter.b.value(f"bitcast {register_type(source)} {value} to {register_type(bits)}")
    return emitter.call_body("decode", source, FLOAT32.with_lanes(source.lanes), value)


def _bits_as(emitter: ValueEmitter, value: str, target: DataType) -> str:
    """Bits in the register form of `target`: float16 has one of its own."""
    if travels_as_bits(target):
        return value
    bits = DataType(f"uint{target.bits}").with_lanes(target.lanes)
    return emitter.b.value(f"bitcast {register_type(bits)} {value} to {register_type(target)}")


def _to_bool(emitter: ValueEmitter, value: str, source: DataType) -> str:
    if emitter.is_soft_float(source):
        value, source = _decoded(emitter, value, source), FLOAT32.with_lanes(source.lanes)
    compare = "fcmp une" if source.is_float else "icmp ne"
    return emitter.b.value(f"{compare} {register_type(source)} {value}, {zero(source)}")


def _saturate(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    if target.bits < 32 and emitter.target.units.has_saturating_convert and source.bits <= 32:
        return _saturate_twice(emitter, value, source, target)
    if target.bits < 32:
        return _saturate_narrow(emitter, value, source, target)
    name = f"llvm.fpto{'u' if target.is_unsigned else 's'}i.sat.{mangled(target)}.{mangled(source)}"
    to, given = register_type(target), register_type(source)
    emitter.module.declare(name, f"{to} @{name}({given})")
    return emitter.b.value(f"call {to} @{name}({given} {value})")


def _saturate_twice(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """By way of a 32-bit integer, which saturates as the instruction does; narrowing to a half saturates as well."""
    kind = "uint" if target.is_unsigned else "int"
    wide = DataType(f"{kind}32").with_lanes(target.lanes)
    value = _saturate(emitter, value, source, wide)
    while wide.bits > target.bits:
        half = DataType(f"{kind}{wide.bits // 2}").with_lanes(target.lanes)
        value, wide = _halved(emitter, value, wide, half), half
    return value


def _halved(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """An integer narrowed with saturation."""
    sign = "u" if target.is_unsigned else "s"
    bounds = [(f"llvm.{sign}min", target.max_value())]
    if not target.is_unsigned:
        bounds.append(("llvm.smax", target.min_value()))
    for name, bound in bounds:
        limit = f"splat (i{source.bits} {bound})" if target.lanes > 1 else str(bound)
        value = emitter.intrinsic(f"{name}.{mangled(source)}", source, [(source, value), (source, limit)])
    return emitter.b.value(f"trunc {register_type(source)} {value} to {register_type(target)}")


def _saturate_narrow(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """Clamped while a float, whose type holds both ends exactly, and then by way of int32.

    The function that saturates is done lane by lane on machines whose conversion does not: sixteen times as slow, also
    where LLVM makes the lanes.
    """
    given, element = register_type(source), register_type(source.element)
    zero_text = zero(source)
    is_number = emitter.b.value(f"fcmp ord {given} {value}, {zero_text}")
    lanes = f"<{source.lanes} x i1>" if source.lanes > 1 else "i1"
    value = emitter.b.value(f"select {lanes} {is_number}, {given} {value}, {given} {zero_text}")
    for compare, bound in (("olt", target.max_value()), ("ogt", target.min_value())):
        limit = f"splat ({element} {float(bound):.1f})" if source.lanes > 1 else f"{float(bound):.1f}"
        inside = emitter.b.value(f"fcmp {compare} {given} {value}, {limit}")
        value = emitter.b.value(f"select {lanes} {inside}, {given} {value}, {given} {limit}")
    wide = register_type(DataType("int32").with_lanes(target.lanes))
    value = emitter.b.value(f"fptosi {given} {value} to {wide}")
    return emitter.b.value(f"trunc {wide} {value} to {register_type(target)}")
