"""Stencils: what users write as a tensor expression of neighbours, and as slices in numpy or torch.

Distribution: 2^13 to 2^21 elements (log-uniform), last axis by `sizes.extent` (16 at least); differences along the last
or the first axis, three-point means of a row, the Laplacian of five points, means of 3 × 3, an average of two by two
pixels, and a gradient's size from two differences; float32 85 %, float64 15. Ours is always a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded
from benchmarks.sweep.case import Case, Input, Output
from benchmarks.sweep.errors import Rounded
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick

ELEMENTS = (2**13, 2**21)
Tap = tuple[int, int, float]  # rows down, columns right, weight

KINDS: dict[str, Sequence[Tap]] = {
    "difference of columns": [(0, 1, 1.0), (0, 0, -1.0)],
    "difference of rows": [(1, 0, 1.0), (0, 0, -1.0)],
    "mean of three": [(0, 0, 0.25), (0, 1, 0.5), (0, 2, 0.25)],
    "laplacian": [(0, 1, 1.0), (1, 0, 1.0), (1, 1, -4.0), (1, 2, 1.0), (2, 1, 1.0)],
    "mean of 3×3": [(row, column, 1 / 9) for row in range(3) for column in range(3)],
}


def draw(rng: Rng) -> Case:
    """A case."""
    kind = pick(rng, [*KINDS, "two by two", "gradient"])
    dtype = "float32" if rng.random() < 0.85 else "float64"
    columns = extent(rng, 4100, 16)
    rows = max(log_uniform(rng, *ELEMENTS) // columns, 4)
    if kind == "two by two":
        return _halved(rows, columns, dtype)
    return _gradient(rows, columns, dtype) if kind == "gradient" else _weighted(kind, rows, columns, dtype)


def _weighted(kind: str, rows: int, columns: int, dtype: str) -> Case:
    taps = KINDS[kind]
    high, wide = rows - max([tap[0] for tap in taps]), columns - max([tap[1] for tap in taps])

    def parts(x: Any) -> list[tuple[Any, float]]:
        return [(x[row : row + high, column : column + wide], weight) for row, column, weight in taps]

    def total(x: Any, times: Callable[[Any, float], Any]) -> Any:
        (first, weight), *rest = parts(x)
        found = times(first, weight)
        for part, weight in rest:
            found = found - part if weight == -1 else found + times(part, weight)
        return found

    def exact(x: Any) -> list[Bounded]:
        (first, weight), *rest = parts(x[0])
        found = Rounded.of(first) * weight
        for part, weight in rest:
            found = found + Rounded.of(part) * weight
        return [found.bounded(3)]

    def in_te(x: Any) -> Any:
        from loopwright import te

        def cell(i: Any, j: Any) -> Any:
            (row, column, weight), *rest = taps
            found = x[i + row, j + column] * weight
            for row, column, weight in rest:
                found = found + x[i + row, j + column] * weight
            return found

        return te.compute((high, wide), cell, name="stencil")

    def times(part: Any, weight: float) -> Any:
        return part if weight == 1 else part * weight

    return Case(
        kind,
        [Input((rows, columns), dtype)],
        [Output((high, wide), dtype)],
        exact,
        "",
        in_te,
        numpy=lambda x, out: total(x[0], times),
        torch=lambda t, x, out: total(x[0], times),
    )


def _halved(rows: int, columns: int, dtype: str) -> Case:
    high, wide = rows // 2, columns // 2

    def total(x: Any) -> Any:
        even, odd = x[0 : 2 * high : 2], x[1 : 2 * high : 2]
        left, right = slice(0, 2 * wide, 2), slice(1, 2 * wide, 2)
        return (even[:, left] + even[:, right] + odd[:, left] + odd[:, right]) * 0.25

    def exact(x: Any) -> list[Bounded]:
        cells = Rounded.of(x[0][: 2 * high, : 2 * wide].reshape(high, 2, wide, 2))
        return [cells.mean((1, 3), keepdims=False).bounded(2)]

    def in_te(x: Any) -> Any:
        from loopwright import te

        def cell(i: Any, j: Any) -> Any:
            upper, lower = x[2 * i, 2 * j] + x[2 * i, 2 * j + 1], x[2 * i + 1, 2 * j] + x[2 * i + 1, 2 * j + 1]
            return (upper + lower) * 0.25

        return te.compute((high, wide), cell, name="halved")

    return Case(
        "two by two",
        [Input((rows, columns), dtype)],
        [Output((high, wide), dtype)],
        exact,
        "",
        in_te,
        numpy=lambda x, out: total(x[0]),
        torch=lambda t, x, out: t.nn.functional.avg_pool2d(x[0][None, None], 2)[0, 0],
    )


def _gradient(rows: int, columns: int, dtype: str) -> Case:
    high, wide = rows - 1, columns - 1

    def parts(x: Any) -> tuple[Any, Any]:
        here = x[:high, :wide]
        return x[1:, :wide] - here, x[:high, 1:] - here

    def exact(x: Any) -> list[Bounded]:
        here = Rounded.of(x[0][:high, :wide])
        down, right = Rounded.of(x[0][1:, :wide]) - here, Rounded.of(x[0][:high, 1:]) - here
        return [(down * down + right * right).sqrt().bounded(2)]

    def in_te(x: Any) -> Any:
        from loopwright import te

        def cell(i: Any, j: Any) -> Any:
            down, right = x[i + 1, j] - x[i, j], x[i, j + 1] - x[i, j]
            return te.sqrt(down * down + right * right)

        return te.compute((high, wide), cell, name="gradient")

    def with_numpy(x: Any, out: Any) -> Any:
        down, right = parts(x[0])
        return np.sqrt(down * down + right * right, out=out[0])

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        down, right = parts(x[0])
        return t.hypot(down, right)

    return Case(
        "gradient",
        [Input((rows, columns), dtype)],
        [Output((high, wide), dtype)],
        exact,
        "",
        in_te,
        numpy=with_numpy,
        torch=with_torch,
    )
