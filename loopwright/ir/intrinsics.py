"""Intrinsics: the functions programs may call, as Python functions that build the call.

The tables below are the list of them; adding one adds a row (and a rule where it is lowered or generated). Those of
machines and of the runtime are in `machine_intrinsics.py`, those behind Python's operators in `operators.py`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Final

from loopwright.ir.buffer import Buffer, BufferLoad
from loopwright.ir.expr import (
    Call,
    Callee,
    Cast,
    Expr,
    FloatImm,
    GlobalVar,
    IntImm,
    Select,
    StringImm,
    as_expr,
    as_exprs,
    binary_operators,
    const,
    unary_operators,
)
from loopwright.ir.op import CallEffect, Op, register_op
from loopwright.ir.operators import (
    BadOperand,
    cast,
    check_conditions,
    floordiv,
    logical_and,
    logical_not,
    logical_or,
    match_types,
    maximum,
    minimum,
)
from loopwright.runtime.dtype import BOOL, DataType
from loopwright.target.datatype import least_value

# One float operand; integers are converted to float32 first.
UNARY_FLOAT: Final = (
    "acos acosh asin asinh atan atanh cos cosh erf exp exp2 exp2_approx exp10 log log2 log10 log1p rsqrt sigmoid sin "
    "sinh sqrt tan tanh"
).split()
# One operand; integers come back unchanged.
ROUNDING: Final = "ceil floor nearbyint round trunc".split()
# Two float operands.
BINARY_FLOAT: Final = "atan2 copysign fmod hypot nextafter pow".split()
PREDICATES: Final = "isnan isinf isfinite".split()

_PURE_OTHERS: Final = (
    "abs fma clz popcount likely if_then_else reinterpret ldexp call_pure_extern call_llvm_pure_intrin large_uint_imm "
    "tvm_thread_invariant in_bounds"
).split()
_OPAQUE: Final = (
    "call_packed tvm_call_packed tvm_call_cpacked call_extern call_llvm_intrin assume prefetch call_tir "
    "tvm_call_trace_packed"
).split()

for _name in (*UNARY_FLOAT, *ROUNDING, *BINARY_FLOAT, *PREDICATES, *_PURE_OTHERS):
    register_op(f"tir.{_name}", CallEffect.PURE)
for _name in _OPAQUE:
    register_op(f"tir.{_name}", CallEffect.OPAQUE)
register_op("tir.address_of", CallEffect.READ_STATE)
register_op("tir.ret", CallEffect.CONTROL_JUMP)

# How many arguments a call has, where that is always the same.
ARGUMENTS: Final[dict[str, int]] = {
    **{f"tir.{name}": 1 for name in (*UNARY_FLOAT, *ROUNDING, *PREDICATES)},
    **{f"tir.{name}": 2 for name in BINARY_FLOAT},
    **{f"tir.{name}": 1 for name in "abs clz popcount likely reinterpret bitwise_not".split()},
    **{f"tir.{name}": 2 for name in "bitwise_and bitwise_or bitwise_xor shift_left shift_right ldexp".split()},
    **{f"tir.{name}": 3 for name in "if_then_else fma".split()},
}

# What they take, whatever type the call says.
OF_INTEGERS: Final = frozenset(
    f"tir.{name}"
    for name in "clz popcount bitwise_not bitwise_and bitwise_or bitwise_xor shift_left shift_right".split()
)
OF_NUMBERS: Final = frozenset(
    f"tir.{name}" for name in (*UNARY_FLOAT, *ROUNDING, *PREDICATES, *BINARY_FLOAT, "abs", "ldexp", "fma")
)


def _named(build: Callable[..., Expr], name: str, doc: str) -> Callable[..., Expr]:
    """`build` under its public name, which is also what Python calls it in its own errors."""
    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    return build


def _number(name: str, value: Expr) -> Expr:
    """`value`, refused when it is a pointer or a text."""
    if value.dtype.kind in ("handle", "void"):
        raise BadOperand(name, value, None, "it takes a number", "give a number, or an element of a buffer or tensor")
    return value


def _unary_float(name: str) -> Callable[[object], Expr]:
    op = Op.get(f"tir.{name}")

    def build(x: object) -> Expr:
        value = _number(name, as_expr(x))
        if not (value.dtype.is_float or value.dtype.custom):
            value = cast(value, DataType("float32").with_lanes(value.dtype.lanes))
        return Call(value.dtype, op, (value,))

    return _named(build, name, f"{name} of a floating-point value, lane by lane.")


def _half_away(x: float) -> float:
    whole = math.trunc(x)
    return math.copysign(math.fabs(whole) + (math.fabs(x - whole) >= 0.5), x)


# Rounding of a literal; infinities, NaN and the sign of zero stay.
_ROUND: Final[dict[str, Callable[[float], float]]] = {
    name: lambda x, rounded=rounded: math.copysign(rounded(x), x) if math.isfinite(x) else x  # type: ignore[misc]
    for name, rounded in {
        "ceil": math.ceil,
        "floor": math.floor,
        "nearbyint": builtins.round,
        "round": _half_away,
        "trunc": math.trunc,
    }.items()
}


def _rounding(name: str) -> Callable[[object], Expr]:
    op = Op.get(f"tir.{name}")
    fold = _ROUND[name]

    def build(x: object) -> Expr:
        value = _number(name, as_expr(x))
        if isinstance(value, FloatImm) and not value.dtype.custom:
            return const(fold(value.value), value.dtype)
        return Call(value.dtype, op, (value,)) if value.dtype.is_float else value

    return _named(build, name, f"{name}, as a value of the same type; integers come back unchanged.")


def _binary_float(name: str) -> Callable[[object, object], Expr]:
    op = Op.get(f"tir.{name}")

    def build(x: object, y: object) -> Expr:
        a, b = match_types(x, y)
        if not (_number(name, a).dtype.is_float or a.dtype.custom):
            common = DataType("float32").with_lanes(a.dtype.lanes)
            a, b = cast(a, common), cast(b, common)
        return Call(a.dtype, op, (a, b))

    return _named(build, name, f"{name} of two floating-point values.")


def _predicate(name: str) -> Callable[[object], Expr]:
    op = Op.get(f"tir.{name}")

    def build(x: object) -> Expr:
        value = _number(name, as_expr(x))
        if not value.dtype.is_float:
            return const(name == "isfinite", BOOL.with_lanes(value.dtype.lanes))
        return Call(BOOL.with_lanes(value.dtype.lanes), op, (value,))

    return _named(build, name, f"{name}: a truth value; integers are always finite.")


acos, acosh, asin, asinh, atan, atanh = map(_unary_float, "acos acosh asin asinh atan atanh".split())
cos, cosh, sin, sinh, tan, tanh = map(_unary_float, "cos cosh sin sinh tan tanh".split())
erf, exp, exp2, exp10, sigmoid = map(_unary_float, "erf exp exp2 exp10 sigmoid".split())
# One instruction of a GPU, within 2 ulp; what is less than the least normal number may be 0.
exp2_approx = _unary_float("exp2_approx")
log, log2, log10, log1p, rsqrt, sqrt = map(_unary_float, "log log2 log10 log1p rsqrt sqrt".split())
ceil, floor, nearbyint, round, trunc = map(_rounding, "ceil floor nearbyint round trunc".split())
atan2, copysign, fmod, hypot, nextafter, power = map(_binary_float, "atan2 copysign fmod hypot nextafter pow".split())
isnan, isinf, isfinite = map(_predicate, "isnan isinf isfinite".split())
pow = power

def all(*conditions: object) -> Expr:
    """All conditions, left to right; later ones are evaluated only when the earlier hold."""
    check_conditions(*conditions)
    return logical_and(*conditions)


def any(*conditions: object) -> Expr:
    """Any condition, left to right; later ones are evaluated only when the earlier fail."""
    check_conditions(*conditions)
    return logical_or(*conditions)


def abs(x: object) -> Expr:
    """|x|; the least signed integer stays itself."""
    value = as_expr(x)
    if isinstance(value, FloatImm):
        return const(value.value if value.value > 0 else 0.0 - value.value, value.dtype)
    if value.dtype.is_unsigned:
        return value
    return Call(value.dtype, Op.get("tir.abs"), (value,))


fabs = abs


def _power_operator(x: object, y: object) -> Expr:
    """x ** y of floating-point values: integers have no exact power of every exponent."""
    a, b = match_types(x, y)
    if not a.dtype.is_float:
        why = "a negative exponent has no integer result"
        raise BadOperand("**", a, b, why, "multiply, shift by <<, or convert to a float type with .astype")
    return power(a, b)


binary_operators["**"], unary_operators["abs"] = _power_operator, abs


def fma(x: object, y: object, z: object) -> Expr:
    """x * y + z, rounded once."""
    a, b, c = as_exprs((x, y, z))
    return Call(a.dtype, Op.get("tir.fma"), (a, b, c))


def if_then_else(cond: object, t: object, f: object) -> Expr:
    """`t` when `cond` holds, else `f`; only the chosen one is evaluated, so it may guard a load."""
    check_conditions(cond)
    condition = logical_and(cond)
    a, b = match_types(t, f)
    if isinstance(condition, IntImm):
        return a if condition.value else b
    return Call(a.dtype, Op.get("tir.if_then_else"), (condition, a, b))


def select(cond: object, t: object, f: object) -> Expr:
    """`t` where `cond` holds, else `f`; both are evaluated."""
    return Select(as_expr(cond), *match_types(t, f))


def likely(cond: object) -> Expr:
    """`cond`, with the hint that it nearly always holds."""
    condition = as_expr(cond)
    return condition if isinstance(condition, IntImm) else Call(condition.dtype, Op.get("tir.likely"), (condition,))


def in_bounds(index: object, extent: object) -> Expr:
    """Whether 0 <= index < extent; lowering asks this of the very number that goes into an address."""
    return Call(BOOL, Op.get("tir.in_bounds"), as_exprs((index, extent)))


def _bits_of(name: str, value: Expr) -> Expr:
    if not value.dtype.is_int:
        raise BadOperand(
            name, value, None, "it counts the bits of integers", "convert with .astype or reinterpret first"
        )
    return value


def clz(x: object) -> Expr:
    """How many leading bits are zero, as int32."""
    value = _bits_of("clz", as_expr(x))
    return Call(DataType("int32").with_lanes(value.dtype.lanes), Op.get("tir.clz"), (value,))


def popcount(x: object) -> Expr:
    """How many bits are set."""
    value = _bits_of("popcount", as_expr(x))
    return Call(value.dtype, Op.get("tir.popcount"), (value,))


def ldexp(x: object, exponent: object) -> Expr:
    """x times two to the integer `exponent`."""
    value = as_expr(x)
    return Call(value.dtype, Op.get("tir.ldexp"), (value, as_expr(exponent)))


def reinterpret(dtype: str | DataType, value: object) -> Expr:
    """The bits of `value` read as `dtype`, which has the same width."""
    source, target = as_expr(value), DataType(dtype)
    if source.dtype.bits * source.dtype.lanes != target.bits * target.lanes:
        raise BadOperand("reinterpret", source, None, f"{target} has another width", "use .astype to convert the value")
    return source if source.dtype is target else Call(target, Op.get("tir.reinterpret"), (source,))


def ceildiv(a: object, b: object) -> Expr:
    """a / b on integers, rounded up."""
    a, b = match_types(a, b)
    return floordiv(a + (b - 1), b)


def min_value(dtype: str | DataType) -> Expr:
    """The least finite value of a type; of a custom one, what the user registered."""
    if DataType(dtype).custom:
        least = least_value(DataType(dtype))
        return least if isinstance(least, Expr) else call_pure_extern(dtype, least[0])
    return const(DataType(dtype).min_value(), dtype)


def max_value(dtype: str | DataType) -> Expr:
    """The greatest finite value of a type."""
    return const(DataType(dtype).max_value(), dtype)


def infinity(dtype: str | DataType) -> Expr:
    """Positive infinity."""
    return const(float("inf"), dtype)


def address_of(load: BufferLoad) -> Expr:
    """A pointer to the element that `load` reads."""
    return Call(DataType("handle"), Op.get("tir.address_of"), (load,))


def ret(value: object) -> Expr:
    """Leave the function with `value`."""
    result = as_expr(value)
    return Call(result.dtype, Op.get("tir.ret"), (result,))


def assume(cond: object) -> Expr:
    """The promise that `cond` holds here."""
    return Call(BOOL, Op.get("tir.assume"), (as_expr(cond),))


def call_intrin(dtype: str | DataType, op: str | Callee, *args: object) -> Expr:
    """A call of the registered operator `op` ("tir.exp" or an Op)."""
    return Call(DataType(dtype), Op.get(op) if isinstance(op, str) else op, as_exprs(args))


def call_extern(dtype: str | DataType, symbol: str, *args: object) -> Expr:
    """A call of the C function `symbol`, which may do anything."""
    return Call(DataType(dtype), Op.get("tir.call_extern"), (StringImm(symbol), *as_exprs(args)))


def call_pure_extern(dtype: str | DataType, symbol: str, *args: object) -> Expr:
    """A call of the C function `symbol`, whose result depends on its arguments alone."""
    return Call(DataType(dtype), Op.get("tir.call_pure_extern"), (StringImm(symbol), *as_exprs(args)))


def call_llvm_intrin(dtype: str | DataType, name: str, *args: object) -> Expr:
    """A call of an LLVM intrinsic such as "llvm.sqrt.f32"."""
    return Call(DataType(dtype), Op.get("tir.call_llvm_intrin"), (StringImm(name), *as_exprs(args)))


def call_llvm_pure_intrin(dtype: str | DataType, name: str, *args: object) -> Expr:
    """A call of an LLVM intrinsic without side effects."""
    return Call(DataType(dtype), Op.get("tir.call_llvm_pure_intrin"), (StringImm(name), *as_exprs(args)))


def call_packed(name: str, *args: object) -> Expr:
    """A call of a registered packed function; buffers are passed as arrays."""
    given = as_exprs([as_array(arg) for arg in args])
    return Call(DataType("int32"), Op.get("tir.call_packed"), (StringImm(name), *given))


def as_array(arg: object) -> object:
    """A buffer as the array structure that packed functions take; anything else as it is."""
    if not isinstance(arg, Buffer):
        return arg
    handle, make_shape = DataType("handle"), Op.get("tir.tvm_stack_make_shape")
    strides: Expr = Call(handle, make_shape, arg.strides) if arg.strides else const(0)
    fields = (arg.data, Call(handle, make_shape, arg.shape), strides, const(arg.ndim), const(0, arg.dtype))
    return Call(handle, Op.get("tir.tvm_stack_make_array"), (*fields, arg.elem_offset))


def trace(args: Sequence[object], trace_action: str = "tvm.default_trace_action") -> Expr:
    """A call, when the program runs, of the packed function `trace_action`, which returns the value to go on with."""
    given = as_exprs(args)
    return Call(given[-1].dtype, Op.get("tir.tvm_call_trace_packed"), (StringImm(trace_action), *given))


def tvm_thread_invariant(cond: object) -> Expr:
    """`cond`, with the promise that all threads agree on it."""
    condition = as_expr(cond)
    return Call(condition.dtype, Op.get("tir.tvm_thread_invariant"), (condition,))


def call_tir(function: GlobalVar, *args: object) -> Expr:
    """A call of a function of the same module."""
    return Call(DataType("void"), function, as_exprs(args))


__all__ = [
    *UNARY_FLOAT,
    *ROUNDING,
    *(name for name in BINARY_FLOAT if name != "pow"),
    *PREDICATES,
    "Cast",
    "abs",
    "address_of",
    "all",
    "any",
    "assume",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "call_tir",
    "ceildiv",
    "clz",
    "fabs",
    "fma",
    "if_then_else",
    "in_bounds",
    "infinity",
    "ldexp",
    "likely",
    "logical_not",
    "max_value",
    "maximum",
    "min_value",
    "minimum",
    "popcount",
    "pow",
    "power",
    "reinterpret",
    "ret",
    "select",
    "trace",
    "tvm_thread_invariant",
]
