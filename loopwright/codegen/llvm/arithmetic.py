"""Arithmetic and comparison nodes as LLVM instructions, by the rules of docs/semantics.md."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import copysign
from typing import Final

from loopwright import ir
from loopwright.codegen.expression_facts import division_can_fail
from loopwright.codegen.llvm.types import int_literal, mangled, register_type, splat, zero
from loopwright.codegen.llvm.value_emitter import ValueEmitter
from loopwright.codegen.math import has_body
from loopwright.codegen.math.division import NAMES, WIDTHS
from loopwright.runtime.dtype import INT64, DataType
from loopwright.runtime.errors import InternalError

_SIMPLE: Final[dict[type[ir.Expr], tuple[str, str]]] = {  # integers, floats
    ir.Add: ("add", "fadd"),
    ir.Sub: ("sub", "fsub"),
    ir.Mul: ("mul", "fmul"),
}
_COMPARE: Final[dict[type[ir.Expr], tuple[str, str, str]]] = {  # signed, unsigned, float
    ir.EQ: ("eq", "eq", "oeq"),
    ir.NE: ("ne", "ne", "une"),
    ir.LT: ("slt", "ult", "olt"),
    ir.LE: ("sle", "ule", "ole"),
    ir.GT: ("sgt", "ugt", "ogt"),
    ir.GE: ("sge", "uge", "oge"),
}


def emit_binary(emitter: ValueEmitter, node: ir.BinaryExpr, a: str, b: str) -> str:
    """The value of an arithmetic node, its operands given."""
    dtype, cls = node.dtype, type(node)
    folded = _folded(cls, a, b) if dtype is INT64 else None
    if folded is not None:
        return folded
    if emitter.is_soft_float(dtype):
        raise InternalError(f"arithmetic on {dtype} reached code generation: legalize_low_precision did not run")
    text = register_type(dtype)
    simple = _SIMPLE.get(cls)
    if simple is not None:
        # Indices are 64 bits wide by now; what is narrower under them is data, which may wrap around.
        promise = emitter.no_wrap if dtype.element is INT64 else ""
        operation = simple[1] if dtype.is_float else simple[0] + promise
        return emitter.b.value(f"{operation} {text} {a}, {b}")
    if cls is ir.Min or cls is ir.Max:
        for known, limit, other in ((node.b, b, a), (node.a, a, b)):
            if _is_easy_limit(emitter, cls is ir.Min, known):
                return _limited(emitter, cls is ir.Min, known, limit, other)
        return _extremum(emitter, cls is ir.Min, dtype, a, b)
    if dtype.is_float:
        return _float_division(emitter, node, text, a, b)
    return _integer_division(emitter, node, text, a, b)


_NUMBERS: Final[dict[type[ir.Expr], Callable[[int, int], int]]] = {
    ir.Add: operator.add,
    ir.Sub: operator.sub,
    ir.Mul: operator.mul,
    ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod,
    ir.Min: min,
    ir.Max: max,
}
_TRUTHS: Final[dict[type[ir.Expr], Callable[[int, int], bool]]] = {
    ir.EQ: operator.eq,
    ir.NE: operator.ne,
    ir.LT: operator.lt,
    ir.LE: operator.le,
    ir.GT: operator.gt,
    ir.GE: operator.ge,
}


def _folded(cls: type[ir.Expr], a: str, b: str) -> str | None:
    """The result where both operands are numbers; the other operand where one changes nothing."""
    if not _is_number(a):
        is_neutral = (b == "0" and cls in (ir.Add, ir.Sub)) or (b == "1" and cls in (ir.Mul, ir.FloorDiv))
        return a if is_neutral else None
    if not _is_number(b):
        return b if (a == "0" and cls is ir.Add) or (a == "1" and cls is ir.Mul) else None
    function = _NUMBERS.get(cls)
    if function is None or (b == "0" and cls in (ir.FloorDiv, ir.FloorMod)):
        return None
    result = function(int(a), int(b))
    return str(result) if -(1 << 63) <= result < 1 << 63 else None


def _is_number(text: str) -> bool:
    return text[0] in "-0123456789"


def emit_compare(emitter: ValueEmitter, node: ir.CompareExpr, a: str, b: str) -> str:
    """The truth value of a comparison."""
    dtype = node.a.dtype
    if emitter.is_soft_float(dtype):
        raise InternalError(f"a comparison of {dtype} reached code generation: legalize_low_precision did not run")
    if dtype is INT64 and _is_number(a) and _is_number(b):
        return "true" if _TRUTHS[type(node)](int(a), int(b)) else "false"
    signed, unsigned, ordered = _COMPARE[type(node)]
    if dtype.is_float:
        return emitter.b.value(f"fcmp {ordered} {register_type(dtype)} {a}, {b}")
    predicate = unsigned if dtype.is_unsigned or dtype.kind == "handle" else signed
    return emitter.b.value(f"icmp {predicate} {register_type(dtype)} {a}, {b}")


def is_chosen_extremum(node: ir.Min | ir.Max) -> bool:
    """Whether lanes of integers either take part in the extremum or leave it as it is: min(a, c ? b : greatest)."""
    dtype, choice = node.dtype, node.b
    if dtype.lanes == 1 or dtype.is_float or not isinstance(choice, ir.Select):
        return False
    neutral = dtype.highest if isinstance(node, ir.Min) else dtype.lowest
    other = choice.false_value.value if isinstance(choice.false_value, ir.Broadcast) else choice.false_value
    return isinstance(other, ir.IntImm) and other.value == neutral and choice.condition.dtype.lanes == dtype.lanes


def is_limit(emitter: ValueEmitter, node: ir.Select) -> bool:
    """Whether `x > c ? c : x`, or the same with <, is one instruction of the machine: NaN stays NaN in both."""
    condition = node.condition
    if not emitter.target.units.has_whole_max or not isinstance(condition, (ir.GT, ir.LT)):
        return False
    number = _float_literal(node.true_value)
    is_number = number is not None and number == number and number != 0 and not emitter.is_soft_float(node.dtype)
    return is_number and node.false_value is condition.a and number == _float_literal(condition.b)


def emit_limit(emitter: ValueEmitter, node: ir.Select, value: str, limit: str) -> str:
    """A choice that `is_limit`."""
    return _extremum(emitter, isinstance(node.condition, ir.GT), node.dtype, value, limit)


def _extremum(emitter: ValueEmitter, least: bool, dtype: DataType, a: str, b: str) -> str:
    if dtype.is_float and dtype.lanes > 1 and emitter.target.units.has_plain_max:
        return _extremum_both_ways(emitter, least, dtype, a, b)
    if dtype.is_float:
        name = f"llvm.{'minimum' if least else 'maximum'}.{mangled(dtype)}"  # these propagate NaN
    else:
        name = f"llvm.{'u' if dtype.is_unsigned else 's'}{'min' if least else 'max'}.{mangled(dtype)}"
    return emitter.intrinsic(name, dtype, [(dtype, a), (dtype, b)])


def _extremum_both_ways(emitter: ValueEmitter, least: bool, dtype: DataType, a: str, b: str) -> str:
    """Vectors of minima or maxima, on machines whose instruction gives the second of two zeros, and where one is NaN.

    Asked both ways round, it gives one answer twice, but for zeros of two signs and for NaN, where it gives both
    operands. The bits of both together are then those of a NaN if one is. Only the sign of a maximum is that which both
    have: it is -0 only if both are.
    """
    text, flags = register_type(dtype), register_type(DataType("bool").with_lanes(dtype.lanes))
    size = dtype.element.bits
    bits = register_type(DataType(f"int{size}").with_lanes(dtype.lanes))
    sides = []
    for first, second in ((a, b), (b, a)):
        wins = emitter.b.value(f"fcmp {'olt' if least else 'ogt'} {text} {first}, {second}")
        chosen = emitter.b.value(f"select {flags} {wins}, {text} {first}, {text} {second}")
        sides.append(emitter.b.value(f"bitcast {text} {chosen} to {bits}"))
    either = emitter.b.value(f"or {bits} {sides[0]}, {sides[1]}")
    if not least:
        magnitude = splat(DataType(f"int{size}").with_lanes(dtype.lanes), str(2 ** (size - 1) - 1))
        both = emitter.b.value(f"and {bits} {sides[0]}, {sides[1]}")
        either = emitter.b.value(f"and {bits} {either}, {magnitude}")
        either = emitter.b.value(f"or {bits} {either}, {both}")
    return emitter.b.value(f"bitcast {bits} {either} to {text}")


def _is_easy_limit(emitter: ValueEmitter, least: bool, known: ir.Expr) -> bool:
    """Whether min or max with this constant is one comparison, where the machine has no instruction for it."""
    number = _float_literal(known)
    if number is None or number != number or emitter.target.units.has_whole_max:
        return False
    return not (least and number == 0 and copysign(1.0, number) < 0)  # +0 would have to become -0


def _limited(emitter: ValueEmitter, least: bool, known: ir.Expr, limit: str, other: str) -> str:
    """`other`, but not past a constant. NaN passes every comparison by, as it should."""
    dtype, number = known.dtype, _float_literal(known)
    text, flags = register_type(dtype), register_type(DataType("bool").with_lanes(dtype.lanes))
    past = emitter.b.value(f"fcmp {'ogt' if least else 'olt'} {text} {other}, {limit}")
    kept = emitter.b.value(f"select {flags} {past}, {text} {limit}, {text} {other}")
    if not least and number is not None and number == 0 and copysign(1.0, number) > 0:
        return emitter.b.value(f"fadd {text} {kept}, {limit}")  # -0 + 0 is +0, and everything else stays
    return kept


def _float_division(emitter: ValueEmitter, node: ir.BinaryExpr, text: str, a: str, b: str) -> str:
    quotient = f"fdiv {text} {a}, {b}"
    if isinstance(node, ir.Div):
        return emitter.b.value(quotient)
    if isinstance(node, ir.FloorDiv):
        return emitter.intrinsic(
            f"llvm.floor.{mangled(node.dtype)}", node.dtype, [(node.dtype, emitter.b.value(quotient))]
        )
    remainder = emit_remainder(emitter, node.dtype, a, b)
    if isinstance(node, ir.Mod):
        return remainder
    # floor modulo: a non-zero remainder takes the sign of the divisor
    nought = zero(node.dtype)
    nonzero = emitter.b.value(f"fcmp une {text} {remainder}, {nought}")
    flags = register_type(DataType("bool").with_lanes(node.dtype.lanes))
    below = emitter.b.value(f"fcmp olt {text} {remainder}, {nought}")
    negative = emitter.b.value(f"fcmp olt {text} {b}, {nought}")
    differ = emitter.b.value(f"xor {flags} {below}, {negative}")
    fix = emitter.b.value(f"and {flags} {nonzero}, {differ}")
    shifted = emitter.b.value(f"fadd {text} {remainder}, {b}")
    return emitter.b.value(f"select {flags} {fix}, {text} {shifted}, {text} {remainder}")


def emit_remainder(emitter: ValueEmitter, dtype: DataType, a: str, b: str) -> str:
    """The remainder of the truncated division of floats."""
    if has_body("fmod", dtype) and emitter.body_of != "fmod":
        return emitter.call_body("fmod", dtype, dtype, a, b)
    return emitter.b.value(f"frem {register_type(dtype)} {a}, {b}")  # the C library's, lane by lane


def _integer_division(emitter: ValueEmitter, node: ir.BinaryExpr, text: str, a: str, b: str) -> str:
    """A quotient or remainder that no operands stop: processors trap where there is none, and the process dies.

    By 0 is divided as by 1, and the quotient by -1 is the negated dividend, which wraps around.
    """
    if _is_divided_as_floats(emitter, node):
        return emitter.call_body(NAMES[type(node)], node.dtype, node.dtype, a, b)
    if not division_can_fail(node):
        return _division(emitter, node, text, a, b)
    dtype = node.dtype
    flags, one = register_type(DataType("bool").with_lanes(dtype.lanes)), splat(dtype, int_literal(dtype.element, 1))
    if dtype.is_unsigned:
        traps = emitter.b.value(f"icmp eq {text} {b}, {zero(dtype)}")
    else:  # 0 and -1 at once
        above = emitter.b.value(f"add {text} {b}, {one}")
        traps = emitter.b.value(f"icmp ult {text} {above}, {splat(dtype, '2')}")
    safe = emitter.b.value(f"select {flags} {traps}, {text} {one}, {text} {b}")
    result = _division(emitter, node, text, a, safe)
    if dtype.is_unsigned or isinstance(node, (ir.Mod, ir.FloorMod)):
        return result  # no remainder is left by 1, nor by -1
    negative = emitter.b.value(f"icmp eq {text} {b}, {splat(dtype, '-1')}")
    negated = emitter.b.value(f"sub {text} {zero(dtype)}, {a}")
    return emitter.b.value(f"select {flags} {negative}, {text} {negated}, {text} {result}")


def _division(emitter: ValueEmitter, node: ir.BinaryExpr, text: str, a: str, b: str) -> str:
    cls = type(node)
    if node.dtype.is_unsigned:
        return emitter.b.value(f"{'udiv' if cls in (ir.Div, ir.FloorDiv) else 'urem'} {text} {a}, {b}")
    if cls in (ir.Div, ir.Mod):
        return emitter.b.value(f"{'sdiv' if cls is ir.Div else 'srem'} {text} {a}, {b}")
    return _floor_division(emitter, node, text, a, b)


def _is_divided_as_floats(emitter: ValueEmitter, node: ir.BinaryExpr) -> bool:
    """Whether these are lanes that a vector machine would divide one by one. By constants LLVM multiplies instead.

    Single narrow integers too: LLVM makes vectors of loops over them.
    """
    units, dtype = emitter.target.units, node.dtype
    has_vectors = min(units.float_bits, units.int_bits) >= 128 and units.has_fma
    is_lane = dtype.bits in WIDTHS and (dtype.lanes > 1 or dtype.bits < 32)
    return has_vectors and is_lane and _literal(node.b) is None and emitter.body_of != NAMES[type(node)]


def _floor_division(emitter: ValueEmitter, node: ir.BinaryExpr, text: str, a: str, b: str) -> str:
    divides = isinstance(node, ir.FloorDiv)
    divisor = _literal(node.b)
    # A power of two: the arithmetic shift rounds down already, the mask keeps the remainder non-negative.
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        if divides:
            return emitter.b.value(f"ashr {text} {a}, {splat(node.dtype, str(divisor.bit_length() - 1))}")
        return emitter.b.value(f"and {text} {a}, {splat(node.dtype, str(divisor - 1))}")
    remainder = emitter.b.value(f"srem {text} {a}, {b}")
    flags = register_type(DataType("bool").with_lanes(node.dtype.lanes))
    nonzero = emitter.b.value(f"icmp ne {text} {remainder}, {zero(node.dtype)}")
    sign = emitter.b.value(f"xor {text} {remainder}, {b}")
    differ = emitter.b.value(f"icmp slt {text} {sign}, {zero(node.dtype)}")
    fix = emitter.b.value(f"and {flags} {nonzero}, {differ}")
    if divides:
        quotient = emitter.b.value(f"sdiv {text} {a}, {b}")
        less = emitter.b.value(f"sub {text} {quotient}, {splat(node.dtype, '1')}")
        return emitter.b.value(f"select {flags} {fix}, {text} {less}, {text} {quotient}")
    shifted = emitter.b.value(f"add {text} {remainder}, {b}")
    return emitter.b.value(f"select {flags} {fix}, {text} {shifted}, {text} {remainder}")


def _float_literal(expr: ir.Expr) -> float | None:
    if isinstance(expr, ir.Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, ir.FloatImm) else None


def _literal(expr: ir.Expr) -> int | None:
    if isinstance(expr, ir.Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, ir.IntImm) else None
