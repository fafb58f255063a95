"""Running error analysis: values in float64 beside how far a kernel that rounds after every step may be from them.

    x = Rounded.of(array, "float32")
    y = (x - x.mean(-1)) / ...

Each operation adds its own rounding to what its operands' errors become; sums allow any order. Rules that reassociate
or contract (FMA) stay below these bounds. The errors of functions are the stated ones of docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.bench.bounds import SLACK, gamma, unit
from benchmarks.bench.case import Array, Bounded

Axes = int | Sequence[int] | None

# The stated errors of docs/math.md in ulp; a function without one of its own in float64 is the C library's.
ULPS = {
    "exp": 1.0, "exp2": 1.0, "log": 1.0, "log2": 1.5, "log10": 1.5, "log1p": 2.0, "sigmoid": 2.5, "tanh": 3.0,
    "sinh": 2.5, "cosh": 1.5, "erf": 1.5, "sin": 2.0, "cos": 2.0, "tan": 4.0, "asin": 2.0, "acos": 1.5, "atan": 1.5,
    "asinh": 2.5, "atanh": 2.5, "atan2": 2.0, "pow": 1.5, "sqrt": 0.5, "rsqrt": 1.5,
}  # fmt: skip
# Steps of the float64 reference are rounded as well: a few of its units, for results that are float64 themselves.
REFERENCE = 8 * 2.0**-53


@dataclass(frozen=True)
class Rounded:
    """Exact values (in float64), how far computed ones may be off, and the type they are computed in."""

    exact: Array
    error: Array
    dtype: str

    @staticmethod
    def of(x: Array, dtype: str | None = None) -> Rounded:
        """Given values: exact ones."""
        return Rounded(x.astype("float64"), np.zeros(()), dtype or str(x.dtype))

    @property
    def unit(self) -> float:
        """The relative error of one rounding."""
        return unit(self.dtype) * SLACK + (REFERENCE if self.dtype == "float64" else 0)

    def bounded(self, factor: float = 1.0) -> Bounded:
        """The values with their bounds; a factor where the algorithm may be another with the same order of error."""
        tiny = float(np.finfo(self.dtype).smallest_subnormal)
        error = np.broadcast_to(self.error, self.exact.shape)
        return Bounded(self.exact, error * factor * SLACK + tiny)

    def _made(self, exact: Array, error: Array, rounded: bool = True) -> Rounded:
        own = self.unit * (np.abs(exact) + error) if rounded else 0.0
        return Rounded(exact, error + own, self.dtype)

    def __add__(self, other: Rounded | float) -> Rounded:
        y = self._operand(other)
        return self._made(self.exact + y.exact, self.error + y.error)

    def __sub__(self, other: Rounded | float) -> Rounded:
        y = self._operand(other)
        return self._made(self.exact - y.exact, self.error + y.error)

    def __mul__(self, other: Rounded | float) -> Rounded:
        y = self._operand(other)
        error = np.abs(self.exact) * y.error + np.abs(y.exact) * self.error + self.error * y.error
        return self._made(self.exact * y.exact, error)

    def __truediv__(self, other: Rounded | float) -> Rounded:
        y = self._operand(other)
        exact = self.exact / y.exact
        least = np.maximum(np.abs(y.exact) - y.error, np.finfo("float64").tiny)
        return self._made(exact, (self.error + np.abs(exact) * y.error) / least)

    def maximum(self, other: Rounded | float) -> Rounded:
        """Elementwise; exact but for the operands' errors."""
        y = self._operand(other)
        return self._made(np.maximum(self.exact, y.exact), np.maximum(self.error, y.error), rounded=False)

    def minimum(self, other: Rounded | float) -> Rounded:
        """Elementwise; exact but for the operands' errors."""
        y = self._operand(other)
        return self._made(np.minimum(self.exact, y.exact), np.maximum(self.error, y.error), rounded=False)

    def monotone(self, name: str, function: Callable[[Array], Array], ulps: float | None = None) -> Rounded:
        """A function that rises, or falls, everywhere in the interval of each argument."""
        exact = function(self.exact)
        if np.any(self.error):
            up, down = function(self.exact + self.error), function(self.exact - self.error)
            error = np.maximum(np.abs(up - exact), np.abs(down - exact))
        else:
            error = np.zeros(())
        share = (2 * (ULPS[name] if ulps is None else ulps)) * self.unit
        return Rounded(exact, error + share * (np.abs(exact) + error), self.dtype)

    def exp(self) -> Rounded:
        """e to the power of it."""
        return self.monotone("exp", np.exp)

    def sqrt(self) -> Rounded:
        """Its square root."""
        return self.monotone("sqrt", lambda x: np.sqrt(np.maximum(x, 0)))

    def sum(self, axis: Axes = None, keepdims: bool = True) -> Rounded:
        """The sum in any order."""
        axes = _axes(axis, self.exact.ndim)
        count = int(np.prod([self.exact.shape[at] for at in axes], dtype=int))
        error = np.broadcast_to(self.error, self.exact.shape)
        total = (np.abs(self.exact) + error).sum(axis=axes, keepdims=keepdims)
        share = gamma(count, self.dtype) + (gamma(count, "float64") if self.dtype == "float64" else 0)
        exact = self.exact.sum(axis=axes, keepdims=keepdims)
        return Rounded(exact, error.sum(axis=axes, keepdims=keepdims) + share * total, self.dtype)

    def max(self, axis: Axes = None, keepdims: bool = True) -> Rounded:
        """The greatest of them."""
        axes = _axes(axis, self.exact.ndim)
        error = np.broadcast_to(self.error, self.exact.shape)
        exact = self.exact.max(axis=axes, keepdims=keepdims)
        return Rounded(exact, error.max(axis=axes, keepdims=keepdims), self.dtype)

    def mean(self, axis: Axes = None, keepdims: bool = True) -> Rounded:
        """The sum over the count."""
        axes = _axes(axis, self.exact.ndim)
        count = int(np.prod([self.exact.shape[at] for at in axes], dtype=int))
        return self.sum(axis, keepdims) * (1.0 / count) * 1.0  # the count's reciprocal is rounded, too

    def matmul(self, other: Rounded) -> Rounded:
        """The matrix product, summed in any order."""
        count = self.exact.shape[-1]
        left, right = np.abs(self.exact), np.abs(other.exact)
        share = gamma(count + 1, self.dtype) + (gamma(count + 1, "float64") if self.dtype == "float64" else 0)
        error = share * (left @ right)
        if np.any(self.error) or np.any(other.error):
            e, f = np.broadcast_to(self.error, left.shape), np.broadcast_to(other.error, right.shape)
            error = error + (1 + share) * (e @ right + left @ f + e @ f)
        return Rounded(self.exact @ other.exact, error, self.dtype)

    def move(self, function: Callable[[Array], Array]) -> Rounded:
        """What only moves elements."""
        return Rounded(function(self.exact), function(np.broadcast_to(self.error, self.exact.shape)), self.dtype)

    def _operand(self, other: Rounded | float) -> Rounded:
        """A number is rounded to the type."""
        if isinstance(other, Rounded):
            return other
        return Rounded(np.asarray(float(other)), np.asarray(abs(other) * unit(self.dtype)), self.dtype)


def exactly(x: Array) -> Bounded:
    """What must be equal; truth values as numbers."""
    return Bounded(x.astype("uint8") if x.dtype == bool else x, 0.0)


def _axes(axis: Axes, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else axis
    return tuple([at % rank for at in given])
