"""Variables and literals, and how Python values become expressions.

`const` makes a literal, `as_expr` an expression of anything that stands for one. A vector literal is a `Broadcast`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from loopwright.ir.expr.base import Expr, ImmediateOutOfRange, NotALiteral, NotAnExpression
from loopwright.ir.node import convert_arguments, derived, node
from loopwright.ir.types import PointerType, PrimType, Type, dtype_of_type
from loopwright.runtime.dtype import (
    BOOL,
    FLOAT32,
    FLOAT64,
    HANDLE,  # noqa: F401 (read in the text of `derived`)
    INT32,
    INT64,
    DataType,
)
from loopwright.runtime.errors import LoopwrightError


class HasExpr(Protocol):
    """What stands for one expression: an axis, an element of a tensor or of a buffer."""

    def as_expr(self) -> Expr: ...


# What the operators and `as_expr` make an expression of.
ExprLike: TypeAlias = Expr | int | float | np.generic | HasExpr
# One size, or one index: an expression where it is known only when the program runs.
Dim: TypeAlias = Expr | int


def as_expr(value: object) -> Expr:
    """`value` as an expression: numbers become immediates; objects may offer `as_expr()`."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return const(value)
    if isinstance(value, str):
        return StringImm(value)
    convert = getattr(value, "as_expr", None)
    if convert is not None:
        converted: Expr = convert()
        return converted
    raise NotAnExpression(value)


def as_exprs(values: Iterable[object]) -> tuple[Expr, ...]:
    """Every value as an expression; a tuple of expressions comes back as the same object."""
    if type(values) is tuple:
        for value in values:
            if not isinstance(value, Expr):
                break
        else:
            return values
    return tuple([as_expr(value) for value in values])


# Before any class with fields that are expressions: their constructors take what `as_expr` takes.
convert_arguments(Expr, as_expr, as_exprs)


class NotAName(LoopwrightError, TypeError):
    """The name of a variable is a text.

    For example:

        from loopwright import tir

        tir.Var(1, "int32")
    """

    code = "LW0586"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"Var: the name of a variable is a text, not {type(given).__name__} {given!r}",
            hint='write tir.Var("n", "int32")',
        )


@node
class Var(Expr):
    """A named value, bound once; two variables are the same only when they are one object."""

    name: str
    type_annotation: Type
    dtype: DataType = derived("dtype_of_type(type_annotation)")

    def __init__(self, name: str, dtype: str | DataType | Type = INT32, span: object = None) -> None:
        if not isinstance(name, str):
            raise NotAName(name)
        annotation = dtype if isinstance(dtype, Type) else PrimType(DataType(dtype))
        set_field = object.__setattr__
        set_field(self, "name", name)
        set_field(self, "type_annotation", annotation)
        set_field(self, "dtype", dtype_of_type(annotation))
        set_field(self, "span", span)

    @property
    def name_hint(self) -> str:
        return self.name


class SizeVar(Var):
    """A variable that holds a size: never negative."""

    __slots__ = ()


def pointer(name: str, dtype: str | DataType, scope: str = "global") -> Var:
    """A fresh variable that points to elements of `dtype` in `scope` memory."""
    return Var(name, PointerType(PrimType(DataType(dtype)), scope))


@node
class IntImm(Expr):
    """An integer or truth-value literal; the value fits the type."""

    dtype: DataType
    value: int

    def __init__(self, dtype: str | DataType, value: int, span: object = None) -> None:
        dtype = DataType(dtype)
        try:
            value = int(value)
        except (TypeError, ValueError):
            raise NotALiteral(dtype, value) from None
        if not (dtype.is_int or dtype.is_bool) or dtype.lanes != 1:
            raise LoopwrightError(f"IntImm: {dtype} is not a scalar integer type")
        if not dtype.lowest <= value <= dtype.highest:
            raise ImmediateOutOfRange(dtype, value)
        set_field = object.__setattr__
        set_field(self, "dtype", dtype)
        set_field(self, "value", value)
        set_field(self, "span", span)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@node
class FloatImm(Expr):
    """A floating-point literal, already rounded to the type."""

    dtype: DataType
    value: float

    def __init__(self, dtype: str | DataType, value: float, span: object = None) -> None:
        dtype = DataType(dtype)
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise NotALiteral(dtype, value) from None
        if not (dtype.is_float or dtype.custom) or dtype.lanes != 1:
            raise LoopwrightError(f"FloatImm: {dtype} is not a scalar floating-point type")
        rounded = value if dtype.custom else round_to(dtype, value)  # only the user knows how a custom type rounds
        if math.isfinite(value) and not math.isfinite(rounded):
            raise ImmediateOutOfRange(dtype, value)
        set_field = object.__setattr__
        set_field(self, "dtype", dtype)
        set_field(self, "value", rounded)
        set_field(self, "span", span)

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


def round_to(dtype: DataType, value: float) -> float:
    """`value` rounded to the nearest number of type `dtype`, ties to even."""
    if dtype is FLOAT64:
        return value
    if dtype is FLOAT32:  # the common case, ten times faster than through numpy
        try:
            (rounded,) = _SINGLE.unpack(_SINGLE.pack(value))
        except OverflowError:
            return math.copysign(math.inf, value)
        return float(rounded)
    with np.errstate(over="ignore"):
        return float(dtype.numpy().type(value))


_SINGLE: Final = struct.Struct("f")


@node
class StringImm(Expr):
    """A text literal: names of functions, keys and scopes in calls."""

    value: str
    dtype: DataType = derived("HANDLE")

    def __eq__(self, other: object) -> Any:
        # With a text this is no comparison of the program: scripts ask what an attribute says.
        return self.value == other if isinstance(other, str) else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self.value != other if isinstance(other, str) else super().__ne__(other)

    __hash__ = Expr.__hash__


class BadLanes(LoopwrightError, ValueError):
    """A vector is made of a scalar and has at least one lane.

    For example:

        from loopwright import tir

        tir.Broadcast(tir.Broadcast(1.0, 4), 2)
    """

    code = "LW0550"

    def __init__(self, name: str, value: Expr, lanes: object) -> None:
        super().__init__(
            f"{name}: {lanes!r} lanes of {value.dtype}",
            why="its operands are scalars" if value.dtype.lanes > 1 else "a lane count is a positive integer",
        )


def vector_dtype(name: str, value: Expr, lanes: int) -> DataType:
    """The type of `lanes` values like `value`."""
    if value.dtype.lanes != 1 or not isinstance(lanes, int) or lanes < 1:
        raise BadLanes(name, value, lanes)
    return value.dtype.with_lanes(lanes)


@node
class Broadcast(Expr):
    """`lanes` copies of `value`."""

    value: Expr
    lanes: int
    dtype: DataType = derived("vector_dtype('Broadcast', value, lanes)")


def const(value: Any, dtype: str | DataType | None = None) -> Expr:
    """A literal. Without `dtype`: bool, int32, float32, wider where the value needs it; numpy scalars keep theirs."""
    if type(value) is int:
        known = _SMALL.get((value, dtype))
        if known is not None:
            return known
    if dtype is None:
        dtype = _natural_dtype(value)
    dtype = DataType(dtype)
    element = dtype.element
    if dtype.lanes > 1:
        return Broadcast(const(value, element), dtype.lanes)
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__int__") or hasattr(value, "__float__")):
        raise NotALiteral(element, value)
    if element.is_float or element.custom:
        return FloatImm(element, float(value))
    if isinstance(value, float) and not value.is_integer():
        raise ImmediateOutOfRange(element, value)
    return IntImm(element, int(value))


# Small index literals are most of all literals; they are shared.
_SMALL: Final[dict[tuple[int, str | None], Expr]] = {}
for _value in range(-16, 257):
    _SMALL[_value, INT32] = _SMALL[_value, None] = IntImm(INT32, _value)
    _SMALL[_value, INT64] = IntImm(INT64, _value)


def is_zero(value: Expr) -> bool:
    """Whether the expression is the integer literal 0, of any type."""
    return isinstance(value, IntImm) and value.value == 0


def is_one(value: Expr) -> bool:
    """Whether the expression is the integer literal 1, of any type."""
    return isinstance(value, IntImm) and value.value == 1


def _natural_dtype(value: object) -> DataType:
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, np.generic):
        return DataType(value.dtype)
    if isinstance(value, int):
        return INT32 if -(1 << 31) <= value < 1 << 31 else INT64
    if isinstance(value, float):
        return FLOAT32 if not np.isfinite(value) or abs(value) <= FLOAT32.max_value() else FLOAT64
    raise NotAnExpression(value)
