"""Arithmetic on each element: Add, Sub, Exp, Sin, Mod, BitShift, CumSum …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.shape_values import is_symbolic
from loopwright.relay.expr import Expr

# ONNX's operator → relay's, for those of one tensor that mean the same.
_UNARY: Final = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negative",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
}


def _enter_unary(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: Node, x: Expr) -> Expr:
        return getattr(relay, operator)(x)


for _name, _operator in _UNARY.items():
    _enter_unary(_name, _operator)


def aligned(node: Node, x: Expr, y: Expr) -> Expr:
    """`y` as the old rule of broadcasting places it: beside the axes of `x` from `axis` on. (Before version 7.)"""
    if node.opset >= 7 or not node.attr("broadcast", 0):
        return y
    rank = node.rank(x)
    axis = node.attr("axis", None)
    if axis is None:
        return y
    behind = rank - node.axis(axis, rank) - node.rank(y)
    return relay.expand_dims(y, axis=node.rank(y), num_newaxis=behind) if behind > 0 else y


def _enter_binary(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: Node, x: Expr, y: Expr) -> Expr:
        return getattr(relay, operator)(x, aligned(node, x, y))


for _name, _operator in {"Add": "add", "Sub": "subtract", "Mul": "multiply"}.items():
    _enter_binary(_name, _operator)


@converter("Div")
def div(node: Node, x: Expr, y: Expr) -> Expr:
    """Whole numbers are cut towards zero."""
    return relay.divide(x, aligned(node, x, y))


@converter("Reciprocal")
def reciprocal(node: Node, x: Expr) -> Expr:
    return relay.divide(node.const(1, x), x)


@converter("Round")
def round_(node: Node, x: Expr) -> Expr:
    """To the nearest whole number; one that is as near to two goes to the even one."""
    return relay.rint(x)


@converter("Pow")
def pow_(node: Node, x: Expr, y: Expr) -> Expr:
    """The result has the type of the base."""
    y = aligned(node, x, y)
    base, exponent = node.dtype(x), node.dtype(y)
    if base.is_float and exponent == base:
        return relay.power(x, y)
    if base.is_float and not exponent.is_float:
        return relay.power(x, node.cast(y, base))
    if not base.is_float and exponent == base:
        return _whole_power(node, x, y)
    # Integers raised to floats are floats; float64 has every int32, and an int64 up to 2**53.
    wide = "float64"
    raised = relay.power(node.cast(x, wide), node.cast(y, wide))
    return node.cast(raised, base)


def _whole_power(node: Node, x: Expr, y: Expr) -> Expr:
    """x^y of integers, exact as long as it fits. What negative exponents leave is 0, but for 1 and -1."""
    known = node.known(y)
    if node.dtype(x).is_unsigned or (
        known is not None and not is_symbolic(known) and bool(np.all(known >= 0))
    ):
        return relay.power(x, y)
    zero, one = (relay.const(number, str(node.dtype(x))) for number in (0, 1))
    is_even = relay.equal(relay.bitwise_and(y, one), zero)
    inverse = relay.where(is_even, relay.multiply(x, x), x)
    inverse = relay.where(relay.equal(relay.abs(x), one), inverse, zero)
    return relay.where(relay.less(y, zero), inverse, relay.power(x, relay.maximum(y, zero)))


@converter("Mod")
def mod(node: Node, x: Expr, y: Expr) -> Expr:
    """fmod=1: the sign of the dividend; otherwise that of the divisor."""
    if node.attr("fmod", 0):
        if node.is_float(x):
            # x - trunc(x / y) * y is wrong where x / y is rounded; float64 is exact enough for narrower types.
            return relay.mod(x, y)
        return relay.trunc_mod(x, y)
    return relay.floor_mod(x, y)


def _enter_variadic(name: str, combine: Callable[[Expr, Expr], Expr]) -> None:
    @converter(name)
    def convert(node: Node, first: Expr, *others: Expr) -> Expr:
        total = first
        for other in others:
            total = combine(total, other)
        return total


_enter_variadic("Sum", lambda a, b: relay.add(a, b))


@converter("Max", "Min")
def extreme(node: Node, first: Expr, *others: Expr) -> Expr:
    """The largest (or smallest) of several tensors; NaN where one of them is."""
    combine = relay.maximum if node.op == "Max" else relay.minimum
    total = first
    for other in others:
        total = combine(total, other)
    return total


@converter("Mean")
def mean(node: Node, first: Expr, *others: Expr) -> Expr:
    total = first
    for other in others:
        total = relay.add(total, other)
    return relay.divide(total, node.const(1 + len(others), first)) if others else total


@converter("IsNaN")
def is_nan(node: Node, x: Expr) -> Expr:
    return relay.isnan(x)


@converter("IsInf", since=10)
def is_inf(node: Node, x: Expr) -> Expr:
    kind = node.dtype(x)
    wide = node.cast(x, "float32") if kind.bits == 8 else x
    positive, negative = node.attr("detect_positive", 1), node.attr("detect_negative", 1)
    if positive and negative:
        return relay.isinf(wide)
    if not positive and not negative:
        return relay.logical_and(relay.isinf(wide), node.const(False, "bool"))
    zero = node.const(0, wide)
    sided = relay.greater(wide, zero) if positive else relay.less(wide, zero)
    return relay.logical_and(relay.isinf(wide), sided)


@converter("BitShift", since=11)
def bit_shift(node: Node, x: Expr, y: Expr) -> Expr:
    """Shifts by as many bits as there are, or more, give 0 (or the sign, to the right)."""
    direction = node.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.invalid("direction", direction, "LEFT or RIGHT")
    kind = node.dtype(x)
    last = node.const(kind.bits - 1, x)
    too_far = relay.greater(y, last)
    if not kind.is_unsigned:
        # A negative number of bits counts as one that is too large.
        too_far = relay.logical_or(too_far, relay.less(y, node.const(0, x)))
    by = relay.where(too_far, last, y)
    if direction == "LEFT":
        return relay.where(too_far, node.const(0, x), relay.left_shift(x, by))
    shifted = relay.right_shift(x, by)
    return shifted if not kind.is_unsigned else relay.where(too_far, node.const(0, x), shifted)


@converter("BitwiseAnd", since=18)
def bitwise_and(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.bitwise_and(x, y)


@converter("BitwiseOr", since=18)
def bitwise_or(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.bitwise_or(x, y)


@converter("BitwiseXor", since=18)
def bitwise_xor(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.bitwise_xor(x, y)


@converter("BitwiseNot", since=18)
def bitwise_not(node: Node, x: Expr) -> Expr:
    return relay.bitwise_not(x)


@converter("CumSum", "CumProd", since=11)
def cumulative(node: Node, x: Expr, axis: Expr) -> Expr:
    along = node.axis(int(node.scalar(axis)), node.rank(x))
    scan = relay.cumsum if node.op == "CumSum" else relay.cumprod
    backwards = node.attr("reverse", 0)
    data = relay.reverse(x, along) if backwards else x
    result = scan(data, axis=along, dtype=str(node.dtype(x)), exclusive=bool(node.attr("exclusive", 0)))
    return relay.reverse(result, along) if backwards else result


@converter("Det", since=11)
def det(node: Node, x: Expr) -> Expr:
    """The determinant by elimination, rows exchanged for the largest pivot: unrolled, for matrices of a known size."""
    size = node.shape(x)[-1]
    if not isinstance(size, int) or size > 16:
        raise node.unsupported(f"a determinant of {size} rows")
    leading = node.shape(x)[:-2]
    kind = str(node.dtype(x))
    rank = len(leading) + 2
    total: Expr | None = None
    work = x
    for rows in range(size, 0, -1):
        column = relay.strided_slice(work, begin=[0], end=[1], axes=[rank - 1])  # …, rows, 1
        best = relay.argmax(relay.abs(column), axis=rank - 2, keepdims=True)  # …, 1, 1
        locations = relay.reshape(relay.const(np.arange(rows), "int32"), (1,) * (rank - 2) + (rows, 1), allowzero=True)
        chosen = relay.cast(relay.equal(locations, best), kind)  # …, rows, 1
        top = relay.strided_slice(work, begin=[0], end=[1], axes=[rank - 2])  # …, 1, rows
        pivot_row = relay.sum(relay.multiply(work, chosen), axis=rank - 2, keepdims=True)
        # The row of the pivot takes the place of the first one, which goes to where that was.
        first = relay.cast(relay.equal(locations, relay.const(0, "int32")), kind)
        swapped = relay.add(work, relay.multiply(chosen, relay.subtract(top, pivot_row)))
        swapped = relay.add(
            relay.multiply(swapped, relay.subtract(relay.const(1, kind), first)), relay.multiply(first, pivot_row)
        )
        pivot = relay.strided_slice(pivot_row, begin=[0], end=[1], axes=[rank - 1])  # …, 1, 1
        sign = relay.where(relay.equal(best, relay.const(0, "int32")), relay.const(1, kind), relay.const(-1, kind))
        factor = relay.multiply(pivot, sign)
        total = factor if total is None else relay.multiply(total, factor)
        if rows > 1:
            rest = relay.strided_slice(swapped, begin=[1, 0], end=[rows, rows], axes=[rank - 2, rank - 1])
            heads = relay.strided_slice(rest, begin=[0], end=[1], axes=[rank - 1])
            safe = relay.where(relay.equal(pivot, relay.const(0, kind)), relay.const(1, kind), pivot)
            reduced = relay.subtract(rest, relay.multiply(relay.divide(heads, safe), pivot_row))
            work = relay.strided_slice(reduced, begin=[1], end=[rows], axes=[rank - 1])
    return relay.squeeze(total, axis=[rank - 2, rank - 1])
