"""Operators of two operands that are repeated to one shape: arithmetic, bits, logic, comparisons; `where` has three.

    topi.add(te.placeholder((4, 1)), te.placeholder((3,)))        a tensor of shape (4, 3)
    topi.maximum(x, 0)                                            numbers and expressions are repeated too

Shapes are matched from the right, as numpy does (`te/whole_tensors.py` holds the rule). Two expressions give an
expression. Each operator is one stage, tagged `broadcast` and named `T_<operator>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, overload

import numpy as np

from loopwright import te
from loopwright.ir import Expr, ExprLike, IntImm, as_expr, const, intrinsics, operators
from loopwright.te.assumed_sizes import assume_repeated
from loopwright.te.tags import default_tag
from loopwright.te.tensor import dim_text, shape_text
from loopwright.te.whole_tensors import broadcast, repeated
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.sizes import differ
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.testing.broadcast import (
    arithmetic_samples,
    broadcast_to_samples,
    comparison_samples,
    divide_python,
    division_samples,
    float_floor_divide_python,
    integer_samples,
    logic_samples,
    mod_python,
    power_python,
    power_samples,
    shift_samples,
    where_samples,
)
from loopwright.topi.types import Operand, Shape


class Binary(Protocol):
    """A tensor on either side gives a tensor; two numbers give an expression."""

    @overload
    def __call__(self, lhs: te.Tensor, rhs: Operand) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Operand, rhs: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Expr | float, rhs: Expr | float) -> Expr: ...


Element = Callable[[ExprLike, ExprLike], Expr]  # of two elements


def _row(name: str, function: Element, reference: Reference, samples: Callable[[], Iterable[Sample]]) -> Binary:
    """The operator of a function of two elements."""

    @overload
    def compute(lhs: te.Tensor, rhs: Operand) -> te.Tensor: ...
    @overload
    def compute(lhs: Operand, rhs: te.Tensor) -> te.Tensor: ...
    @overload
    def compute(lhs: Expr | float, rhs: Expr | float) -> Expr: ...
    def compute(lhs: Operand, rhs: Operand) -> te.Tensor | Expr:
        if isinstance(lhs, te.Tensor) or isinstance(rhs, te.Tensor):
            # A number takes the type of the tensor, so it stays one until it meets an element.
            left, right = [_is_tensor_or_expression(operand) for operand in (lhs, rhs)]
            if left and right:
                return broadcast(f"T_{name}", function, lhs, rhs)
            if left:
                return broadcast(f"T_{name}", lambda element: function(element, rhs), lhs)
            return broadcast(f"T_{name}", lambda element: function(lhs, element), rhs)
        return function(lhs, rhs)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{name} of the elements of two tensors (or numbers), repeated to one shape."
    return operator(reference=reference, samples=samples)(compute)


def _is_tensor_or_expression(operand: object) -> bool:
    return not isinstance(operand, (int, float)) or isinstance(operand, bool)


def _power(base: ExprLike, exponent: ExprLike) -> Expr:
    a, b = operators.match_types(base, exponent)
    if a.dtype.is_float:
        return intrinsics.power(a, b)
    # By squaring. Six bits of the exponent are enough: beyond them only 0, 1 and -1 have a power that fits, and it
    # depends on whether the exponent is even.
    bits = intrinsics.select(b < const(64, b.dtype), b, (b & const(1, b.dtype)) + const(62, b.dtype))
    result, square = const(1, a.dtype), a
    for k in range(6):
        is_set = ((bits >> const(k, b.dtype)) & const(1, b.dtype)).equal(1)
        result = result * intrinsics.select(is_set, square, const(1, a.dtype))
        square = square * square
    return result if b.dtype.is_unsigned else intrinsics.select(b < const(0, b.dtype), const(0, a.dtype), result)


def _whole_division(divided: Element, *, rest: bool = False) -> Element:
    """Division that is never undefined: by 0 integers give 0, as in numpy, and the least one divided by -1 wraps.

    A processor stops the program there. A divisor that is a literal asks nothing.
    """

    def divide(one: ExprLike, other: ExprLike) -> Expr:
        a, b = operators.match_types(one, other)
        if a.dtype.is_float or (isinstance(b, IntImm) and b.value != -1):
            return divided(a, b)
        by_zero = b.equal(const(0, b.dtype))
        by_minus_one = b.equal(const(-1, b.dtype)) if not b.dtype.is_unsigned else None
        odd = by_zero if by_minus_one is None else operators.logical_or(by_zero, by_minus_one)
        result = divided(a, intrinsics.select(odd, const(1, b.dtype), b))
        if by_minus_one is not None:
            opposite = const(0, a.dtype) if rest else const(0, a.dtype) - a
            result = intrinsics.select(by_minus_one, opposite, result)
        return intrinsics.select(by_zero, const(0, a.dtype), result)

    return divide


def _logical_xor(a: ExprLike, b: ExprLike) -> Expr:
    return operators.bitwise_xor(operators.logical_and(a), operators.logical_and(b))


def _comparison(sign: str) -> Element:
    def compare(a: ExprLike, b: ExprLike) -> Expr:
        x, y = operators.match_types(a, b)
        built: Expr = getattr(x, sign)(y)
        return built

    return compare


add = _row("add", operators.add, np.add, lambda: arithmetic_samples(shapes=9))
subtract = _row("subtract", operators.sub, np.subtract, arithmetic_samples)
multiply = _row("multiply", operators.mul, np.multiply, arithmetic_samples)
maximum = _row("maximum", operators.maximum, np.maximum, arithmetic_samples)
minimum = _row("minimum", operators.minimum, np.minimum, arithmetic_samples)
power = _row("power", _power, power_python, power_samples)

divide = _row("divide", _whole_division(operators.div), divide_python, division_samples)
trunc_divide = _row(
    "trunc_divide", _whole_division(operators.div), divide_python, lambda: division_samples(floats=False)
)
floor_divide = _row("floor_divide", _whole_division(operators.floordiv), float_floor_divide_python, division_samples)
mod = _row("mod", _whole_division(operators.truncmod, rest=True), mod_python, division_samples)
trunc_mod = _row("trunc_mod", _whole_division(operators.truncmod, rest=True), mod_python, division_samples)
floor_mod = _row(
    "floor_mod", _whole_division(operators.floormod, rest=True), np.mod, lambda: division_samples(exact=True)
)

left_shift = _row("left_shift", operators.shift_left, np.left_shift, shift_samples)
right_shift = _row("right_shift", operators.shift_right, np.right_shift, shift_samples)
bitwise_and = _row("bitwise_and", operators.bitwise_and, np.bitwise_and, integer_samples)
bitwise_or = _row("bitwise_or", operators.bitwise_or, np.bitwise_or, integer_samples)
bitwise_xor = _row("bitwise_xor", operators.bitwise_xor, np.bitwise_xor, integer_samples)

logical_and = _row("logical_and", operators.logical_and, np.logical_and, logic_samples)
logical_or = _row("logical_or", operators.logical_or, np.logical_or, logic_samples)
logical_xor = _row("logical_xor", _logical_xor, np.logical_xor, logic_samples)

greater = _row("greater", _comparison("__gt__"), np.greater, comparison_samples)
greater_equal = _row("greater_equal", _comparison("__ge__"), np.greater_equal, comparison_samples)
less = _row("less", _comparison("__lt__"), np.less, comparison_samples)
less_equal = _row("less_equal", _comparison("__le__"), np.less_equal, comparison_samples)
equal = _row("equal", _comparison("equal"), np.equal, comparison_samples)
not_equal = _row(
    "not_equal", lambda a, b: operators.logical_not(_comparison("equal")(a, b)), np.not_equal, comparison_samples
)


@operator(reference=np.broadcast_to, samples=broadcast_to_samples)
def broadcast_to(data: te.Tensor, shape: Shape) -> te.Tensor:
    """`data` repeated to `shape`, along its dimensions of 1 and along new ones in front."""
    wanted = [as_expr(size) for size in shape]
    if len(wanted) < data.ndim:
        problem = f"{data.name} has shape {shape_text(data.shape)}, which has more dimensions than {shape_text(wanted)}"
        raise InvalidShapeError("broadcast_to", problem, "give at least as many dimensions as the tensor has")
    skipped = len(wanted) - data.ndim
    for own, size in zip(data.shape, wanted[skipped:], strict=True):
        if differ(own, size) and differ(own, 1):
            problem = (
                f"{data.name} has shape {shape_text(data.shape)}: {dim_text(own)} is not repeated to {dim_text(size)}"
            )
            raise InvalidShapeError("broadcast_to", problem, "only a dimension of 1 is repeated")
        assume_repeated(own, size)

    def cell(*indices: Expr) -> Expr:
        read: Expr = data(*map(repeated, indices[skipped:], data.shape, wanted[skipped:]))
        return read

    result: te.Tensor = te.compute(wanted, cell, name="T_broadcast_to", tag=default_tag(tag.BROADCAST))
    return result


@operator(reference=lambda condition, x, y: np.where(condition != 0, x, y), samples=where_samples)
def where(condition: te.Tensor, x: Operand, y: Operand) -> te.Tensor:
    """`x` where `condition` is not 0, else `y`; all three are repeated to one shape, and both sides are computed."""
    kinds = [operand.dtype for operand in (x, y) if hasattr(operand, "dtype")]
    if len(kinds) == 2 and kinds[0] is not kinds[1]:
        raise UnsuitableType("where", f"x has elements of type {kinds[0]}, y of type {kinds[1]}", "cast one of them")
    kind = kinds[0] if kinds else None
    sides = [const(side, kind) if kind is not None and isinstance(side, (int, float)) else side for side in (x, y)]

    def choose(chosen: Expr, one: Expr, other: Expr) -> Expr:
        holds = chosen if chosen.dtype.is_bool else operators.logical_not(chosen.equal(const(0, chosen.dtype)))
        return intrinsics.select(holds, one, other)

    return broadcast("T_where", choose, condition, *sides)
