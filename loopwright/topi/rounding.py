"""Rounding: arrays that know how far off they may be, so that the bound of a composed formula is derived, not guessed.

    softmax of `Rounded(x, "float32")`          .value: the exact result      .error: what float32 may lose on the way

A reference written with operators, numpy's element-wise functions and `sum`, `max` and `reshape` runs on these as it
runs on arrays; a reference is typed as a function of arrays, which these stand in for. Every operation adds what it may
round (one eps: half of it is the program's, half the reference's own where that is no more exact than the program) to
what its operands were off by. Sums may be in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, overload

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike

from loopwright.topi.registry import Bound, Reference, Sample
from loopwright.topi.types import Arguments

# How many units in the last place the functions may be off (docs/math.md); all of them are monotone.
_ULPS: Final[dict[np.ufunc, float]] = {np.exp: 1.0, np.log: 1.0, np.sqrt: 0.5, np.tanh: 3.0}
_SIGMOID_ULPS: Final = 2.5

Values: TypeAlias = np.ndarray | np.floating | float
Axis: TypeAlias = int | tuple[int, ...] | None  # None: all of them


class Rounded(NDArrayOperatorsMixin):
    """Values, and how far off each of them may be when they are computed in `dtype`."""

    def __init__(self, value: ArrayLike, dtype: str, error: ArrayLike = 0.0) -> None:
        self.value = np.asarray(value, np.float64)
        self.dtype = dtype
        self.error = np.broadcast_to(np.asarray(error, np.float64), self.value.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def _rounded(self, value: Values, error: Values, count: float = 1.0) -> Rounded:
        """`value`, which is off by `error` and was rounded `count` times since."""
        kind = np.finfo(self.dtype)
        lost = count * (float(kind.eps) * (np.abs(value) + error) + float(kind.smallest_subnormal))
        return Rounded(value, self.dtype, error + lost)

    def _of(self, other: Rounded | np.ndarray | float) -> Rounded:
        """An operand: a number of Python is rounded to the type when it becomes a constant."""
        if isinstance(other, Rounded):
            return other
        if isinstance(other, np.ndarray):
            return Rounded(other, self.dtype)
        is_whole = float(other) == int(other) and abs(other) <= 2 ** np.finfo(self.dtype).nmant
        return Rounded(other, self.dtype) if is_whole else self._rounded(np.float64(other), 0.0)

    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: Rounded | np.ndarray | float, **options: object
    ) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        operands = [self._of(one) for one in inputs]
        values = [one.value for one in operands]
        if function in _ULPS:
            return operands[0].monotone(function, _ULPS[function])
        if function in (np.greater, np.less, np.greater_equal, np.less_equal):
            return function(*values)
        if function in (np.maximum, np.minimum):
            return Rounded(function(*values), self.dtype, np.maximum(*[one.error for one in operands]))
        if function in (np.negative, np.absolute):
            return Rounded(function(*values), self.dtype, operands[0].error)
        if function is np.square:
            return operands[0] * operands[0]
        if function in (np.add, np.subtract):
            return self._rounded(function(*values), operands[0].error + operands[1].error)
        if function is np.multiply:
            (a, b), (da, db) = values, [one.error for one in operands]
            return self._rounded(a * b, np.abs(a) * db + np.abs(b) * da + da * db)
        if function is np.true_divide:
            (a, b), (da, db) = values, [one.error for one in operands]
            quotient = a / b
            return self._rounded(quotient, (da + np.abs(quotient) * db) / (np.abs(b) - db))
        if function is np.matmul:
            (a, b), (da, db) = values, [one.error for one in operands]
            carried = np.abs(a) @ db + da @ np.abs(b) + da @ db
            product = self._rounded(a @ b, carried, 0)
            eps = float(np.finfo(self.dtype).eps)
            lost = a.shape[-1] * eps * ((np.abs(a) + da) @ (np.abs(b) + db))
            return Rounded(product.value, self.dtype, product.error + lost)
        if function is np.power:
            base, exponent = operands
            return base.monotone(lambda x: np.power(x, exponent.value), 1.5)
        return NotImplemented

    def monotone(self, function: Callable[[np.ndarray], np.ndarray], ulps: float) -> Rounded:
        """A function that only rises, or only falls: it is off the most where its operand is."""
        value = function(self.value)
        with np.errstate(invalid="ignore"):
            low, high = function(self.value - self.error), function(self.value + self.error)
        carried = np.maximum(np.abs(low - value), np.abs(high - value))
        return self._rounded(value, np.nan_to_num(carried, nan=np.inf), ulps + 0.5)

    def sigmoid(self) -> Rounded:
        """1 / (1 + exp(-x)), which is one function of the program."""
        return self.monotone(lambda x: 1 / (1 + np.exp(-x)), _SIGMOID_ULPS)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Rounded:
        value = self.value.sum(axis=axis, keepdims=keepdims)
        count = self.value.size // max(value.size, 1)
        carried = self.error.sum(axis=axis, keepdims=keepdims)
        reach = np.abs(self.value).sum(axis=axis, keepdims=keepdims) + carried
        return Rounded(value, self.dtype, carried + count * float(np.finfo(self.dtype).eps) * reach)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Rounded:
        total = self.sum(axis=axis, keepdims=keepdims)
        mean: Rounded = total / (self.value.size // max(total.value.size, 1))
        return mean

    def max(self, axis: Axis = None, keepdims: bool = False) -> Rounded:
        error = self.error.max(axis=axis, keepdims=keepdims)
        return Rounded(self.value.max(axis=axis, keepdims=keepdims), self.dtype, error)

    def reshape(self, *shape: int) -> Rounded:
        return Rounded(self.value.reshape(*shape), self.dtype, self.error.reshape(*shape))

    def transpose(self, *axes: int) -> Rounded:
        return Rounded(self.value.transpose(*axes), self.dtype, self.error.transpose(*axes))

    def __getitem__(self, index: Any) -> Rounded:
        return Rounded(self.value[index], self.dtype, self.error[index])


@overload
def sigmoid(x: Rounded) -> Rounded: ...
@overload
def sigmoid(x: np.ndarray) -> np.ndarray: ...
def sigmoid(x: np.ndarray | Rounded) -> np.ndarray | Rounded:
    """1 / (1 + exp(-x)), of an array or of `Rounded` values."""
    return x.sigmoid() if isinstance(x, Rounded) else 1 / (1 + np.exp(-x))


@overload
def stacked(parts: Sequence[np.ndarray]) -> np.ndarray: ...
@overload
def stacked(parts: Sequence[Rounded]) -> Rounded: ...
def stacked(parts: Sequence[np.ndarray] | Sequence[Rounded]) -> np.ndarray | Rounded:
    """The parts along a new first axis, as arrays or as `Rounded` values."""
    rounded = [part for part in parts if isinstance(part, Rounded)]
    if not rounded:
        return np.stack([part for part in parts if isinstance(part, np.ndarray)])
    return Rounded(
        np.stack([part.value for part in rounded]), rounded[0].dtype, np.stack([part.error for part in rounded])
    )


def rounding_of(reference: Reference, dtype: str, **attributes: object) -> Bound:
    """What `reference` may lose when each of its operations is done in `dtype`."""

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        named = {name: _tracked(one, dtype) for name, one in attributes.items()}
        result = reference(*[_tracked(one, dtype) for one in args], **named)
        for one in result if isinstance(result, (list, tuple)) else [result]:
            # Of several results, the one that is asked about: it has the same values.
            if isinstance(one, Rounded) and np.array_equal(one.value, exact, equal_nan=True):
                return one.error
        return np.zeros(exact.shape)  # a result that is only moved

    return bound


def rounded_sample(reference: Reference, *args: Any, dtype: str | None = None, **attributes: object) -> Sample:
    """A sample whose bound is what `reference` loses in `dtype`, which is that of the first argument unless given."""
    kind = dtype or str(args[0].dtype)
    return Sample(args, attributes, rounding_of(reference, kind, **attributes))


def _tracked(value: object, dtype: str) -> object:
    return Rounded(value, dtype) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
