"""The matrices of F(m, r): m results of a window of r numbers, from m + r - 1 products instead of m · r.

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]            y[i] = Σ_k g[k] d[i + k],   0 ≤ i < m,  0 ≤ k < r

They come from Cook and Toom: polynomials are multiplied at points, here turned around (transposed) so that they filter.
With the finite points p_j, and the point at infinity last:

    Aᵀ[i, j] = p_j^i                              last column: 1 in the last row
    G[j, k]  = p_j^k / Π_{l ≠ j} (p_j - p_l)      last row: 1 in the last column
    Bᵀ[j]    = coefficients of Π_{l ≠ j} (x - p_l)    last row: those of Π_l (x - p_l)

All numbers are exact fractions. `check` multiplies them out and compares with the definition, coefficient by
coefficient: that is the proof, whatever the points are. In two dimensions the matrices act on rows, then on columns;
the identity of one dimension, used twice, is that of two.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Final, NamedTuple

Matrix = tuple[tuple[Fraction, ...], ...]

# The finite points, by how many there are. Pairs ±p share sums; numbers near 1, below and above, keep all powers small.
# For F(4, 3) nine sets were tried on random numbers: 0 ±3/4 ±3/2 has a quarter of the largest error of the usual
# 0 ±1 ±2 (half of its root mean square). For F(6, 3) four were tried, and none was clearly better than this one.
_POINTS: Final = {
    1: "0",
    2: "0 -1",
    3: "0 1 -1",
    4: "0 -1 1/2 2",
    5: "0 3/4 -3/4 3/2 -3/2",
    6: "0 -1 1/2 -1/2 2 -2",
    7: "0 1 -1 1/2 -1/2 2 -2",
    8: "0 1 -1 1/2 -1/2 2 -2 4",
    9: "0 3/4 -3/4 4/3 -4/3 3 -3 1/3 -1/3",
}
MOST_POINTS: Final = max(_POINTS) + 1  # with the one at infinity; beyond, rounding eats up what float32 has


class Transforms(NamedTuple):
    """F(tile, window): results Aᵀ, weights G, data Bᵀ."""

    tile: int
    window: int
    result: Matrix  # tile × size
    weight: Matrix  # size × window
    data: Matrix  # size × size

    @property
    def size(self) -> int:
        """How many products there are, and how many numbers of the data a tile reads."""
        return self.tile + self.window - 1


@cache
def transforms(tile: int, window: int) -> Transforms:
    """The matrices of F(tile, window)."""
    size = tile + window - 1
    if tile < 1 or window < 1 or size > MOST_POINTS or size < 2:
        raise ValueError(f"F({tile}, {window}) needs {size} points; there are matrices for 2 to {MOST_POINTS}")
    points = [Fraction(text) for text in _POINTS[size - 1].split()]
    one, none = Fraction(1), Fraction(0)
    result = tuple((*[point**power for point in points], one if power == tile - 1 else none) for power in range(tile))
    weight = [tuple([point**power / _distance(points, point) for power in range(window)]) for point in points]
    weight.append(tuple([one if power == window - 1 else none for power in range(window)]))
    data = [(*_product([other for other in points if other != point]), none) for point in points]
    data.append(_product(points))
    return Transforms(tile, window, result, tuple(weight), tuple(data))


def check(result: Transforms) -> str | None:
    """None when the matrices compute the filter for all numbers; else the first coefficient that is wrong, in words.

    Both sides are linear in every g[k] and every d[l], so they are equal for all numbers exactly when the coefficients
    of all products g[k] d[l] are: there are tile · window · size of them.
    """
    for i in range(result.tile):
        for k in range(result.window):
            for n in range(result.size):
                found = sum([result.result[i][j] * result.weight[j][k] * result.data[j][n] for j in range(result.size)])
                if found != (1 if n == i + k else 0):
                    return f"F({result.tile}, {result.window}): y[{i}] has {found} times g[{k}] d[{n}]"
    return None


def _distance(points: list[Fraction], point: Fraction) -> Fraction:
    result = Fraction(1)
    for other in points:
        if other != point:
            result *= point - other
    return result


def _product(roots: list[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of Π (x - root), the constant one first."""
    result = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *result]
        result = [high - root * low for high, low in zip(shifted, [*result, Fraction(0)], strict=True)]
    return tuple(result)


def absolute(matrix: Matrix) -> Matrix:
    """The matrix of the magnitudes."""
    return tuple([tuple([abs(number) for number in row]) for row in matrix])
