"""Floats to integers: towards zero, what is out of range to the nearest end of it, NaN to 0.

LLVM has functions that do so, but makes them lane by lane unless the machine has an instruction for the very pair of
types. A machine that saturates does it for integers as wide as the float, and again at each halving; on others the
float is brought into range first.
"""

from __future__ import annotations

from loopwright.codegen.llvm.types import float_literal, int_literal, mangled, register_type, splat, zero
from loopwright.codegen.llvm.value_emitter import ValueEmitter
from loopwright.runtime.dtype import DataType

_FRACTION_BITS = {16: 10, 32: 23, 64: 52}


def emit_saturating_cast(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """`value`, floats of the type `source`, as integers of the type `target`."""
    saturates = _machine_saturates(emitter)
    if saturates and (target.bits < 32 or (source.lanes > 1 and target.bits < source.bits)):
        return _halved_until(emitter, value, source, target)
    if not saturates and (target.bits < 32 or source.lanes > 1):
        return _brought_into_range(emitter, value, source, target)
    name = f"llvm.fpto{'u' if target.is_unsigned else 's'}i.sat.{mangled(target)}.{mangled(source)}"
    to, given = register_type(target), register_type(source)
    emitter.module.declare(name, f"{to} @{name}({given})")
    return emitter.b.value(f"call {to} @{name}({given} {value})")


def _machine_saturates(emitter: ValueEmitter) -> bool:
    return emitter.target.units.has_saturating_convert


def _halved_until(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """By way of an integer as wide as the float, and of halves: narrowing to a half saturates as well."""
    kind = "uint" if target.is_unsigned else "int"
    wide = DataType(f"{kind}{max(source.bits, 32)}").with_lanes(target.lanes)
    value = emit_saturating_cast(emitter, value, source, wide)
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


def _brought_into_range(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """Clamped while a float, which holds the least integer exactly, and the greatest or one that is near it."""
    given, flags = register_type(source), register_type(DataType("bool").with_lanes(source.lanes))
    is_number = emitter.b.value(f"fcmp ord {given} {value}, {zero(source)}")
    number = emitter.b.value(f"select {flags} {is_number}, {given} {value}, {given} {zero(source)}")
    greatest = int(target.max_value())
    digits = greatest.bit_length() - (_FRACTION_BITS[source.bits] + 1)
    held = greatest >> digits << digits if digits > 0 else greatest
    inside = number
    for compare, bound in (("olt", held), ("ogt", int(target.min_value()))):
        limit = splat(source, float_literal(source.element, float(bound)))
        within = emitter.b.value(f"fcmp {compare} {given} {inside}, {limit}")
        inside = emitter.b.value(f"select {flags} {within}, {given} {inside}, {given} {limit}")
    by_way_of = DataType("int32").with_lanes(target.lanes) if target.bits < 32 else target
    wide, to = register_type(by_way_of), register_type(target)
    whole = emitter.b.value(f"fpto{'u' if by_way_of.is_unsigned else 's'}i {given} {inside} to {wide}")
    if wide != to:
        return emitter.b.value(f"trunc {wide} {whole} to {to}")
    if held == greatest:
        return whole
    beyond = emitter.b.value(f"fcmp ogt {given} {number}, {splat(source, float_literal(source.element, float(held)))}")
    most = splat(target, int_literal(target.element, greatest))
    return emitter.b.value(f"select {flags} {beyond}, {to} {most}, {to} {whole}")
