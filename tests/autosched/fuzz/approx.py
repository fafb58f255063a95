"""Approx: what a tensor must hold, in float64 or in integers, and how far a correct program may be from it.

Every operation rounds once to the tensor's type, so the error grows with it; sums have a bound for any order of their
terms. Integers wrap around as their type does, and their error is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes  # noqa: F401  # gives numpy the name bfloat16
import numpy as np

# What one rounding changes at most, as a share. In float64 twice that: there the reference is rounded as well.
UNIT = {"float64": 2.0**-52, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# Below these a rounding is absolute, and half a step of the smallest numbers.
TINY = {"float64": 2.0**-1075, "float32": 2.0**-150, "float16": 2.0**-25, "bfloat16": 2.0**-134}


@dataclass(frozen=True)
class Approx:
    """Values with their errors; `dtype` is the type that the program computes them in."""

    value: np.ndarray
    error: np.ndarray
    dtype: str

    @staticmethod
    def exactly(array: np.ndarray) -> Approx:
        """What is given as input."""
        dtype = str(array.dtype)
        value = array.astype("float64" if dtype in UNIT else "int64")
        return Approx(value, np.zeros(array.shape), dtype)

    def rounded(self, value: np.ndarray, error: np.ndarray, roundings: int = 1) -> Approx:
        """A result in this type."""
        if self.dtype not in UNIT:
            return Approx(value.astype(self.dtype).astype("int64"), np.zeros(value.shape), self.dtype)
        unit = UNIT[self.dtype] * roundings
        assert unit < 0.5, "too many roundings for a bound"
        share = unit / (1 - unit) * 1.001  # the float64 in which this is computed is rounded as well
        return Approx(value, error + share * (np.abs(value) + error) + roundings * TINY[self.dtype], self.dtype)

    def moved(self, move: object) -> Approx:
        """The same numbers at other places: `move` is applied to the values and to the errors."""
        assert callable(move)
        return Approx(move(self.value), move(self.error), self.dtype)

    def cast(self, dtype: str) -> Approx:
        """Converted: exact where the type is wider."""
        if dtype not in UNIT:
            return Approx(self.value.astype("int64").astype(dtype).astype("int64"), self.error, dtype)
        made = Approx(self.value.astype("float64"), self.error, dtype)
        was_wider = UNIT.get(self.dtype, UNIT["float64"]) < UNIT[dtype]
        return made.rounded(made.value, made.error) if was_wider else made

    def plus(self, other: Approx) -> Approx:
        return self.rounded(self.value + other.value, self.error + other.error)

    def scaled(self, factor: float, term: float) -> Approx:
        """factor · x + term, rounded once or twice."""
        value = self.value * factor + term
        error = self.error * abs(factor) + UNIT.get(self.dtype, 0.0) * np.abs(self.value * factor)
        return self.rounded(value, error)

    def clipped(self, low: float | None, high: float | None) -> Approx:
        return Approx(np.clip(self.value, low, high), self.error, self.dtype)


def sum_of_products(subscripts: str, factors: Sequence[Approx], dtype: str) -> Approx:
    """The einsum of the factors, each converted to `dtype`, in any order of its terms."""
    factors = [factor.cast(dtype) for factor in factors]
    values = [factor.value for factor in factors]
    value = np.einsum(subscripts, *values)
    if dtype not in UNIT:
        return Approx(value, np.zeros(value.shape), dtype).rounded(value, np.zeros(value.shape))
    magnitude = np.einsum(subscripts, *[np.abs(factor.value) for factor in factors])
    largest = np.einsum(subscripts, *[np.abs(factor.value) + factor.error for factor in factors])
    out = subscripts.split("->")[1]
    sizes = {
        axis: size
        for axes, factor in zip(subscripts.split("->")[0].split(","), factors, strict=True)
        for axis, size in zip(axes, factor.value.shape, strict=True)
    }
    terms = int(np.prod([size for axis, size in sizes.items() if axis not in out], dtype=np.int64))
    roundings = (terms + len(factors)) * UNIT[dtype]
    assert roundings < 0.5, "too many roundings for a bound"
    share = roundings / (1 - roundings) * 1.001
    return Approx(value, (largest - magnitude) * 1.001 + share * largest + terms * TINY[dtype], dtype)


def extreme(x: Approx, axes: tuple[int, ...], greatest: bool) -> Approx:
    """The greatest or least along some axes: as far off as the worst of them."""
    pick = np.max if greatest else np.min
    return Approx(pick(x.value, axis=axes), np.max(x.error, axis=axes), x.dtype)
