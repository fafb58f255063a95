"""Arithmetic, comparison, logic, choice, conversion, and names for parts of an expression."""

from __future__ import annotations

from loopwright.ir.expr.base import Expr, OperandMismatch
from loopwright.ir.expr.literals import FloatImm, IntImm, Var, as_expr, const
from loopwright.ir.node import base_node, derived, node
from loopwright.runtime.dtype import BOOL, DataType


def _mismatch(name: str, a: Expr, b: Expr) -> DataType:
    raise OperandMismatch(name, a, b)


@base_node
class BinaryExpr(Expr):
    """Two operands of one dtype."""

    __slots__ = ()

    a: Expr
    b: Expr


@node
class Add(BinaryExpr):
    """a + b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Add', a, b)")


@node
class Sub(BinaryExpr):
    """a - b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Sub', a, b)")


@node
class Mul(BinaryExpr):
    """a * b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Mul', a, b)")


@node
class Div(BinaryExpr):
    """a / b: rounded for floats, towards zero for integers."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Div', a, b)")


@node
class Mod(BinaryExpr):
    """The remainder of Div: has the sign of `a`."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Mod', a, b)")


@node
class FloorDiv(BinaryExpr):
    """a // b, rounded down."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('FloorDiv', a, b)")


@node
class FloorMod(BinaryExpr):
    """a % b, the remainder of FloorDiv: has the sign of `b`."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('FloorMod', a, b)")


@node
class Min(BinaryExpr):
    """The lesser operand; NaN when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Min', a, b)")


@node
class Max(BinaryExpr):
    """The greater operand; NaN when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Max', a, b)")


# --- comparison and logic -----------------------------------------------------------------------------------------


def _compared(name: str, a: Expr, b: Expr) -> DataType:
    if a.dtype is not b.dtype:
        raise OperandMismatch(name, a, b)
    return BOOL.with_lanes(a.dtype.lanes)


@base_node
class CompareExpr(BinaryExpr):
    """A comparison: operands of one dtype, result bool."""

    __slots__ = ()

    def asobject(self) -> Expr:
        """The comparison itself: `a == b` is an expression at once."""
        return self


@node
class EQ(CompareExpr):
    """a == b; false when either is NaN. As a Python truth value: whether both are the same object or equal literals."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('EQ', a, b)")

    def __bool__(self) -> bool:
        if self.a is self.b:
            return True
        return isinstance(self.a, (IntImm, FloatImm)) and type(self.a) is type(self.b) and self.a.value == self.b.value


@node
class NE(CompareExpr):
    """a != b; true when either is NaN. As a Python truth value: the opposite of EQ's."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('NE', a, b)")

    def __bool__(self) -> bool:
        return not EQ(self.a, self.b)


@node
class LT(CompareExpr):
    """a < b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('LT', a, b)")


@node
class LE(CompareExpr):
    """a <= b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('LE', a, b)")


@node
class GT(CompareExpr):
    """a > b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('GT', a, b)")


@node
class GE(CompareExpr):
    """a >= b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('GE', a, b)")


def _logical(name: str, *operands: Expr) -> DataType:
    for operand in operands:
        if not operand.dtype.is_bool or operand.dtype is not operands[0].dtype:
            raise OperandMismatch(name, operands[0], operand if operand is not operands[0] else const(True))
    return operands[0].dtype


@node
class And(BinaryExpr):
    """a and b; `b` is evaluated only when `a` holds."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_logical('And', a, b)")


@node
class Or(BinaryExpr):
    """a or b; `b` is evaluated only when `a` does not hold."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_logical('Or', a, b)")


@node
class Not(Expr):
    """not a."""

    a: Expr
    dtype: DataType = derived("_logical('Not', a)")


@node
class Select(Expr):
    """`true_value` where `condition` holds, else `false_value`; both are evaluated."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    dtype: DataType = derived(
        "true_value.dtype if true_value.dtype is false_value.dtype else _mismatch('Select', true_value, false_value)"
    )


@node
class Cast(Expr):
    """`value` converted to `dtype`, lane by lane."""

    dtype: DataType
    value: Expr


@node(binds="var")
class Let(Expr):
    """`body` with `var` standing for `value`."""

    var: Var
    value: Expr
    body: Expr
    dtype: DataType = derived("body.dtype")

    def __init__(self, var: Var, value: object, body: object, span: object = None) -> None:
        result = as_expr(body)
        set_field = object.__setattr__
        set_field(self, "var", var)
        set_field(self, "value", bound_value("Let", var, value))
        set_field(self, "body", result)
        set_field(self, "dtype", result.dtype)
        set_field(self, "span", span)


def bound_value(name: str, var: Var, value: object) -> Expr:
    """`value` as an expression of the type of `var`: a number takes it, anything else must have it."""
    if type(value) in (int, float) and var.dtype.kind not in ("handle", "bool"):
        return const(value, var.dtype)
    result = as_expr(value)
    if result.dtype is not var.dtype:
        raise OperandMismatch(name, var, result)
    return result
