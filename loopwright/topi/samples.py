"""Samples: arrays of plain numbers to try operators on, the same ones each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright.topi.registry import Sample

# Where only positions matter, one small sample of each width of elements is enough (float32 is in all others).
TYPES = ("float64", "float16", "int8", "int64", "bool")


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """An array of numbers that every type can hold, nearly all different where there are few."""
    count = int(np.prod(shape, dtype=int))
    values = np.random.default_rng(seed).permutation(max(count, 120))[:count] % 120
    if dtype == "bool":
        return (values % 2 == 0).reshape(shape)
    signs = 1 if dtype.startswith("uint") else np.where(values % 3 == 0, -1, 1)
    return (values * signs).reshape(shape).astype(dtype)


def of_each_type(shape: tuple[int, ...], *args: object, **attributes: object) -> Iterator[Sample]:
    """One sample a type: an array of `shape`, and the same arguments after it."""
    for dtype in TYPES:
        yield Sample((numbers(shape, dtype), *args), attributes)


def whole_numbers(shape: Sequence[int], dtype: str = "float32", low: int = -4, high: int = 4) -> np.ndarray:
    """Small whole numbers: sums of their products are exact in every type, whatever the order."""
    return _generator(shape).integers(low, high + 1, tuple(shape)).astype(dtype)


def real_numbers(shape: Sequence[int], dtype: str = "float32", shift: float = 0.0) -> np.ndarray:
    """Numbers with a full mantissa, around `shift`."""
    return (_generator(shape).standard_normal(tuple(shape)) + shift).astype(dtype)


def positive_numbers(shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    """Numbers between 1/2 and 3/2."""
    return (_generator(shape).random(tuple(shape)) + 0.5).astype(dtype)


def _generator(shape: Sequence[int]) -> np.random.Generator:
    return np.random.default_rng([len(shape), *shape])
