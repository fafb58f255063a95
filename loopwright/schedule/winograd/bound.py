"""How far rounding can go: a bound on the error of a convolution by winograd, from its matrices and its operands.

Written out, a result is a sum of products `A[j, i] · G[j, k] · B[j, l] · g[k] · d[l]`, of which most cancel. In
floating point each goes through a number of roundings: at most one of its constants and one of every operation that it
passes. So the computed result is the same sum with each product times (1 + θ), |θ| ≤ γ = K u / (1 - K u), where u is
half of the distance from 1 to the next number, and K counts the roundings; and the error is at most γ times the sum of
magnitudes:

    |error| ≤ γ_K · Σ_c |A|ᵀ [(|G| |g| |G|ᵀ) ⊙ (|B|ᵀ |d| |B|)] |A|
    K = channels + 1 + Σ over dimensions (terms of a row of A + of G + of B, + 3 for each)

A term of a row of t goes through at most t - 1 additions; it is multiplied by a constant within its group of terms, and
with the group by another, both of which may be rounded themselves: t + 3. A multiply-add rounds less. The sum over
channels has one rounding for a product and one for each addition, in any order. No number may overflow (`safe_range`)
or become subnormal on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loopwright.schedule.winograd.matrices import Matrix, absolute, transforms

if TYPE_CHECKING:
    import numpy.typing as npt

_UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def roundings(tile: int, taps: Sequence[int], channels: int) -> int:
    """K: the most roundings that a product of the written-out sum goes through."""
    count = channels + 1
    for window in taps:
        result = transforms(tile, window)
        count += sum(_terms(matrix) + 3 for matrix in (result.result, result.weight, result.data))
    return count


def _terms(matrix: Matrix) -> int:
    return max(sum(1 for number in row if number) for row in matrix)


def _gamma(count: int, dtype: str) -> float:
    unit = _UNIT[str(dtype)]
    return count * unit / (1 - count * unit)


def amplification(tile: int, taps: Sequence[int]) -> float:
    """How large the written-out sum of magnitudes can be for one channel of numbers between -1 and 1.

    The direct form's is the number of taps.

    >>> [round(amplification(tile, (3, 3)), 1) for tile in (2, 4, 6)]
    [64.0, 751.7, 4578.8]
    """
    answer = []
    for window in taps:
        result = transforms(tile, window)
        weight = [sum(row) for row in absolute(result.weight)]
        data = [sum(row) for row in absolute(result.data)]
        rows = absolute(result.result)
        answer.append(max(sum(a * g * d for a, g, d in zip(row, weight, data, strict=True)) for row in rows))
    return float(prod(answer))


class Range(NamedTuple):
    """Numbers up to which no step of winograd overflows."""

    data: float  # max|data|, for the transformed data
    product: float  # max|data| · max|weight|, for products, their sums and the results


def safe_range(tile: int, taps: Sequence[int], channels: int, dtype: str = "float32") -> Range:
    """How large numbers may be: transformed, they are several times as large, and cancel only at the end.

    Half of the greatest number is left for sums that are multiplied later than written here.

    >>> "%.1e %.1e" % safe_range(4, (3, 3), 64)
    '5.3e+36 3.5e+33'
    """
    greatest = float(np.finfo(dtype).max) / 2
    grown, summed = [], []
    for window in taps:
        result = transforms(tile, window)
        weight = [sum(row) for row in absolute(result.weight)]
        data = [sum(row) for row in absolute(result.data)]
        rows = absolute(result.result)
        grown.append(max(data))
        largest = max(g * d for g, d in zip(weight, data, strict=True))
        summed.append(
            max(largest, *(sum(a * g * d for a, g, d in zip(row, weight, data, strict=True)) for row in rows))
        )
    return Range(greatest / float(prod(grown)), greatest / (channels * float(prod(summed))))


def error_factor(tile: int, taps: Sequence[int], channels: int, dtype: str = "float32") -> float:
    """The error is at most this times max|data| · max|weight|."""
    return _gamma(roundings(tile, taps, channels), dtype) * channels * amplification(tile, taps)


def direct_factor(taps: Sequence[int], channels: int, dtype: str = "float32") -> float:
    """The same of the direct form: one rounding for each of its products."""
    return _gamma(channels * prod(taps), dtype) * channels * prod(taps)


def error_bound(data: npt.ArrayLike, weight: np.ndarray, tile: int, dtype: str = "float32") -> np.ndarray:
    """The most that each result may be off: `data` is (batch, channels, …), `weight` (outputs, channels, …).

    The data is the padded one: the result has as many places as the window has in it.
    """
    numbers = np.abs(np.asarray(data, "float64"))
    window = np.abs(np.asarray(weight, "float64"))
    rank = numbers.ndim - 2
    locations = [size - taps + 1 for size, taps in zip(numbers.shape[2:], window.shape[2:], strict=True)]
    built = [transforms(tile, taps) for taps in window.shape[2:]]
    counts = [-(-location // tile) for location in locations]
    room = [
        (0, count * tile + m.window - 1 - size) for count, m, size in zip(counts, built, numbers.shape[2:], strict=True)
    ]
    numbers = np.pad(numbers, [(0, 0), (0, 0), *room])
    for axis, (item, count) in enumerate(zip(built, counts, strict=True)):
        window = _along(window, item.weight, axis + 2)
        cells = np.arange(count)[:, None] * tile + np.arange(item.size)
        # Each dimension becomes two: which tile, and where in it. Those already done are twice as many.
        numbers = np.take(numbers, cells, axis=2 + 2 * axis)
        numbers = _along(numbers, item.data, 3 + 2 * axis)
    letters = "stuvwxyz"
    tiles, inside = letters[:rank], letters[rank : 2 * rank]
    mixed = "".join(a + b for a, b in zip(tiles, inside, strict=True))
    total = np.einsum(f"nc{mixed},oc{inside}->no{mixed}", numbers, window, optimize=True)
    for axis, item in enumerate(built):
        total = _along(total, item.result, 3 + 2 * axis)
    whole = total.reshape(*total.shape[:2], *[count * tile for count in counts])
    kept = whole[(slice(None), slice(None), *[slice(location) for location in locations])]
    return np.asarray(kept * _gamma(roundings(tile, weight.shape[2:], weight.shape[1]), dtype))


def _along(array: np.ndarray, matrix: Matrix, axis: int) -> np.ndarray:
    """The magnitudes of a matrix times the array, along one dimension."""
    numbers = np.array([[float(number) for number in row] for row in absolute(matrix)])
    return np.moveaxis(np.tensordot(numbers, array, axes=(1, axis)), 0, axis)
