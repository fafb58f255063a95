"""Expr: what every expression is and can do, and what can be wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loopwright.ir.expr.numpy_calls import answer_numpy
from loopwright.ir.node import Node, base_node
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, with_article


class OperandMismatch(LoopwrightError, TypeError):
    """The operands of one expression have different data types.

    Constructors such as `tir.Add(a, b)` take operands of one type. Python's operators (`a + b`) convert first; to
    convert by hand, use `a.astype("float32")`.

    For example:

        from loopwright import tir

        tir.Add(tir.IntImm("int32", 1), tir.FloatImm("float32", 1.5))
    """

    code = "LW0501"

    def __init__(self, name: str, a: Expr, b: Expr) -> None:
        super().__init__(
            f"{name}: operands have different types, {a.dtype} and {b.dtype}",
            hint=f"convert one with .astype({str(a.dtype)!r}), or use the operator, which converts by itself",
            fields={"node": name, "left": a.dtype, "right": b.dtype},
        )


class ImmediateOutOfRange(LoopwrightError, ValueError):
    """A literal that its data type cannot hold.

    For example:

        from loopwright import tir

        tir.IntImm("int8", 300)
    """

    code = "LW0502"

    def __init__(self, dtype: DataType, value: object) -> None:
        is_fraction = isinstance(value, float) and not value.is_integer()
        holds = "integers" if is_fraction else f"{dtype.min_value()} to {dtype.max_value()}"
        super().__init__(
            f"literal {value} does not fit {dtype}, which holds {holds}",
            hint="round it first: int(value)" if is_fraction else "use a wider type, or wrap the value first",
            fields={"dtype": dtype, "value": value},
        )


class NotAnExpression(LoopwrightError, TypeError):
    """A Python value where an expression is needed, and no expression can be made from it.

    For example:

        from loopwright import te

        te.var("n") + [1]
    """

    code = "LW0503"

    def __init__(self, value: object) -> None:
        super().__init__(
            f"cannot make an expression from {type(value).__name__} {value!r}",
            hint="use a number, a variable, an iteration variable, or an expression made from them",
        )


class NotALiteral(LoopwrightError, TypeError):
    """A literal was to be made from something that is not a number.

    For example:

        from loopwright import tir

        tir.const("one", "int32")
    """

    code = "LW0512"

    def __init__(self, dtype: DataType, value: object) -> None:
        super().__init__(
            f"cannot make {with_article(str(dtype))} literal from {type(value).__name__} {value!r}",
            hint="give a number; an expression is converted with .astype",
        )


class NoTruthValue(LoopwrightError, ValueError):
    """A symbolic expression was used where Python needs True or False.

    For example:

        from loopwright import te

        n = te.var("n")
        largest = n if n > 4 else 4  # te.max(n, 4) is an expression
    """

    code = "LW0504"

    def __init__(self, value: Expr) -> None:
        super().__init__(
            lambda: f"the expression {value!r} has no truth value: it is known only when the program runs",
            hint="use tir.all/tir.any instead of and/or, tir.if_then_else instead of if, te.max/te.min instead of "
            "max/min, or Analyzer().can_prove(...) to ask whether it always holds",
        )


class ManyNumbers(TypeError):
    """An operand is many numbers, as a tensor is: its own operators know what to do with one beside it."""


# operators.py fills these tables; it needs the node classes below, and the node classes need its operators.
binary_operators: Final[dict[str, Callable[[Any, Any], Expr]]] = {}
unary_operators: Final[dict[str, Callable[[Any], Expr]]] = {}


@base_node
class Expr(Node):
    """A value with a `dtype`."""

    __slots__ = ("dtype",)

    dtype: DataType

    def astype(self, dtype: str | DataType) -> Expr:
        """This value converted to `dtype`; itself when it has that type already."""
        return binary_operators["astype"](self, DataType(dtype))

    def equal(self, other: object) -> Expr:
        """The comparison `self == other` as an expression."""
        return binary_operators["=="](self, other)

    def __add__(self, other: object) -> Expr:
        try:
            return binary_operators["+"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __radd__(self, other: object) -> Expr:
        return binary_operators["+"](other, self)

    def __sub__(self, other: object) -> Expr:
        try:
            return binary_operators["-"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __rsub__(self, other: object) -> Expr:
        return binary_operators["-"](other, self)

    def __mul__(self, other: object) -> Expr:
        try:
            return binary_operators["*"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __rmul__(self, other: object) -> Expr:
        return binary_operators["*"](other, self)

    def __truediv__(self, other: object) -> Expr:
        try:
            return binary_operators["/"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __rtruediv__(self, other: object) -> Expr:
        return binary_operators["/"](other, self)

    def __floordiv__(self, other: object) -> Expr:
        try:
            return binary_operators["//"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __rfloordiv__(self, other: object) -> Expr:
        return binary_operators["//"](other, self)

    def __mod__(self, other: object) -> Expr:
        try:
            return binary_operators["%"](self, other)
        except ManyNumbers:
            return NotImplemented

    def __rmod__(self, other: object) -> Expr:
        return binary_operators["%"](other, self)

    def __pow__(self, other: object) -> Expr:
        return binary_operators["**"](self, other)

    def __rpow__(self, other: object) -> Expr:
        return binary_operators["**"](other, self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return unary_operators["abs"](self)

    def __lshift__(self, other: object) -> Expr:
        return binary_operators["<<"](self, other)

    def __rlshift__(self, other: object) -> Expr:
        return binary_operators["<<"](other, self)

    def __rshift__(self, other: object) -> Expr:
        return binary_operators[">>"](self, other)

    def __rrshift__(self, other: object) -> Expr:
        return binary_operators[">>"](other, self)

    def __and__(self, other: object) -> Expr:
        return binary_operators["&"](self, other)

    def __rand__(self, other: object) -> Expr:
        return binary_operators["&"](other, self)

    def __or__(self, other: object) -> Expr:
        return binary_operators["|"](self, other)

    def __ror__(self, other: object) -> Expr:
        return binary_operators["|"](other, self)

    def __xor__(self, other: object) -> Expr:
        return binary_operators["^"](self, other)

    def __rxor__(self, other: object) -> Expr:
        return binary_operators["^"](other, self)

    def __neg__(self) -> Expr:
        return unary_operators["-"](self)

    def __invert__(self) -> Expr:
        return unary_operators["~"](self)

    def __lt__(self, other: object) -> Expr:
        return binary_operators["<"](self, other)

    def __le__(self, other: object) -> Expr:
        return binary_operators["<="](self, other)

    def __gt__(self, other: object) -> Expr:
        return binary_operators[">"](self, other)

    def __ge__(self, other: object) -> Expr:
        return binary_operators[">="](self, other)

    # `a == b` is a comparison in the program, whose truth in Python is identity (see EQ.__bool__): so expressions
    # can be dictionary keys and list members, and hash by identity. What cannot be compared is just different.
    def __eq__(self, other: object) -> Any:
        if not _is_comparable(self, other):
            return NotImplemented
        return binary_operators["=="](self, other)

    def __ne__(self, other: object) -> Any:
        if not _is_comparable(self, other):
            return NotImplemented
        return binary_operators["!="](self, other)

    __hash__ = Node.__hash__

    __array_ufunc__ = answer_numpy

    def __bool__(self) -> bool:
        raise NoTruthValue(self)


def _is_comparable(a: Expr, b: object) -> bool:
    if isinstance(b, Expr):
        mixed = (a.dtype.kind == "handle") != (b.dtype.kind == "handle")
        return not mixed and (a.dtype.lanes == b.dtype.lanes or 1 in (a.dtype.lanes, b.dtype.lanes))
    return a.dtype.kind != "handle" and (isinstance(b, (int, float, np.generic)) or hasattr(b, "as_expr"))
