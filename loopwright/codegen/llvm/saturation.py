"""Floats to integers: towards zero, what is out of range to the nearest end of it, NaN to 0.

LLVM has functions that do so, but makes them lane by lane unless the machine has an instruction for the very pair of
types. A machine that saturates does it for integers as wide as the float, and again at each halving; unsigned integers
that are narrower are the upper bits of one that is as wide, of the float times a power of two. On others the float is
brought into range first.
"""

from __future__ import annotations

from loopwright.codegen.llvm.types import float_literal, int_literal, mangled, register_type, splat, zero
from loopwright.codegen.llvm.value_emitter import ValueEmitter
from loopwright.runtime.dtype import DataType

_FRACTION_BITS = {16: 10, 32: 23, 64: 52}


def emit_saturating_cast(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """`value`, floats of the type `source`, as integers of the type `target`."""
    saturates = _machine_saturates(emitter)
    if saturates and source.lanes > 1 and target.is_unsigned and target.bits < source.bits and source.bits >= 32:
        return _upper_bits(emitter, value, source, target)
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


def _upper_bits(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """The upper bits of an integer as wide as the float, which the float times a power of two fills where it saturates.

    The product is exact, or infinite; AArch64 converts with the factor in one instruction (FCVTZU, fixed-point), and
    takes upper halves of lanes with UZP2, which is twice as fast as a narrowing that saturates.
    """
    given, lanes = register_type(source), source.lanes
    factor = splat(source, float_literal(source.element, float(1 << (source.bits - target.bits))))
    scaled = emitter.b.value(f"fmul {given} {value}, {factor}")
    bits = source.bits
    value = emit_saturating_cast(emitter, scaled, source, DataType(f"uint{bits}").with_lanes(lanes))
    while bits > target.bits:
        half = bits // 2
        halves = emitter.b.value(f"bitcast <{lanes} x i{bits}> {value} to <{2 * lanes} x i{half}>")
        upper = ", ".join(f"i32 {2 * lane + 1}" for lane in range(lanes))  # the low half of a lane comes first
        value = emitter.b.value(
            f"shufflevector <{2 * lanes} x i{half}> {halves}, <{2 * lanes} x i{half}> poison, <{lanes} x i32> <{upper}>"
        )
        bits = half
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
