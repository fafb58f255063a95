"""Casts between data types, by the rules of docs/semantics.md.

Floats become integers by saturation (NaN gives 0), anything becomes bool by comparing with zero, narrowing rounds to
nearest even. bfloat16 and float8, and float16 where the target has no conversion instruction, go through integer
operations on their bits, written as IR in `codegen/math`.
"""

from __future__ import annotations

from loopwright.codegen.llvm.saturation import emit_saturating_cast
from loopwright.codegen.llvm.types import float_literal, register_type, splat, travels_as_bits, zero
from loopwright.codegen.llvm.value_emitter import ValueEmitter
from loopwright.codegen.math.body import ROUND_FLOAT64, ROUND_FLOAT64_BITS
from loopwright.codegen.small_floats import is_small_float
from loopwright.runtime.dtype import FLOAT32, INT64, DataType


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
        return emit_saturating_cast(emitter, value, source, target)
    elif target.is_float:
        if source.lanes > 1 and source.bits == 8 and target.bits == 64 and emitter.target.units.has_saturating_convert:
            return _bytes_to_float64(emitter, value, source, target)
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


def _bytes_to_float64(emitter: ValueEmitter, value: str, source: DataType, target: DataType) -> str:
    """Bytes added to the last bits of a float with room for them, whose own value is subtracted: no conversion.

    LLVM converts bytes to float64 lane by lane on AArch64, also if they are widened first.
    """
    lanes, byte = source.lanes, register_type(source)
    wide, magic = register_type(INT64.with_lanes(lanes)), ROUND_FLOAT64_BITS
    if source.is_unsigned:  # made signed: it would widen unsigned bytes by table look-ups, which are slower
        value = emitter.b.value(f"xor {byte} {value}, {splat(source, '-128')}")
        magic += 128
    widened = emitter.b.value(f"sext {byte} {value} to {wide}")
    bits = emitter.b.value(f"add {wide} {widened}, {splat(INT64.with_lanes(lanes), str(magic))}")
    text = register_type(target)
    held = emitter.b.value(f"bitcast {wide} {bits} to {text}")
    return emitter.b.value(f"fsub {text} {held}, {splat(target, float_literal(target.element, ROUND_FLOAT64))}")


def _to_bool(emitter: ValueEmitter, value: str, source: DataType) -> str:
    if emitter.is_soft_float(source):
        value, source = _decoded(emitter, value, source), FLOAT32.with_lanes(source.lanes)
    compare = "fcmp une" if source.is_float else "icmp ne"
    return emitter.b.value(f"{compare} {register_type(source)} {value}, {zero(source)}")
