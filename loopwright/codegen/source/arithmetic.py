"""Arithmetic and comparison nodes in C, by the rules of docs/semantics.md and without undefined behaviour."""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math import TAME_QUOTIENTS
from loopwright.codegen.small_floats import is_small_float
from loopwright.codegen.source.code import (
    COMPARISON,
    LOOSE,
    PRIMARY,
    PRODUCT,
    SUM,
    UNARY,
    Code,
    call,
    converted,
    infix,
    nested,
)
from loopwright.codegen.source.helpers import QUOTIENT
from loopwright.codegen.source.intervals import Intervals
from loopwright.codegen.source.types import literal, unsigned_type, value_type
from loopwright.codegen.source.value_writer import ValueWriter
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError

_SIMPLE: Final[dict[type[ir.Expr], tuple[str, str, int]]] = {
    ir.Add: ("add", "+", SUM),
    ir.Sub: ("sub", "-", SUM),
    ir.Mul: ("mul", "*", PRODUCT),
}
_COMPARE: Final[dict[type[ir.Expr], str]] = {
    ir.EQ: "==",
    ir.NE: "!=",
    ir.LT: "<",
    ir.LE: "<=",
    ir.GT: ">",
    ir.GE: ">=",
}


def emit_binary(emitter: ValueWriter, node: ir.BinaryExpr, a: Code, b: Code) -> Code:
    """The value of an arithmetic node, its operands given."""
    dtype, cls = node.dtype, type(node)
    if is_small_float(dtype):
        raise InternalError(f"arithmetic on {dtype} reached code generation: legalize_low_precision did not run")
    if dtype.is_bool:
        return _of_bits(node, a, b)
    if cls is ir.Min or cls is ir.Max:
        return call(emitter.helpers.extremum(cls is ir.Min, dtype), a, b)
    if dtype.is_float:
        return _float(emitter, node, a, b)
    if cls in _SIMPLE:
        return _integer(emitter, node, a, b)
    return _division(emitter, node, a, b)


def emit_compare(emitter: ValueWriter, node: ir.CompareExpr, a: Code, b: Code) -> Code:
    """The truth value of a comparison; compilers would call one of a value with itself a mistake.

    So they would one of an unsigned value with zero: x ^ x becomes zero only as text.
    """
    dtype = node.a.dtype
    if is_small_float(dtype):
        raise InternalError(f"a comparison of {dtype} reached code generation: legalize_low_precision did not run")
    if a == b and (dtype.is_int or dtype.is_bool):
        return Code("true" if isinstance(node, (ir.EQ, ir.LE, ir.GE)) else "false")
    zero = literal(dtype, 0) if dtype.is_unsigned else None
    if (b == zero and isinstance(node, (ir.GE, ir.LT))) or (a == zero and isinstance(node, (ir.LE, ir.GT))):
        return Code("true" if isinstance(node, (ir.GE, ir.LE)) else "false")
    return infix(_COMPARE[type(node)], a, b, COMPARISON)


def decided(intervals: Intervals, node: ir.CompareExpr) -> bool | None:
    """The answer, where the intervals of both sides leave only one: compilers would call the question pointless."""
    if not node.a.dtype.is_int:
        return None
    (low_a, high_a), (low_b, high_b) = intervals.of(node.a), intervals.of(node.b)
    cls = type(node)
    if cls in (ir.LT, ir.GE):
        result = True if high_a < low_b else False if low_a >= high_b else None
        return result if result is None or cls is ir.LT else not result
    if cls in (ir.LE, ir.GT):
        result = True if high_a <= low_b else False if low_a > high_b else None
        return result if result is None or cls is ir.LE else not result
    if high_a < low_b or high_b < low_a:
        return cls is ir.NE
    if (low_b == high_b and _lacks_bits(intervals, node.a, low_b)) or (
        low_a == high_a and _lacks_bits(intervals, node.b, low_a)
    ):
        return cls is ir.NE
    return None


def _lacks_bits(intervals: Intervals, expr: ir.Expr, value: int) -> bool:
    """Whether a mask shows that `expr` never has that value: x & 6 is never 1, x | 4 is never 2."""
    bits = expr.dtype.bits
    while isinstance(expr, ir.Cast) and expr.value.dtype.is_int:
        expr = expr.value
        bits = min(bits, expr.dtype.bits)
    if not isinstance(expr, ir.Call) or expr.op.name not in ("tir.bitwise_and", "tir.bitwise_or"):
        return False
    shared = (1 << bits) - 1  # what conversions on the way left in place
    for arg in expr.args:
        low, high = intervals.of(arg)
        if low == high:
            wrong = value & ~low if expr.op.name == "tir.bitwise_and" else low & ~value
            if wrong & shared:
                return True
    return False


def _of_bits(node: ir.BinaryExpr, a: Code, b: Code) -> Code:
    """Arithmetic on truth values: numbers modulo 2."""
    if isinstance(node, (ir.Add, ir.Sub)):
        return infix("!=", Code(a.within(UNARY)), Code(b.within(UNARY)), COMPARISON)
    if isinstance(node, (ir.Mul, ir.Min)):
        return Code(f"{a.within(COMPARISON)} && {b.within(COMPARISON)}", LOOSE, nested(a, b))
    if isinstance(node, ir.Max):
        return Code(f"{a.within(COMPARISON)} || {b.within(COMPARISON)}", LOOSE, nested(a, b))
    # The divisor is 1: by nothing else may be divided.
    return a if isinstance(node, (ir.Div, ir.FloorDiv)) else Code("false")


def _integer(emitter: ValueWriter, node: ir.BinaryExpr, a: Code, b: Code) -> Code:
    operation, sign, level = _SIMPLE[type(node)]
    dtype = node.dtype
    if operation == "sub" and a == b:
        return literal(dtype, 0)
    if dtype.bits >= 32 and not (a.typed or b.typed):
        a = converted(value_type(dtype), a)
    exact = infix(sign, a, b, level)
    if emitter.intervals.fits(node) or (emitter.in_index and dtype.bits == 64) or _wraps_in_c(dtype):
        return exact
    if dtype.bits >= 32:
        return call(emitter.helpers.wrapping(operation, dtype), a, b)
    if operation == "mul" and dtype.is_unsigned:  # 65535 * 65535 is no int
        wide = unsigned_type(dtype)
        exact = infix("*", converted(wide, a), converted(wide, b), PRODUCT)
    return wrapped(emitter, dtype, exact)


def wrapped(emitter: ValueWriter, dtype: DataType, value: Code) -> Code:
    """The low bits of an int as a value of a type narrower than int."""
    return call(emitter.helpers.wrap(dtype), value) if dtype.bits < 8 else converted(value_type(dtype), value)


def _wraps_in_c(dtype: DataType) -> bool:
    """Unsigned types that C does not turn into int before it computes."""
    return dtype.is_unsigned and dtype.bits >= 32


def _division(emitter: ValueWriter, node: ir.BinaryExpr, a: Code, b: Code) -> Code:
    dtype = node.dtype
    divides = isinstance(node, (ir.Div, ir.FloorDiv))
    if dtype.bits >= 32 and not (a.typed or b.typed):
        a = converted(value_type(dtype), a)
    rounds_down = isinstance(node, (ir.FloorDiv, ir.FloorMod)) and not dtype.is_unsigned
    (least, _), (low, high) = emitter.intervals.of(node.a), emitter.intervals.of(node.b)
    can_fail = low <= 0 <= high or (low <= -1 <= high and least == dtype.lowest)
    if rounds_down and (least < 0 or low <= 0):
        return call(emitter.helpers.floor_division(not divides, dtype, can_fail), a, b)
    if can_fail:
        return call(emitter.helpers.division(not divides, dtype), a, b)
    exact = infix("/" if divides else "%", a, b, PRODUCT)
    return exact if dtype.bits >= 32 or emitter.intervals.fits(node) else wrapped(emitter, dtype, exact)


def _float(emitter: ValueWriter, node: ir.BinaryExpr, a: Code, b: Code) -> Code:
    ending = "f" if node.dtype.bits == 32 else ""
    simple = _SIMPLE.get(type(node))
    if simple is not None:
        if isinstance(node, ir.Mul) and isinstance(node.b, ir.FloatImm) and node.b.value == -1.0:
            return Code(f"-{a.within(PRIMARY)}", UNARY, a.depth + 1)
        return infix(simple[1], a, b, simple[2])
    if isinstance(node, ir.Div):
        if (emitter.body_of, str(node.dtype)) in TAME_QUOTIENTS and emitter.helpers.has_instruction(QUOTIENT):
            return call(emitter.helpers.quotient(), a, b)
        return infix("/", a, b, PRODUCT)
    emitter.helpers.headers.add("math.h")
    if isinstance(node, ir.FloorDiv):
        return call(f"floor{ending}", infix("/", a, b, PRODUCT))
    if isinstance(node, ir.Mod):
        return call(f"fmod{ending}", a, b)
    return call(emitter.helpers.floor_mod_float(node.dtype), a, b)
