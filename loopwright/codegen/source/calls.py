"""Calls of intrinsics in C-like sources: a table from operator to the code for it.

Exact functions are the C library's (compilers turn them into instructions), exp and its like are the bodies of
`codegen/math`, written out as functions of the source; what neither has is the C library's in float64: docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from loopwright import ir
from loopwright.codegen.math import C_LIBRARY, has_body
from loopwright.codegen.small_floats import is_small_float
from loopwright.codegen.source.arithmetic import wrapped
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
from loopwright.codegen.source.types import literal, value_type
from loopwright.runtime.dtype import FLOAT64, INT32, DataType
from loopwright.runtime.errors import InternalError, NotBuilt

if TYPE_CHECKING:
    from loopwright.codegen.source.expressions import SourceExpressions

Rule = Callable[["SourceExpressions", ir.Call], Code]
_RULES: Final[dict[str, Rule]] = {}


def emit_intrinsic(emitter: SourceExpressions, node: ir.Call, target: str) -> Code:
    """The value of a call of an intrinsic that has no effect."""
    name = node.op.name.removeprefix("tir.")
    rule = _RULES.get(name)
    if rule is not None:
        return rule(emitter, node)
    if has_body(name, node.dtype) and name != emitter.body_of:
        return emitter.call_body(name, node.args[0].dtype, node.dtype, *emitter.operands(*node.args))
    if name in C_LIBRARY:
        return _call_c_library(emitter, name, node)
    raise NotBuilt(
        f"the intrinsic {node.op.name} on the {target} target", "write it with arithmetic, or call_extern a C function"
    )


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return register


def _name(node: ir.Call) -> str:
    return node.op.name.removeprefix("tir.")


# --- exact functions ----------------------------------------------------------------------------------------------

_EXACT: Final = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "round",
    "nearbyint": "nearbyint",
    "fma": "fma",
    "copysign": "copysign",
    "fmod": "fmod",
}


@_rule(*_EXACT)
def _exact(emitter: SourceExpressions, node: ir.Call) -> Code:
    emitter.helpers.headers.add("math.h")
    ending = "f" if node.dtype.bits == 32 else ""
    return call(_EXACT[_name(node)] + ending, *emitter.operands(*node.args))


@_rule("abs")
def _abs(emitter: SourceExpressions, node: ir.Call) -> Code:
    (value,) = emitter.operands(*node.args)
    dtype = node.dtype
    if dtype.is_float:
        emitter.helpers.headers.add("math.h")
        return call("fabsf" if dtype.bits == 32 else "fabs", value)
    if dtype.is_unsigned:
        return value
    size = call(emitter.helpers.magnitude(dtype), value)
    return size if dtype.bits >= 8 else wrapped(emitter, dtype, size)


@_rule("clz", "popcount")
def _count_bits(emitter: SourceExpressions, node: ir.Call) -> Code:
    (value,) = emitter.operands(*node.args)
    dtype = node.args[0].dtype
    if dtype.bits < 8:
        bits = Code(f"(uint64_t){value.within(UNARY)} & {(1 << dtype.bits) - 1}u", LOOSE, value.depth)
    else:
        bits = converted(f"uint{dtype.bits}_t", value)
    return emitter.cast(call(emitter.helpers.count_bits(_name(node), dtype), bits), INT32, node.dtype)


_BITS: Final = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


@_rule(*_BITS)
def _bitwise(emitter: SourceExpressions, node: ir.Call) -> Code:
    a, b = emitter.operands(*node.args)
    operator = _BITS[_name(node)]
    if a == b:
        return literal(node.dtype, 0) if operator == "^" else a
    if node.dtype.is_bool:
        if operator == "^":
            return infix("!=", Code(a.within(UNARY)), Code(b.within(UNARY)), COMPARISON)
        text = f"{a.within(COMPARISON)} {operator * 2} {b.within(COMPARISON)}"
        return Code(text, LOOSE, nested(a, b))
    code = infix(operator, a, b, LOOSE)
    return code if node.dtype.bits >= 32 else converted(value_type(node.dtype), code)


@_rule("bitwise_not")
def _bitwise_not(emitter: SourceExpressions, node: ir.Call) -> Code:
    (value,) = emitter.operands(*node.args)
    if node.dtype.is_bool:
        return Code(f"!{value.within(PRIMARY)}", UNARY, value.depth)
    source = node.args[0]
    while isinstance(source, ir.Cast):
        source = source.value
    if source.dtype.is_bool:  # compilers take ~ of a truth value for a mistake
        inverted = infix("^", value, literal(node.dtype, -1), LOOSE)
    else:
        inverted = Code(f"~{value.within(PRIMARY)}", UNARY, value.depth + 1, value.typed)
    return inverted if node.dtype.bits >= 32 else wrapped(emitter, node.dtype, inverted)


@_rule("shift_left", "shift_right")
def _shift(emitter: SourceExpressions, node: ir.Call) -> Code:
    """The amount counts modulo the width, as docs/semantics.md says."""
    dtype, by = node.dtype, node.args[1]
    value, amount = emitter.operands(*node.args)
    if isinstance(by, ir.IntImm):
        amount = Code(str(by.value % dtype.bits))
    else:
        amount = Code(f"{amount.within(UNARY)} & {dtype.bits - 1}", LOOSE, amount.depth + 1)
    if _name(node) == "shift_right":
        if not value.typed:
            value = converted(value_type(dtype), value)
        shifted = infix(">>", value, amount, LOOSE)
        return shifted if dtype.bits >= 32 else converted(value_type(dtype), shifted)
    if dtype.bits < 8:
        return wrapped(emitter, dtype, infix("<<", converted("uint32_t", value), amount, LOOSE))
    if dtype.is_unsigned and dtype.bits >= 32:
        return infix("<<", value, amount, LOOSE)
    return call(emitter.helpers.shift_left(dtype), value, amount)


@_rule("q_multiply_shift")
def _multiply_shift(emitter: SourceExpressions, node: ir.Call) -> Code:
    x, y, q, s = node.args
    return _fixed_point(emitter, node, x, y, ir.Max(s, ir.const(0, s.dtype)), q + ir.Max(-s, ir.const(0, s.dtype)))


@_rule("q_multiply_shift_per_axis")
def _multiply_shift_per_axis(emitter: SourceExpressions, node: ir.Call) -> Code:
    x, y, left, right, q, shifts_left, shifts_right = node.args
    none = ir.const(0, left.dtype)
    before = ir.Select(shifts_left.astype("bool"), left, none)
    return _fixed_point(emitter, node, x, y, before, q + ir.Select(shifts_right.astype("bool"), right, none))


def _fixed_point(emitter: SourceExpressions, node: ir.Call, *arguments: ir.Expr) -> Code:
    if node.dtype is not INT32:
        raise NotBuilt(f"{node.op.name} on {node.dtype} in C", "convert its operands to int32")
    given = [emitter.cast(emitter.value(arg), arg.dtype, INT32) for arg in arguments]
    return call(emitter.helpers.multiply_shift(), *given)


@_rule("isnan", "isinf", "isfinite")
def _predicate(emitter: SourceExpressions, node: ir.Call) -> Code:
    (value,) = emitter.operands(*node.args)
    dtype = node.args[0].dtype
    if _name(node) == "isnan":
        return Code(f"{value.within(SUM)} != {value.within(SUM)}", COMPARISON, value.depth + 1)
    emitter.helpers.headers.add("math.h")
    # Every finite number is less than infinity, and NaN is neither less nor equal.
    sign = "==" if _name(node) == "isinf" else "<"
    return infix(sign, call("fabsf" if dtype.bits == 32 else "fabs", value), Code("INFINITY"), COMPARISON)


@_rule("reinterpret")
def _reinterpret(emitter: SourceExpressions, node: ir.Call) -> Code:
    (value,) = emitter.operands(*node.args)
    source, target = node.args[0].dtype, node.dtype
    if "handle" in (source.kind, target.kind):
        return emitter.cast(value, source, target)
    if source.bits < 8 or target.bits < 8:
        return emitter.cast(value, source, target)
    given, result = _bits_type(source), _bits_type(target)
    if given == result:
        return value
    if "float" not in given and "float" not in result and "double" not in given + result:
        return converted(result, value)
    return call(emitter.helpers.reinterpret(given, result), value)


def _bits_type(dtype: DataType) -> str:
    return f"uint{dtype.bits}_t" if is_small_float(dtype) else value_type(dtype)


# --- control ------------------------------------------------------------------------------------------------------


@_rule("if_then_else")
def _if_then_else(emitter: SourceExpressions, node: ir.Call) -> Code:
    return emitter.choose(*node.args)


@_rule("likely")
def _likely(emitter: SourceExpressions, node: ir.Call) -> Code:
    return emitter.value(node.args[0])


@_rule("assume", "prefetch", "start_profile_intrinsic", "end_profile_intrinsic")
def _nothing(emitter: SourceExpressions, node: ir.Call) -> Code:
    return Code("0")  # hints, which portable C has no word for


@_rule("undef")
def _undef(emitter: SourceExpressions, node: ir.Call) -> Code:
    return literal(node.dtype, 0)


@_rule("address_of")
def _address_of(emitter: SourceExpressions, node: ir.Call) -> Code:
    load = node.args[0]
    if not isinstance(load, ir.BufferLoad):
        raise InternalError("address_of needs an element of a flattened buffer", at=node)
    index = load.indices[0]
    element = emitter.element(load.buffer, emitter.index(index.base if isinstance(index, ir.Ramp) else index))
    return Code(f"(void *)&{element}", UNARY, element.depth + 1)


@_rule("tvm_access_ptr")
def _access_ptr(emitter: SourceExpressions, node: ir.Call) -> Code:
    """tvm_access_ptr(type, data, offset, extent, mask): the address `offset` elements of that type behind `data`."""
    kind, data, offset = node.args[:3]
    size = literal(INT32, kind.dtype.nbytes * kind.dtype.lanes)
    behind = infix("*", emitter.index(offset), size, PRODUCT)
    pointer = converted("char *", emitter.value(data))
    return converted("void *", Code(infix("+", pointer, behind, SUM), SUM, 1))


@_rule("isnullptr")
def _isnullptr(emitter: SourceExpressions, node: ir.Call) -> Code:
    emitter.helpers.headers.add("stddef.h")
    (value,) = emitter.operands(*node.args)
    return Code(f"{value.within(SUM)} == NULL", COMPARISON, value.depth + 1)


@_rule("call_packed", "call_cpacked", "tvm_call_packed", "tvm_call_cpacked")
def _call_packed(emitter: SourceExpressions, node: ir.Call) -> Code:
    raise NotBuilt("calling a packed function from generated code", "call_extern a C function instead")


def _call_c_library(emitter: SourceExpressions, name: str, node: ir.Call) -> Code:
    """Through the C library's float64 function."""
    emitter.helpers.headers.add("math.h")
    given = []
    for position, arg in enumerate(node.args):
        wanted = INT32 if name == "ldexp" and position == 1 else FLOAT64
        given.append(emitter.cast(emitter.value(arg), arg.dtype, wanted))
    return emitter.cast(call(name, *given), FLOAT64, node.dtype)
