"""Python's operators on expressions: match the operand types, fold constants and identities, build the node.

Type matching: lanes broadcast; float beats integer; the wider float or integer wins; of one width, unsigned wins;
bfloat16 and float8 beat integers. A Python number takes the type of the other operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import copysign
from typing import Any, Final

import numpy as np

from loopwright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    StringImm,
    Sub,
    Var,
    as_expr,
    binary_operators,
    const,
    round_to,
    unary_operators,
)
from loopwright.ir.op import CallEffect, register_op
from loopwright.runtime.dtype import BOOL, FLOAT32, INT32, INT64, DataType
from loopwright.runtime.errors import LoopwrightError


class BadOperand(LoopwrightError, TypeError):
    """An operator was applied to types it is not defined for.

    For example:

        from loopwright import te

        n = te.var("n")
        n / 2  # n // 2 says how to round
    """

    code = "LW0508"

    def __init__(self, sign: str, a: Expr, b: Expr | None, why: str, hint: str) -> None:
        types = f"{a.dtype}" if b is None else f"{a.dtype} and {b.dtype}"
        what = "arithmetic" if not sign else sign if sign.isidentifier() else f"operator {sign}"
        super().__init__(f"{what} is not defined for {types}", why=why, hint=hint)


class NotACondition(LoopwrightError, TypeError):
    """Something that is no truth value stands where a condition is needed: in and, or, not, if_then_else.

    For example:

        from loopwright import te, tir

        n = te.var("n", "float32")
        tir.if_then_else(n, 1, 2)  # n > 0 is a condition
    """

    code = "LW0513"

    def __init__(self, value: Expr) -> None:
        super().__init__(
            lambda: f"the condition {value!r} of type {value.dtype} is neither true nor false",
            hint=lambda: f"compare it with something, as in {value!r} > 0",
        )


class DivisionByZero(LoopwrightError, ZeroDivisionError):
    """A division or remainder by the literal 0.

    For example:

        from loopwright import te

        te.var("n") // 0
    """

    code = "LW0509"

    def __init__(self, sign: str) -> None:
        super().__init__(f"operator {sign}: the divisor is the literal 0", hint="divide by a non-zero value")


def match_types(a: object, b: object) -> tuple[Expr, Expr]:
    """Both operands as expressions of one type."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype:
        return a, b
    left, right = _number_as(a, b), _number_as(b, a)
    if left.dtype.lanes != right.dtype.lanes:
        if left.dtype.lanes == 1:
            left = Broadcast(left, right.dtype.lanes)
        elif right.dtype.lanes == 1:
            right = Broadcast(right, left.dtype.lanes)
        else:
            raise BadOperand("", left, right, "the vectors have different lane counts", "use vectors of equal length")
    if left.dtype is right.dtype:
        return left, right
    common = _common_type(left, right).with_lanes(left.dtype.lanes)
    return cast(left, common), cast(right, common)


def _number_as(value: object, other: object) -> Expr:
    """A Python number takes the type of the other operand, if that type can hold it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        dtype = getattr(other, "dtype", None)
        if isinstance(dtype, DataType) and dtype.kind not in ("bool", "handle", "void"):
            if dtype.is_float or dtype.custom:
                return const(float(value), dtype.element)
            if isinstance(value, int) and dtype.min_value() <= value <= dtype.max_value():
                return const(value, dtype.element)
    return as_expr(value)


def _common_type(a: Expr, b: Expr) -> DataType:
    left, right = a.dtype.element, b.dtype.element
    if left.kind in ("handle", "void") or right.kind in ("handle", "void"):
        if isinstance(a, StringImm) or isinstance(b, StringImm):
            raise BadOperand("", a, b, "one of them is a text", "write numbers without quotes, or convert with int(…)")
        raise BadOperand("", a, b, "pointers take no part in arithmetic", "use address_of or an index instead")
    if left.custom or right.custom:
        if left.custom and right.custom:
            raise BadOperand("", a, b, "they are two types of the user's own", "cast one to the other with .astype")
        return left if left.custom else right
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if left.is_float:
        return left if left.bits >= right.bits else right
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return left if left.is_unsigned and not left.is_bool else right


def cast(value: Expr, dtype: DataType) -> Expr:
    """`value` as `dtype`, folded when it is a literal."""
    if value.dtype is dtype:
        return value
    if dtype.lanes != value.dtype.lanes:
        if value.dtype.lanes != 1:
            raise BadOperand("astype", value, None, f"it cannot become {dtype}", "keep the lane count")
        return Broadcast(cast(value, dtype.element), dtype.lanes)
    if isinstance(value, IntImm) and (dtype.is_int or dtype.is_bool):
        return const(_wrap(value.value, dtype) if dtype.is_int else int(value.value != 0), dtype)
    if isinstance(value, (IntImm, FloatImm)) and dtype.is_float and not value.dtype.custom:
        rounded = _as_float(value, dtype)
        return const(rounded, dtype) if rounded is not None else Cast(dtype, value)
    if isinstance(value, FloatImm) and dtype.is_int and not value.dtype.custom:
        number = value.value
        if np.isfinite(number) and dtype.lowest <= int(number) <= dtype.highest:
            return const(int(number), dtype)
    if isinstance(value, Broadcast):
        return Broadcast(cast(value.value, dtype.element), value.lanes)
    if isinstance(value, StringImm):
        raise BadOperand("astype", value, None, f"a text cannot become {dtype}", "cast numbers")
    return Cast(dtype, value)


def _as_float(literal: IntImm | FloatImm, dtype: DataType) -> float | None:
    """A literal as a float of that type, rounded as the program would; None where that takes more than Python has."""
    number = float(literal.value)
    if isinstance(literal, IntImm) and (int(number) != literal.value or dtype.bits <= 8):
        return None
    if dtype.bits < 32:  # small floats meet other types by way of float32
        number = round_to(FLOAT32, number)
    rounded = round_to(dtype, number)
    return rounded if np.isfinite(rounded) else None


def _wrap(value: int, dtype: DataType) -> int:
    """`value` in two's complement of that width."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if not dtype.is_unsigned and value >> (dtype.bits - 1) else value


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


# Node class → its value on Python integers, and below on numpy floats; what is in neither table is not folded.
_FOLD_INT: Final[dict[type[Expr], Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Div: _truncated_quotient,
    Mod: lambda a, b: a - b * _truncated_quotient(a, b),
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Min: min,
    Max: max,
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}
_FOLD_FLOAT: Final[dict[type[Expr], Callable[[Any, Any], Any]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Div: operator.truediv,
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}


# Node class → the literal that leaves the other operand as it is, on the right and on the left.
_RIGHT_IDENTITY: Final[dict[type[Expr], int]] = {Add: 0, Sub: 0, Mul: 1, FloorDiv: 1, Div: 1}
_LEFT_IDENTITY: Final[dict[type[Expr], int]] = {Add: 0, Mul: 1}
_LITERALS: Final = frozenset({IntImm, FloatImm})
_FEW: Final = 64


def identity(cls: type[Expr], a: Expr, b: Expr) -> Expr | None:
    """What `x + 0`, `x * 1`, `0 * x`, `x // 1`, `x % 1` … are without the operation; None where it is needed.

    Of floats only what is exact: `x * 1`, `x / 1`, `x - 0`.
    """
    if type(b) is IntImm:
        if _RIGHT_IDENTITY.get(cls) == b.value:
            return a
        if b.value == 0 and cls is Mul and _has_no_data(a):
            return b
        if b.value == 1 and (cls is FloorMod or cls is Mod) and _has_no_data(a):
            return const(0, b.dtype)
    elif type(a) is IntImm:
        if _LEFT_IDENTITY.get(cls) == a.value:
            return b
        if a.value == 0 and cls is Mul and _has_no_data(b):
            return a
    elif type(b) is FloatImm and not b.dtype.custom:
        if (b.value == 1 and (cls is Mul or cls is Div)) or (cls is Sub and b.value == 0 and copysign(1, b.value) > 0):
            return a
    elif type(a) is FloatImm and not a.dtype.custom:
        if a.value == 1 and cls is Mul:
            return b
    return None


def _has_no_data(e: Expr) -> bool:
    """Whether `e` is arithmetic on variables: nothing is called or loaded in it, so that it may be left out.

    A long expression counts as one with data: operators must stay quick, and an expression may be thousands deep.
    """
    waiting = [e]
    for _ in range(_FEW):
        part = waiting.pop()
        if isinstance(part, BinaryExpr):
            waiting += (part.a, part.b)
        elif not isinstance(part, (Var, IntImm)):
            return False
        if not waiting:
            return True
    return False


def fold_or_build(cls: type[Any], a: Expr, b: Expr) -> Expr:
    """`cls(a, b)`, or its value when both are literals, or the operand that it leaves as it is."""
    if type(a) is IntImm and type(b) is IntImm:
        if cls in _FOLD_INT and not (b.value == 0 and cls in (Div, Mod, FloorDiv, FloorMod)):
            value = _FOLD_INT[cls](a.value, b.value)
            if isinstance(value, bool):
                return const(value, BOOL)
            # Index arithmetic is exact: where the type has no literal for the value, the sum stays a sum.
            if a.dtype.lowest <= value <= a.dtype.highest or not (a.dtype is INT32 or a.dtype is INT64):
                return const(_wrap(value, a.dtype), a.dtype)
    elif type(a) is FloatImm and type(b) is FloatImm and cls in _FOLD_FLOAT and a.dtype.bits >= 32 and a.dtype.is_float:
        number = a.dtype.numpy().type
        with np.errstate(all="ignore"):
            result = _FOLD_FLOAT[cls](number(a.value), number(b.value))
        return const(bool(result), BOOL) if isinstance(result, (bool, np.bool_)) else const(float(result), a.dtype)
    elif type(a) in _LITERALS or type(b) in _LITERALS:
        same = identity(cls, a, b)
        if same is not None:
            return same
    built: Expr = cls(a, b)
    return built


def _arithmetic(cls: type[Expr], sign: str) -> Callable[[object, object], Expr]:
    divides = cls in (Div, Mod, FloorDiv, FloorMod)

    def build(a: object, b: object) -> Expr:
        a, b = match_types(a, b)
        if a.dtype.is_bool:
            raise BadOperand(
                sign, a, b, "truth values take no part in arithmetic", 'convert with .astype("int32") first'
            )
        if divides and type(b) is IntImm and b.value == 0:
            raise DivisionByZero(sign)
        return fold_or_build(cls, a, b)

    return build


def _comparison(cls: type[Expr]) -> Callable[[object, object], Expr]:
    def build(a: object, b: object) -> Expr:
        return fold_or_build(cls, *match_types(a, b))

    return build


add = _arithmetic(Add, "+")
sub = _arithmetic(Sub, "-")
mul = _arithmetic(Mul, "*")
floordiv = _arithmetic(FloorDiv, "//")
floormod = _arithmetic(FloorMod, "%")
truncdiv = _arithmetic(Div, "truncdiv")
truncmod = _arithmetic(Mod, "truncmod")
minimum = _arithmetic(Min, "min")
maximum = _arithmetic(Max, "max")


def true_divide(a: object, b: object) -> Expr:
    """a / b on floats; the division of two integers must say how it rounds."""
    a, b = match_types(a, b)
    if not (a.dtype.is_float or a.dtype.custom):
        raise BadOperand(
            "/",
            a,
            b,
            "dividing integers rounds, and / does not say which way",
            "use a // b to round down, truncdiv(a, b) to round towards zero, or convert to a float type",
        )
    return fold_or_build(Div, a, b)


def div(a: object, b: object) -> Expr:
    """a / b as C has it: floats are rounded, integers are rounded towards zero."""
    a, b = match_types(a, b)
    return true_divide(a, b) if a.dtype.is_float else truncdiv(a, b)


def negative(a: object) -> Expr:
    """-a. Floats flip their sign (also of zero); integers subtract from zero and wrap."""
    a = as_expr(a)
    if a.dtype.is_bool:
        raise BadOperand("-", a, None, "truth values take no part in arithmetic", 'convert with .astype("int32") first')
    if isinstance(a, FloatImm):
        return const(-a.value, a.dtype)
    return mul(a, const(-1, a.dtype)) if not a.dtype.is_unsigned else sub(const(0, a.dtype), a)


def _bitwise(name: str, sign: str, fold: Callable[[int, int], int]) -> Callable[[object, object], Expr]:
    op = register_op(f"tir.{name}", CallEffect.PURE)
    shifts = name.startswith("shift")

    def build(a: object, b: object) -> Expr:
        a, b = match_types(a, b)
        if a.dtype.is_bool and not shifts:
            return _build_logic({"bitwise_and": And, "bitwise_or": Or, "bitwise_xor": NE}[name], a, b)
        if not a.dtype.is_int:
            raise BadOperand(sign, a, b, "it works on the bits of integers", "convert with .astype first")
        if shifts and isinstance(b, IntImm) and not 0 <= b.value < a.dtype.bits:
            raise BadOperand(
                sign, a, b, f"the shift by {b.value} leaves 0 to {a.dtype.bits - 1}", "shift by fewer bits"
            )
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return const(_wrap(fold(a.value, b.value), a.dtype), a.dtype)
        return Call(a.dtype, op, (a, b))

    return build


bitwise_and = _bitwise("bitwise_and", "&", operator.and_)
bitwise_or = _bitwise("bitwise_or", "|", operator.or_)
bitwise_xor = _bitwise("bitwise_xor", "^", operator.xor)
shift_left = _bitwise("shift_left", "<<", operator.lshift)
shift_right = _bitwise("shift_right", ">>", operator.rshift)
_BITWISE_NOT: Final = register_op("tir.bitwise_not", CallEffect.PURE)


def bitwise_not(a: object) -> Expr:
    """~a: every bit flipped; the opposite of a truth value."""
    a = as_expr(a)
    if a.dtype.is_bool:
        return logical_not(a)
    if not a.dtype.is_int:
        raise BadOperand("~", a, None, "it works on the bits of integers", "convert with .astype first")
    if isinstance(a, IntImm):
        return const(_wrap(~a.value, a.dtype), a.dtype)
    return Call(a.dtype, _BITWISE_NOT, (a,))


def _build_logic(cls: type[Any], a: Expr, b: Expr) -> Expr:
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        holds = {And: a.value and b.value, Or: a.value or b.value, NE: a.value != b.value}[cls]
        return const(bool(holds))
    # A literal on one side decides an And or Or alone, or leaves the other side.
    if cls is not NE:
        for literal, other in ((a, b), (b, a)):
            if isinstance(literal, IntImm):
                return other if bool(literal.value) == (cls is And) else literal
    built: Expr = cls(a, b)
    return built


def _as_condition(value: object) -> Expr:
    condition = as_expr(value)
    if condition.dtype.is_bool:
        return condition
    if condition.dtype.is_int:
        return fold_or_build(NE, condition, cast(const(0), condition.dtype))
    raise NotACondition(condition)


def check_conditions(*values: object) -> None:
    """Refuse expressions that are no truth values, integers among them: a mistyped operand is the likely reason."""
    for value in values:
        if isinstance(value, Expr) and not value.dtype.is_bool:
            raise NotACondition(value)


class NoConditions(LoopwrightError, ValueError):
    """`all` or `any` of no conditions.

    For example:

        from loopwright import tir

        tir.all()
    """

    code = "LW0549"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: give at least one condition", hint=f"write tir.{name}(i < n, j < m)")


def logical_and(*conditions: object) -> Expr:
    """All conditions, left to right; later ones are evaluated only when the earlier hold."""
    if not conditions:
        raise NoConditions("all")
    result = _as_condition(conditions[0])
    for condition in conditions[1:]:
        result = _build_logic(And, result, _as_condition(condition))
    return result


def logical_or(*conditions: object) -> Expr:
    """Any condition, left to right; later ones are evaluated only when the earlier fail."""
    if not conditions:
        raise NoConditions("any")
    result = _as_condition(conditions[0])
    for condition in conditions[1:]:
        result = _build_logic(Or, result, _as_condition(condition))
    return result


def logical_not(condition: object) -> Expr:
    """The opposite of a condition."""
    value = _as_condition(condition)
    return const(not value.value) if isinstance(value, IntImm) else Not(value)


binary_operators.update(
    {
        "+": add,
        "-": sub,
        "*": mul,
        "/": true_divide,
        "//": floordiv,
        "%": floormod,
        "<<": shift_left,
        ">>": shift_right,
        "&": bitwise_and,
        "|": bitwise_or,
        "^": bitwise_xor,
        "==": _comparison(EQ),
        "!=": _comparison(NE),
        "<": _comparison(LT),
        "<=": _comparison(LE),
        ">": _comparison(GT),
        ">=": _comparison(GE),
        "astype": cast,
    }
)
unary_operators.update({"-": negative, "~": bitwise_not})
