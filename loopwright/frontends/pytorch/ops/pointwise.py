"""Operators on each element: arithmetic, functions of real numbers, comparisons, bits, choices.

torch promotes element types: the result has the type that torch says, and operands are converted to it. Comparisons
have no such result; there it is torch that says what the operands are compared as.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.common.rounding import round_half_even
from loopwright.frontends.pytorch.element_types import our_dtype
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Operand
from loopwright.relay.expr import Expr
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    import torch

# Functions of real numbers: integers are converted first, halves are computed in float32.
_REAL = {
    "exp": relay.exp,
    "log": relay.log,
    "log2": relay.log2,
    "log10": relay.log10,
    "sqrt": relay.sqrt,
    "rsqrt": relay.rsqrt,
    "erf": relay.erf,
    "sin": relay.sin,
    "cos": relay.cos,
    "tan": relay.tan,
    "sinh": relay.sinh,
    "cosh": relay.cosh,
    "tanh": relay.tanh,
    "asin": relay.asin,
    "acos": relay.acos,
    "atan": relay.atan,
    "asinh": relay.asinh,
    "acosh": relay.acosh,
    "atanh": relay.atanh,
    "sigmoid": relay.sigmoid,
}


def _enter_real(name: str, function: Callable[[Expr], Expr]) -> None:
    @converter(name)
    def convert(node: Node, x: Expr) -> Expr:
        return function(node.float_operand(x))


for _name, _function in _REAL.items():
    _enter_real(_name, _function)


@converter("log1p")
def log1p(node: Node, x: Expr) -> Expr:
    """log(1 + x); near 0, x * log(1 + x) / ((1 + x) - 1), whose two errors cancel."""
    x = node.float_operand(x)
    one = node.like(x, 1)
    more = relay.add(one, x)
    rest = relay.subtract(more, one)
    exact = relay.equal(rest, node.like(x, 0))
    endless = relay.isinf(more)
    quotient = relay.divide(relay.multiply(x, relay.log(more)), relay.where(exact, one, rest))
    return relay.where(exact, x, relay.where(endless, relay.log(more), quotient))


@converter("expm1", "special_expm1")
def expm1(node: Node, x: Expr) -> Expr:
    """exp(x) - 1 as 2 * sinh(x / 2) * exp(x / 2), which keeps what is small; far from 0 as it is written."""
    x = node.float_operand(x)
    half = relay.multiply(x, node.like(x, 0.5))
    near = relay.less(relay.abs(x), node.like(x, 0.5))
    bounded = relay.where(near, half, node.like(x, 0))
    small = relay.multiply(node.like(x, 2), relay.multiply(_small_sinh(node, bounded), relay.exp(bounded)))
    return relay.where(near, small, relay.subtract(relay.exp(x), node.like(x, 1)))


def _small_sinh(node: Node, x: Expr) -> Expr:
    """sinh(x) for |x| ≤ 1/4 by its series, which does not subtract."""
    square = relay.multiply(x, x)
    total = node.like(x, 1)
    for k in (12, 10, 8, 6, 4, 2):
        total = relay.add(
            node.like(x, 1), relay.multiply(relay.multiply(square, node.like(x, 1 / (k * (k + 1)))), total)
        )
    return relay.multiply(x, total)


@converter("exp2")
def exp2(node: Node, x: Expr) -> Expr:
    x = node.float_operand(x)
    return relay.power(node.like(x, 2), x)


@converter("reciprocal")
def reciprocal(node: Node, x: Expr) -> Expr:
    x = node.float_operand(x)
    return relay.divide(node.like(x, 1), x)


@converter("square")
def square(node: Node, x: Expr) -> Expr:
    return relay.multiply(x, x)


@converter("abs")
def absolute(node: Node, x: Expr) -> Expr:
    return x if node.dtype(x).is_bool or str(node.dtype(x)).startswith("u") else relay.abs(x)


@converter("neg")
def neg(node: Node, x: Expr) -> Expr:
    return relay.negative(x)


@converter("sign", "sgn")
def sign(node: Node, x: Expr) -> Expr:
    if node.is_float(x):
        return relay.where(relay.isnan(x), node.like(x, 0), relay.sign(x))  # what is no number has none here
    return x if node.dtype(x).is_bool else relay.sign(x)


def _enter_rounding(name: str, function: Callable[[Expr], Expr]) -> None:
    @converter(name)
    def convert(node: Node, x: Expr) -> Expr:
        return function(x) if node.is_float(x) else x


for _name, _function in (("floor", relay.floor), ("ceil", relay.ceil), ("trunc", relay.trunc), ("fix", relay.trunc)):
    _enter_rounding(_name, _function)


@converter("round")
def round_(node: Node, x: Expr, decimals: int = 0) -> Expr:
    if decimals == 0:
        return round_half_even(node, x)
    ten = node.like(x, 10.0 ** abs(decimals))
    forth, back = (relay.multiply, relay.divide) if decimals > 0 else (relay.divide, relay.multiply)
    return back(round_half_even(node, forth(x, ten)), ten)


@converter("isnan")
def isnan(node: Node, x: Expr) -> Expr:
    return relay.isnan(x) if node.is_float(x) else relay.zeros(node.shape(x), "bool")


@converter("isinf")
def isinf(node: Node, x: Expr) -> Expr:
    return relay.isinf(x) if node.is_float(x) else relay.zeros(node.shape(x), "bool")


@converter("isfinite")
def isfinite(node: Node, x: Expr) -> Expr:
    return relay.isfinite(x) if node.is_float(x) else relay.ones(node.shape(x), "bool")


# Arithmetic.


def compute_dtype(node: Node, *operands: Operand) -> str:
    """The type to compute in: that of the result, float32 for halves with a number of Python among the operands."""
    kind = node.out_dtype()
    return node.wide(kind) if any(isinstance(one, float) for one in operands) else kind


def _scaled(node: Node, x: Expr, alpha: float) -> Expr:
    return x if alpha == 1 and not isinstance(alpha, bool) else relay.multiply(x, node.operand(alpha, x))


@converter("add")
def add(node: Node, x: Operand, y: Operand, alpha: float = 1) -> Expr:
    kind = compute_dtype(node, x, y, alpha)
    if kind == "bool":
        return relay.logical_or(node.operand(x, kind), node.operand(y, kind))
    return relay.add(node.operand(x, kind), _scaled(node, node.operand(y, kind), alpha))


@converter("sub")
def sub(node: Node, x: Operand, y: Operand, alpha: float = 1) -> Expr:
    kind = compute_dtype(node, x, y, alpha)
    return relay.subtract(node.operand(x, kind), _scaled(node, node.operand(y, kind), alpha))


@converter("rsub")
def rsub(node: Node, x: Operand, y: Operand, alpha: float = 1) -> Expr:
    return sub(node, y, x, alpha)


@converter("mul")
def mul(node: Node, x: Operand, y: Operand) -> Expr:
    kind = compute_dtype(node, x, y)
    if kind == "bool":
        return relay.logical_and(node.operand(x, kind), node.operand(y, kind))
    return relay.multiply(node.operand(x, kind), node.operand(y, kind))


@converter("div", "divide", "true_divide", "floor_divide")
def div(node: Node, x: Operand, y: Operand, rounding_mode: str | None = None) -> Expr:
    if node.op.startswith("aten::floor_divide"):
        rounding_mode = "floor"
    kind = compute_dtype(node, x, y)
    x, y = node.operand(x, kind), node.operand(y, kind)
    if not DataType(kind).is_float:
        return relay.floor_divide(x, y) if rounding_mode == "floor" else relay.trunc_divide(x, y)
    if rounding_mode == "floor":
        return _floor_quotient(node, x, y)
    quotient = relay.divide(x, y)
    return relay.trunc(quotient) if rounding_mode == "trunc" else quotient


def _floor_quotient(node: Node, x: Expr, y: Expr) -> Expr:
    """The quotient rounded down as Python has it: what is left is never of the other sign, whatever x / y rounds to."""
    zero = relay.equal(y, node.like(y, 0))
    rest = _remainder(node, x, y)
    quotient = relay.divide(relay.subtract(x, rest), y)
    low = relay.floor(quotient)
    near = relay.where(
        relay.greater(relay.subtract(quotient, low), node.like(x, 0.5)), relay.add(low, node.like(x, 1)), low
    )
    return relay.where(relay.logical_or(zero, relay.isinf(y)), relay.floor(relay.divide(x, y)), near)


def _remainder(node: Node, x: Expr, y: Expr) -> Expr:
    """x - floor(x / y) * y, exactly: the truncated remainder, moved by y where the signs differ."""
    rest = relay.trunc_mod(x, y)
    zero = node.like(x, 0)
    differs = relay.not_equal(relay.less(rest, zero), relay.less(y, zero))
    return relay.where(relay.logical_and(relay.not_equal(rest, zero), differs), relay.add(rest, y), rest)


@converter("remainder")
def remainder(node: Node, x: Operand, y: Operand) -> Expr:
    kind = compute_dtype(node, x, y)
    x, y = node.operand(x, kind), node.operand(y, kind)
    return _remainder(node, x, y) if DataType(kind).is_float else relay.floor_mod(x, y)


@converter("fmod")
def fmod(node: Node, x: Operand, y: Operand) -> Expr:
    kind = compute_dtype(node, x, y)
    return relay.trunc_mod(node.operand(x, kind), node.operand(y, kind))


@converter("pow")
def pow_(node: Node, x: Operand, y: Operand) -> Expr:
    kind = compute_dtype(node, x, y)
    base = node.operand(x, kind)
    if isinstance(y, (int, float)) and not isinstance(y, bool) and isinstance(x, Expr):
        result = _by_number(node, base, y)
        if result is not None:
            return result
    exponent = node.operand(y, kind)
    if DataType(kind).is_float:
        return relay.power(base, exponent)
    return relay.cast(relay.power(relay.cast(base, "float64"), relay.cast(exponent, "float64")), kind)


def _by_number(node: Node, x: Expr, y: float) -> Expr | None:
    """Powers that are products or roots."""
    if float(y).is_integer() and 1 <= y <= 4:
        result = x
        for _ in range(int(y) - 1):
            result = relay.multiply(result, x)
        return result
    if node.is_float(x):
        if y == 0.5:
            return relay.sqrt(x)
        if y == -0.5:
            return relay.rsqrt(x)
        if y == -1:
            return relay.divide(node.like(x, 1), x)
    return None


@converter("atan2")
def atan2(node: Node, y: Expr, x: Expr) -> Expr:
    """The angle of a point: atan of the smaller coordinate over the greater, turned into its quadrant."""
    y, x = (node.float_operand(one) for one in (y, x))
    zero, far = node.like(x, 0), relay.maximum(relay.abs(x), relay.abs(y))
    near = relay.minimum(relay.abs(x), relay.abs(y))
    both = relay.logical_and(relay.isinf(x), relay.isinf(y))
    ratio = relay.divide(near, relay.where(relay.equal(far, zero), node.like(x, 1), far))
    angle = relay.atan(relay.where(both, node.like(x, 1), ratio))
    steep = relay.greater(relay.abs(y), relay.abs(x))
    angle = relay.where(steep, relay.subtract(node.like(x, math.pi / 2), angle), angle)
    angle = relay.where(_negative(node, x), relay.subtract(node.like(x, math.pi), angle), angle)
    return relay.where(_negative(node, y), relay.negative(angle), angle)


def _negative(node: Node, x: Expr) -> Expr:
    """Whether the sign is minus; that of -0 is, as 1 / -0 tells."""
    zero = node.like(x, 0)
    return relay.logical_or(
        relay.less(x, zero),
        relay.logical_and(relay.equal(x, zero), relay.less(relay.divide(node.like(x, 1), x), zero)),
    )


@converter("maximum", "max.other")
def maximum(node: Node, x: Operand, y: Operand) -> Expr:
    return _extreme(node, relay.maximum, relay.logical_or, x, y)


@converter("minimum", "min.other")
def minimum(node: Node, x: Operand, y: Operand) -> Expr:
    return _extreme(node, relay.minimum, relay.logical_and, x, y)


def _extreme(
    node: Node, function: Callable[[Expr, Expr], Expr], of_truth: Callable[[Expr, Expr], Expr], x: Operand, y: Operand
) -> Expr:
    kind = node.out_dtype()
    return (of_truth if kind == "bool" else function)(node.operand(x, kind), node.operand(y, kind))


@converter("clamp", "clip")
def clamp(node: Node, x: Expr, min: Operand | None = None, max: Operand | None = None) -> Expr:
    kind = node.out_dtype()
    x = node.operand(x, kind)
    if min is not None:
        x = relay.maximum(x, node.operand(min, kind))
    return x if max is None else relay.minimum(x, node.operand(max, kind))


@converter("clamp_min")
def clamp_min(node: Node, x: Expr, min: Operand) -> Expr:
    return clamp(node, x, min)


@converter("clamp_max")
def clamp_max(node: Node, x: Expr, max: Operand) -> Expr:
    return clamp(node, x, None, max)


# Comparisons, logic, bits.


def _compared_as(node: Node) -> str:
    """The type that torch compares two operands in."""
    import torch

    metas = [one.meta["val"] if hasattr(one, "meta") else one for one in node.fx.args[:2]]
    plain = [one if isinstance(one, (torch.Tensor, bool, int, float)) else 1 for one in metas]
    return our_dtype(torch.result_type(*plain))


def _enter_comparison(name: str, function: Callable[[Expr, Expr], Expr]) -> None:
    @converter(name)
    def convert(node: Node, x: Expr, y: Expr) -> Expr:
        kind = _compared_as(node)
        if kind == "bool":
            kind = "uint8"
        elif not DataType(kind).is_float and isinstance(y, int):
            kind = _wide_enough(kind, y)
        return function(node.operand(x, kind), node.operand(y, kind))


def _wide_enough(kind: str, number: int) -> str:
    """A type of integers that a number of Python fits."""
    of = DataType(kind)
    return kind if of.min_value() <= number <= of.max_value() else "int64"


for _name, _compare in {
    "eq": relay.equal,
    "ne": relay.not_equal,
    "lt": relay.less,
    "le": relay.less_equal,
    "gt": relay.greater,
    "ge": relay.greater_equal,
}.items():
    _enter_comparison(_name, _compare)


def truth(node: Node, x: Expr) -> Expr:
    """Whether elements are not zero."""
    return x if node.dtype(x).is_bool else relay.not_equal(x, node.like(x, 0))


@converter("logical_and")
def logical_and(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.logical_and(truth(node, x), truth(node, y))


@converter("logical_or")
def logical_or(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.logical_or(truth(node, x), truth(node, y))


@converter("logical_xor")
def logical_xor(node: Node, x: Expr, y: Expr) -> Expr:
    return relay.logical_xor(truth(node, x), truth(node, y))


@converter("logical_not")
def logical_not(node: Node, x: Expr) -> Expr:
    return relay.logical_not(truth(node, x))


@converter("bitwise_not")
def bitwise_not(node: Node, x: Expr) -> Expr:
    return relay.logical_not(x) if node.dtype(x).is_bool else relay.bitwise_not(x)


def _enter_bits(name: str, function: Callable[[Expr, Expr], Expr], of_truth: Callable[[Expr, Expr], Expr]) -> None:
    @converter(name)
    def convert(node: Node, x: Expr, y: Expr) -> Expr:
        kind = node.out_dtype()
        return (of_truth if kind == "bool" else function)(node.operand(x, kind), node.operand(y, kind))


_enter_bits("bitwise_and", relay.bitwise_and, relay.logical_and)
_enter_bits("bitwise_or", relay.bitwise_or, relay.logical_or)
_enter_bits("bitwise_xor", relay.bitwise_xor, relay.logical_xor)


@converter("bitwise_left_shift", "__lshift__")
def left_shift(node: Node, x: Operand, y: Operand) -> Expr:
    kind = node.out_dtype()
    return relay.left_shift(node.operand(x, kind), node.operand(y, kind))


@converter("bitwise_right_shift", "__rshift__")
def right_shift(node: Node, x: Operand, y: Operand) -> Expr:
    kind = node.out_dtype()
    return relay.right_shift(node.operand(x, kind), node.operand(y, kind))


@converter("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(node: Node, condition: Expr, x: Operand, y: Operand) -> Expr:
    kind = node.out_dtype()
    return relay.where(truth(node, condition), node.operand(x, kind), node.operand(y, kind))


@converter("masked_fill")
def masked_fill(node: Node, x: Expr, mask: Expr, value: Operand) -> Expr:
    return relay.where(mask, node.operand(value, x), x)


# Copies.


@converter("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "alias_copy", "detach_copy")
def same(node: Node, x: Expr) -> Expr:
    return x


@converter("_to_copy", "to.dtype")
def to_copy(node: Node, x: Expr, dtype: torch.dtype | None = None, *others: object) -> Expr:
    if dtype is None:
        return x
    wanted = our_dtype(dtype)
    return truth(node, x) if wanted == "bool" else node.cast(x, wanted)


@converter("copy")
def copy(node: Node, x: Expr, source: Operand) -> Expr:
    result = node.operand(source, x)
    return result if node.shape(result) == node.shape(x) else relay.broadcast_to(result, node.out_shape())


@converter("fill")
def fill(node: Node, x: Expr, value: Operand) -> Expr:
    return relay.full(node.operand(value, x), node.out_shape(), str(node.dtype(x)))
