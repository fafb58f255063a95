"""Operators that reduce along axes: sums, products, extremes, means, variances, and the places of extremes.

Without axes (`None`, and here also an empty list) all are reduced; `exclude` reduces all but those named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np

from loopwright import te, topi
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import as_expr
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, Tuple, TupleWrapper, const
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.sizes import normal_axes
from loopwright.relay.types import TensorType
from loopwright.topi.parts.row_major import product
from loopwright.topi.registry import OPERATORS


class Reduction(Operator):
    """A reduction along axes, of the type of its elements."""

    axis: int | Sequence[int] | None = None
    keepdims: bool = False
    exclude: bool = False

    normal = {"axis": lambda axis: (axis,) if isinstance(axis, int) else axis}
    to_dtype: ClassVar[str] = ""  # the type of the results, where it is not that of the elements

    def axes(self, rank: int) -> list[int]:
        """The axes that are reduced, in order."""
        named = None if self.axis is None or self.axis == () else self.axis
        result = normal_axes(self.op_name, named, rank)
        return [axis for axis in range(rank) if axis not in result] if self.exclude else result

    def infer(self, data: TensorType) -> Type:
        axes = self.axes(len(data.shape))
        if self.keepdims:
            shape = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
        else:
            shape = [size for axis, size in enumerate(data.shape) if axis not in axes]
        return TensorType(shape, self.to_dtype or str(data.dtype))

    def compute(self, data: te.Tensor) -> te.Tensor:
        if not data.ndim:  # one number is its own sum, product and extreme, and the place of that is 0
            return topi.full_like(topi.cast(data, "int32"), 0) if self.to_dtype else topi.identity(data)
        return self._reduce(data, self.axes(data.ndim))

    def _reduce(self, data: te.Tensor, axes: list[int]) -> te.Tensor:
        return getattr(topi, self.op_name)(data, axes, self.keepdims)

    def reference(self, data: np.ndarray) -> np.ndarray:
        if not data.ndim:
            return np.zeros((), np.int32) if self.to_dtype else data
        result = OPERATORS[self.op_name].reference(data, tuple(self.axes(data.ndim)), self.keepdims)
        return result if self.to_dtype else np.asarray(result).astype(data.dtype)

    def _spread(self, value: Expr, like: Expr) -> Expr:
        """A result (or its gradient) repeated to the shape of what was reduced."""
        if not self.keepdims:
            rank = len(like.checked_type.shape)  # type: ignore[attr-defined]
            for axis in self.axes(rank):
                value = make("expand_dims", value, axis=axis)
        spread: Expr = make("broadcast_to_like", value, like)
        return spread


class _Extreme(Reduction):
    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data = call.args[0]
        # Equal extremes share the gradient.
        chosen = make("cast_like", make("equal", data, self._spread(call, data)), data)
        count = make("sum", chosen, **dict(self.items()))
        return [chosen * self._spread(grad / count, data)]


@register("sum", Kind.COMM_REDUCE)
class Sum(Reduction):
    """The sum along axes; of truth values, whether any holds."""

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [self._spread(grad, call.args[0])]


@register("max", Kind.COMM_REDUCE)
class Max(_Extreme):
    """The greatest element along axes."""


@register("min", Kind.COMM_REDUCE)
class Min(_Extreme):
    """The least element along axes."""


@register("prod", Kind.COMM_REDUCE)
class Prod(Reduction):
    """The product along axes."""

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data = call.args[0]
        return [self._spread(grad * call, data) / data]


class _Truth(Reduction):
    def infer(self, data: TensorType) -> Type:
        if not data.dtype.is_bool:
            raise TypeMismatch(f"{self.op_name} takes truth values, and not {data}", hint="compare it with something")
        return super().infer(data)


@register("all", Kind.COMM_REDUCE)
class All(_Truth):
    """Whether all hold along axes."""


@register("any", Kind.COMM_REDUCE)
class AnyOf(_Truth):
    """Whether any holds along axes."""


@register("mean", Kind.COMM_REDUCE)
class Mean(Reduction):
    """The mean along axes; of integers, rounded towards zero."""

    def _reduce(self, data: te.Tensor, axes: list[int]) -> te.Tensor:
        wide = widened(data)
        return topi.cast(topi.divide(topi.sum(wide, axes, self.keepdims), count_of(wide, axes)), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        axes = tuple(self.axes(data.ndim))
        # Wider while it is added up, as a mean of many numbers should be; halves are summed in float32.
        total = data.sum(axis=axes, keepdims=self.keepdims, dtype=np.float64 if data.dtype.kind == "f" else data.dtype)
        count = int(np.prod([data.shape[axis] for axis in axes]))
        return (total / count if data.dtype.kind == "f" else np.trunc(total / count)).astype(data.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data = call.args[0]
        count = make("sum", make("ones_like", data), **dict(self.items()))
        return [self._spread(grad / count, data)]


def widened(data: te.Tensor) -> te.Tensor:
    """Halves as float32: neither a sum of many nor their number need fit into a half, where their mean does."""
    return topi.cast(data, "float32") if data.dtype == "float16" else data


def count_of(data: te.Tensor, axes: list[int]) -> PrimExpr:
    """How many elements are reduced to one, as a number of the tensor's type."""
    return as_expr(product([data.shape[axis] for axis in axes])).astype(data.dtype)


class _Place(Reduction):
    select_last_index: bool = False

    to_dtype = "int32"

    def _reduce(self, data: te.Tensor, axes: list[int]) -> te.Tensor:
        return getattr(topi, self.op_name)(data, axes, self.keepdims, self.select_last_index)

    def reference(self, data: np.ndarray) -> np.ndarray:
        if not data.ndim:
            return np.zeros((), np.int32)
        axes = tuple(self.axes(data.ndim))
        return OPERATORS[self.op_name].reference(data, axes, self.keepdims, self.select_last_index)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", call.args[0])]


@register("argmax", Kind.COMM_REDUCE)
class Argmax(_Place):
    """The place of the greatest element along axes, the first of equal ones unless `select_last_index`."""


@register("argmin", Kind.COMM_REDUCE)
class Argmin(_Place):
    """The place of the least element along axes, the first of equal ones unless `select_last_index`."""


@register("variance", Kind.COMM_REDUCE)
class Variance(Reduction):
    """The mean square of the distances from a mean along axes; `unbiased` divides by one less."""

    unbiased: bool = False

    def infer(self, data: TensorType, mean: TensorType) -> Type:  # type: ignore[override]
        return super().infer(data)

    def compute(self, data: te.Tensor, mean: te.Tensor) -> te.Tensor:  # type: ignore[override]
        axes = self.axes(data.ndim)
        away = topi.subtract(widened(data), widened(mean))
        count = count_of(away, axes) - int(self.unbiased)
        return topi.cast(topi.divide(topi.sum(topi.multiply(away, away), axes, self.keepdims), count), data.dtype)

    def reference(self, data: np.ndarray, mean: np.ndarray) -> np.ndarray:  # type: ignore[override]
        axes = tuple(self.axes(data.ndim))
        away = data.astype(np.float64) - mean
        count = int(np.prod([data.shape[axis] for axis in axes])) - int(self.unbiased)
        return ((away * away).sum(axis=axes, keepdims=self.keepdims) / count).astype(data.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data, mean = call.args
        ones = make("sum", make("ones_like", data), axis=self.axis, keepdims=self.keepdims, exclude=self.exclude)
        count = ones - make("ones_like", ones) if self.unbiased else ones
        away = data - make("broadcast_to_like", mean, data)
        two = make("full_like", away, const(2.0))
        slope = two * away * self._spread(grad / count, data)
        return [slope, make("collapse_sum_like", make("negative", slope), mean)]


@calls("variance")
def variance(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Expr:
    """The variance along axes; from `with_mean` where that is known already (with its dimensions of 1 kept)."""
    mean = with_mean if with_mean is not None else make("mean", data, axis=axis, keepdims=True, exclude=exclude)
    result: Expr = make("variance", data, mean, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased)
    return result


@calls("std")
def std(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Expr:
    """The square root of the variance."""
    result: Expr = make("sqrt", variance(data, axis, keepdims, exclude, unbiased, with_mean))
    return result


def _mean_and(spread: Callable[..., Expr]) -> Callable[..., TupleWrapper]:
    def both(
        data: Expr,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        exclude: bool = False,
        unbiased: bool = False,
    ) -> TupleWrapper:
        kept = make("mean", data, axis=axis, keepdims=True, exclude=exclude)
        second = spread(data, axis, keepdims, exclude, unbiased, kept)
        first = kept if keepdims else make("mean", data, axis=axis, keepdims=False, exclude=exclude)
        return TupleWrapper(Tuple([first, second]), 2)

    return both


_PAIRS: Final = {"mean_variance": (variance, "variance"), "mean_std": (std, "standard deviation")}
for _name, (_spread, _words) in _PAIRS.items():
    _both = calls(_name)(_mean_and(_spread))
    _both.__name__ = _both.__qualname__ = _name
    _both.__doc__ = f"The mean along axes and the {_words}."


@calls("logsumexp")
def logsumexp(data: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expr:
    """log(sum(exp(x))) along axes, from the distances to the greatest element: it does not overflow.

    An infinite greatest element is no place to measure from: ∞ - ∞ is no number. The sum of the powers is right then,
    which is ∞, or 0 where all elements are -∞.
    """
    greatest = make("max", data, axis=axis, keepdims=True)
    shift = make("where", make("isinf", greatest), make("zeros_like", greatest), greatest)
    result: Expr = make("log", make("sum", make("exp", data - shift), axis=axis, keepdims=True)) + shift
    if keepdims:
        return result
    named = [axis] if isinstance(axis, int) else (list(axis) if axis is not None else [])
    return make("squeeze", result, axis=named or None)


@register("collapse_sum_like", Kind.COMM_REDUCE)
class CollapseSumLike(Operator):
    """The data summed to the shape of another tensor that was repeated to the data's."""

    def infer(self, data: TensorType, collapse_type: TensorType) -> Type:
        return TensorType(collapse_type.shape, str(data.dtype))

    def compute(self, data: te.Tensor, collapse_type: te.Tensor) -> te.Tensor:
        return topi.collapse_sum(data, collapse_type.shape)

    def reference(self, data: np.ndarray, collapse_type: np.ndarray) -> np.ndarray:
        return OPERATORS["collapse_sum"].reference(data, collapse_type.shape)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("broadcast_to_like", grad, call.args[0]), make("zeros_like", call.args[1])]


@register("collapse_sum_to", Kind.COMM_REDUCE)
class CollapseSumTo(Operator):
    """The data summed to `shape`, which was repeated to the data's."""

    shape: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return TensorType(self.shape, str(data.dtype))

    def compute(self, data: te.Tensor) -> te.Tensor:
        return topi.collapse_sum(data, self.shape)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return OPERATORS["collapse_sum"].reference(data, self.shape)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("broadcast_to_like", grad, call.args[0])]
