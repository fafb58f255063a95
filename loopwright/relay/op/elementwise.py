"""Operators on each element of one tensor: most are a row of the table, those with attributes follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, Operator, make, register
from loopwright.relay.types import TensorType
from loopwright.runtime.dtype import DataType

# From the input, the result and the gradient of the result to the gradient of the input.
Slope = Callable[[Expr, Expr, Expr], Expr]


class Elementwise(FromTopi):
    """The same function of every element; the type stays."""

    slope: ClassVar[Slope | None] = None

    def infer(self, data: TensorType) -> Type:
        return data

    def compute(self, data: te.Tensor) -> te.Tensor:
        made = super().compute(data)
        return topi.identity(data) if made is data else made  # a kernel writes its result: integers rounded are copied

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        slope = type(self).slope
        if slope is None:
            raise TypeMismatch(f"{self.op_name} has no gradient")
        return [slope(call.args[0], call, grad)]


class Predicate(Elementwise):
    """Whether something holds of every element."""

    def infer(self, data: TensorType) -> Type:
        return TensorType(data.shape, "bool")


class NotOfTruth(Elementwise):
    """A function of truth values."""

    def infer(self, data: TensorType) -> Type:
        if not data.dtype.is_bool:
            raise TypeMismatch(f"{self.op_name} takes truth values, and not {data}", hint="compare it with something")
        return data


def _one(like: Expr) -> Expr:
    result: Expr = make("ones_like", like)
    return result


def _zero(x: Expr, y: Expr, grad: Expr) -> Expr:
    result: Expr = make("zeros_like", x)
    return result


def _minus(x: Expr) -> Expr:
    result: Expr = make("negative", x)
    return result


def _of(name: str) -> Callable[[Expr], Expr]:
    return lambda x: make(name, x)


_sqrt = _of("sqrt")
_LN2, _LN10 = float(np.log(2)), float(np.log(10))


def _number(value: float, like: Expr) -> Expr:
    result: Expr = make("full_like", like, const(value, "float32"))
    return result


# Operator, its gradient, what it is in words. What it computes and what it means in numpy is topi's to say.
_ROWS: Final[list[tuple[str, Slope | None, str]]] = [
    ("log", lambda x, y, g: g / x, "The natural logarithm of each element."),
    ("log2", lambda x, y, g: g / (x * _number(_LN2, x)), "The logarithm to base 2 of each element."),
    ("log10", lambda x, y, g: g / (x * _number(_LN10, x)), "The logarithm to base 10 of each element."),
    ("exp", lambda x, y, g: g * y, "e to the power of each element."),
    (
        "erf",
        lambda x, y, g: g * _number(float(2 / np.sqrt(np.pi)), x) * make("exp", _minus(x * x)),
        "The error function of each element.",
    ),
    ("sqrt", lambda x, y, g: g * _number(0.5, x) / y, "The square root of each element."),
    ("rsqrt", lambda x, y, g: g * _number(-0.5, x) * y * y * y, "1 over the square root of each element."),
    ("sigmoid", lambda x, y, g: g * y * (_one(y) - y), "1 / (1 + exp(-x)) of each element."),
    ("tanh", lambda x, y, g: g * (_one(y) - y * y), "The hyperbolic tangent of each element."),
    ("tan", lambda x, y, g: g * (_one(y) + y * y), "The tangent of each element."),
    ("cos", lambda x, y, g: _minus(g * make("sin", x)), "The cosine of each element."),
    ("cosh", lambda x, y, g: g * make("sinh", x), "The hyperbolic cosine of each element."),
    ("sin", lambda x, y, g: g * make("cos", x), "The sine of each element."),
    ("sinh", lambda x, y, g: g * make("cosh", x), "The hyperbolic sine of each element."),
    ("acos", lambda x, y, g: _minus(g / _sqrt(_one(x) - x * x)), "The angle whose cosine each element is."),
    ("acosh", lambda x, y, g: g / _sqrt(x * x - _one(x)), "The inverse hyperbolic cosine of each element."),
    ("asin", lambda x, y, g: g / _sqrt(_one(x) - x * x), "The angle whose sine each element is."),
    ("asinh", lambda x, y, g: g / _sqrt(x * x + _one(x)), "The inverse hyperbolic sine of each element."),
    ("atan", lambda x, y, g: g / (_one(x) + x * x), "The angle whose tangent each element is."),
    ("atanh", lambda x, y, g: g / (_one(x) - x * x), "The inverse hyperbolic tangent of each element."),
    ("floor", _zero, "Each element rounded down."),
    ("ceil", _zero, "Each element rounded up."),
    ("trunc", _zero, "Each element rounded towards zero."),
    ("round", _zero, "The integer nearest to each element, halves away from zero."),
    ("abs", lambda x, y, g: g * make("sign", x), "Each element without its sign."),
    ("sign", _zero, "-1, 0 or 1: the sign of each element."),
    ("negative", lambda x, y, g: _minus(g), "Each element with the other sign."),
    ("bitwise_not", None, "Each element with every bit flipped."),
    ("fast_exp", lambda x, y, g: g * y, "e to the power of each element, by a shorter formula."),
    ("fast_tanh", lambda x, y, g: g * (_one(y) - y * y), "The hyperbolic tangent, by a shorter formula."),
    ("fast_erf", None, "The error function, by a shorter formula."),
]
_PREDICATES: Final = [
    ("isnan", "Whether each element is no number."),
    ("isfinite", "Whether each element is a finite number."),
    ("isinf", "Whether each element is infinite."),
]


def _enter(name: str, base: type[Elementwise], words: str, slope: Slope | None = None) -> None:
    held = {"__doc__": words, "slope": None if slope is None else staticmethod(slope)}
    register(name, Kind.ELEMWISE)(type(name.title().replace("_", ""), (base,), held))


for _name, _slope, _words in _ROWS:
    _enter(_name, Elementwise, _words, _slope)
for _name, _words in _PREDICATES:
    _enter(_name, Predicate, _words)
_enter("logical_not", NotOfTruth, "The opposite of each truth value.")


@register("copy", Kind.ELEMWISE)
class Copy(Elementwise):
    """The data, as a tensor of its own."""

    topi_name = "identity"

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [grad]


@register("cast", Kind.ELEMWISE)
class Cast(FromTopi):
    """Each element converted to `dtype`."""

    dtype: str

    def infer(self, data: TensorType) -> Type:
        return TensorType(data.shape, self.dtype)

    def compute(self, data: te.Tensor) -> te.Tensor:
        # A kernel writes its result: converting to the same type is a copy.
        return topi.identity(data) if str(data.dtype) == self.dtype else topi.cast(data, self.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("cast_like", grad, call.args[0])]


@register("cast_like", Kind.ELEMWISE)
class CastLike(Operator):
    """Each element converted to the element type of another tensor."""

    def infer(self, data: TensorType, dtype_like: TensorType) -> Type:
        return TensorType(data.shape, str(dtype_like.dtype))

    def compute(self, data: te.Tensor, dtype_like: te.Tensor) -> te.Tensor:
        same = data.dtype is dtype_like.dtype
        return topi.identity(data) if same else topi.cast(data, str(dtype_like.dtype))

    def reference(self, data: np.ndarray, dtype_like: np.ndarray) -> np.ndarray:
        return data.astype(dtype_like.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("cast_like", grad, call.args[0]), make("zeros_like", call.args[1])]


@register("reinterpret", Kind.ELEMWISE)
class Reinterpret(Operator):
    """The bits of each element read as `dtype`, which has the same width."""

    dtype: str

    def infer(self, data: TensorType) -> Type:
        if DataType(self.dtype).bits != data.dtype.bits:
            raise TypeMismatch(f"reinterpret: {self.dtype} has another width than the elements of {data}")
        return TensorType(data.shape, self.dtype)

    def compute(self, data: te.Tensor) -> te.Tensor:
        return topi.identity(data) if str(data.dtype) == self.dtype else topi.reinterpret(data, self.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(data).view(DataType(self.dtype).numpy()).reshape(data.shape)


@register("clip", Kind.ELEMWISE)
class Clip(FromTopi):
    """Each element, but at least `a_min` and at most `a_max`."""

    a_min: float
    a_max: float

    def infer(self, a: TensorType) -> Type:
        return a

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        x = call.args[0]
        low, high = [make("full_like", x, const(limit, "float32")) for limit in (self.a_min, self.a_max)]
        inside = make("logical_and", make("less_equal", low, x), make("less_equal", x, high))
        return [make("where", inside, grad, make("zeros_like", grad))]


@register("fixed_point_multiply", Kind.ELEMWISE)
class FixedPointMultiply(FromTopi):
    """Each int32 times `multiplier` · 2^(`shift` - 31), rounded to the nearest, halves up."""

    multiplier: int
    shift: int

    def infer(self, data: TensorType) -> Type:
        _require_int32(self.op_name, data)
        return data


@register("fixed_point_multiply_per_axis", Kind.BROADCAST)
class FixedPointMultiplyPerAxis(FromTopi):
    """As fixed_point_multiply, with a multiplier and shifts of their own for each place along `axes`."""

    is_lshift_required: bool
    is_rshift_required: bool
    axes: tuple[int, ...]

    def infer(self, x: TensorType, multiplier: TensorType, lshift: TensorType, rshift: TensorType) -> Type:
        for one in (x, multiplier, lshift, rshift):
            _require_int32(self.op_name, one)
        return x


def _require_int32(name: str, data: TensorType) -> None:
    if str(data.dtype) != "int32":
        raise TypeMismatch(f"{name} takes int32, and not {data}", hint='convert it: relay.cast(x, "int32")')
