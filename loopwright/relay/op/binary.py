"""Operators on two tensors repeated to one shape: a row of the table says all about one of them.

Both have elements of one type: nothing is converted unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, make, register
from loopwright.relay.op.sizes import broadcast, same_dtype
from loopwright.relay.types import TensorType

# From both inputs, the result and its gradient to the gradients of the inputs, not yet summed to their shapes.
Slopes = Callable[[Expr, Expr, Expr, Expr], tuple[Expr, Expr]]


class Binary(FromTopi):
    """A function of two elements."""

    slopes: ClassVar[Slopes | None] = None

    def infer(self, lhs: TensorType, rhs: TensorType) -> Type:
        same_dtype(self.op_name, lhs, rhs)
        return TensorType(broadcast(self.op_name, lhs.shape, rhs.shape), str(lhs.dtype))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        slopes = type(self).slopes
        if slopes is None:
            raise TypeMismatch(f"{self.op_name} has no gradient")
        lhs, rhs = call.args
        left, right = slopes(lhs, rhs, call, grad)
        return [make("collapse_sum_like", left, lhs), make("collapse_sum_like", right, rhs)]


class Comparison(Binary):
    """Whether something holds of two elements."""

    def infer(self, lhs: TensorType, rhs: TensorType) -> Type:
        same_dtype(self.op_name, lhs, rhs)
        return TensorType(broadcast(self.op_name, lhs.shape, rhs.shape), "bool")


class Logic(Binary):
    """A function of two truth values."""

    def infer(self, lhs: TensorType, rhs: TensorType) -> Type:
        same_dtype(self.op_name, lhs, rhs)
        if not lhs.dtype.is_bool:
            raise TypeMismatch(f"{self.op_name} takes truth values, and not {lhs}", hint="compare it with something")
        return TensorType(broadcast(self.op_name, lhs.shape, rhs.shape), "bool")


def _where(condition: Expr, grad: Expr) -> Expr:
    result: Expr = make("where", condition, grad, make("zeros_like", grad))
    return result


def _power_slopes(x: Expr, y: Expr, result: Expr, grad: Expr) -> tuple[Expr, Expr]:
    return grad * y * make("power", x, y - make("ones_like", y)), grad * result * make("log", x)


def _none(x: Expr, y: Expr, result: Expr, grad: Expr) -> tuple[Expr, Expr]:
    return make("zeros_like", result), make("zeros_like", result)


# Operator, its gradients, what it is in words.
_ARITHMETIC: Final[list[tuple[str, Slopes | None, str]]] = [
    ("add", lambda x, y, r, g: (g, g), "The sum of two elements."),
    ("subtract", lambda x, y, r, g: (g, make("negative", g)), "The difference of two elements."),
    ("multiply", lambda x, y, r, g: (g * y, g * x), "The product of two elements."),
    ("divide", lambda x, y, r, g: (g / y, make("negative", g * r / y)), "The quotient; integers towards zero."),
    ("power", _power_slopes, "One element to the power of another."),
    (
        "maximum",
        lambda x, y, r, g: (_where(make("greater_equal", x, y), g), _where(make("less", x, y), g)),
        "The greater of two elements, NaN if one is.",
    ),
    (
        "minimum",
        lambda x, y, r, g: (_where(make("less_equal", x, y), g), _where(make("greater", x, y), g)),
        "The lesser of two elements, NaN if one is.",
    ),
    ("floor_divide", _none, "The quotient rounded down."),
    ("trunc_divide", _none, "The quotient rounded towards zero."),
    ("mod", None, "The remainder, with the sign of the dividend."),
    ("trunc_mod", None, "The remainder, with the sign of the dividend."),
    ("floor_mod", None, "The remainder, with the sign of the divisor."),
    ("left_shift", None, "The bits of one element moved left by another."),
    ("right_shift", None, "The bits of one element moved right by another."),
    ("bitwise_and", None, "The bits that both elements have."),
    ("bitwise_or", None, "The bits that one of the elements has."),
    ("bitwise_xor", None, "The bits that just one of the elements has."),
]
_COMPARISONS: Final = [
    ("equal", "Whether two elements are equal."),
    ("not_equal", "Whether two elements differ."),
    ("less", "Whether one element is less than another."),
    ("less_equal", "Whether one element is at most another."),
    ("greater", "Whether one element is greater than another."),
    ("greater_equal", "Whether one element is at least another."),
]
_LOGIC: Final = [
    ("logical_and", "Whether both hold."),
    ("logical_or", "Whether one of them holds."),
    ("logical_xor", "Whether just one of them holds."),
]


def _enter(name: str, base: type[Binary], words: str, slopes: Slopes | None = None) -> None:
    held = {"__doc__": words, "slopes": None if slopes is None else staticmethod(slopes)}
    register(name, Kind.BROADCAST)(type(name.title().replace("_", ""), (base,), held))


for _name, _slopes, _words in _ARITHMETIC:
    _enter(_name, Binary, _words, _slopes)
for _name, _words in _COMPARISONS:
    _enter(_name, Comparison, _words, _none)
for _name, _words in _LOGIC:
    _enter(_name, Logic, _words)
