"""Pictures resized and sampled: resize (nearest, bilinear, bicubic), grid_sample.

Distribution: 2^12 to 2^21 elements of the result (log-uniform), channels 1, 3 or by `sizes.extent` up to 256, batch 1
(80 %), 2 or 4. Resizes: nearest 45 %, bilinear 40, of sizes (not scales) between a third and four times the source, by
whole factors for half of them, half-pixel coordinates (nearest: asymmetric and rounded down); uint8 for a quarter of
the nearest ones. grid_sample: bilinear, zeros outside, corners aligned or not. Other values are float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import unit
from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import exactly
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick

ELEMENTS = (2**12, 2**21)


def draw(rng: Rng) -> Case:
    """A case."""
    total = log_uniform(rng, *ELEMENTS)
    batch = pick(rng, (1, 2, 4), (80, 12, 8))
    channels = pick(rng, (1, 3, extent(rng, 256)), (15, 35, 50))
    pixels = max(total // (batch * channels), 16)
    high = max(round(pixels**0.5 * rng.uniform(0.6, 1.4)), 2)
    wide = max(pixels // high, 2)
    kind = pick(rng, ("nearest", "linear", "grid"), (45, 35, 20))
    if kind == "grid":
        source = (max(round(high * rng.uniform(0.5, 2)), 2), max(round(wide * rng.uniform(0.5, 2)), 2))
        return grid_sample(batch, channels, source, (high, wide), bool(rng.integers(2)))
    if rng.random() < 0.5:
        factor = pick(rng, (2, 3, 4))
        source = (max(high // factor, 1), max(wide // factor, 1))
        size = (source[0] * factor, source[1] * factor)
        if rng.random() < 0.3:
            source, size = size, source
    else:
        size = (high, wide)
        source = (max(round(high * rng.uniform(0.25, 3)), 2), max(round(wide * rng.uniform(0.25, 3)), 2))
    dtype = "uint8" if kind == "nearest" and rng.random() < 0.25 else "float32"
    return resize(kind, batch, channels, source, size, dtype)


def resize(kind: str, batch: int, channels: int, source: tuple[int, int], size: tuple[int, int], dtype: str) -> Case:
    """A picture of another size."""

    rows, columns = (np.arange(new) * old // new for old, new in zip(source, size))

    def exact(x: Any) -> list[Bounded]:
        if kind == "nearest":
            return [exactly(x[0][:, :, rows][:, :, :, columns])]
        value = x[0].astype("float64")
        value = _between(_between(value, 2, source[0], size[0]), 3, source[1], size[1])
        # A coordinate is rounded some times in float32: a weight is off by some units of the coordinate.
        off = 16 * unit() * (max(source) + 4) * 2 * np.abs(x[0]).max()
        return [Bounded(value, np.full(value.shape, off))]

    def in_te(x: Any) -> Any:
        from loopwright import topi

        mode = "asymmetric" if kind == "nearest" else "half_pixel"
        method = "nearest_neighbor" if kind == "nearest" else "linear"
        rounding = "floor" if kind == "nearest" else ""
        return topi.image.resize2d(x, [0.0] * 4, size, "NCHW", method, mode, rounding)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        if kind == "nearest":
            return t.nn.functional.interpolate(x[0], size, mode="nearest")
        return t.nn.functional.interpolate(x[0], size, mode="bilinear", align_corners=False)

    attributes = {"mode": kind, "coordinate_transformation_mode": "asymmetric" if kind == "nearest" else "half_pixel"}
    if kind == "nearest":
        attributes["nearest_mode"] = "floor"
    return Case(
        f"resize {kind}",
        [Input((batch, channels, *source), dtype, 0, 255 if dtype == "uint8" else 1)],
        [Output((batch, channels, *size), dtype)],
        exact,
        f"to {size[0]}×{size[1]}",
        in_te,
        [Step("Resize", ["x0", "", "", "sizes"], "y0", attributes)],
        {"sizes": np.asarray((batch, channels, *size), "int64")},
        (lambda x, out: x[0][:, :, rows[:, None], columns]) if kind == "nearest" else None,
        with_torch,
    )


def _between(x: Array, axis: int, old: int, new: int) -> Array:
    """Linear between the cells of an axis, at half-pixel coordinates."""
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    first = np.floor(at).astype(int)
    weight = (at - first).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    low, high = np.take(x, first, axis), np.take(x, np.minimum(first + 1, old - 1), axis)
    found: Array = low * (1 - weight) + high * weight
    return found


def grid_sample(batch: int, channels: int, source: tuple[int, int], size: tuple[int, int], corners: bool) -> Case:
    """A picture at the places of a grid in [-1.1, 1.1]; kernels have the grid with x and y first, others last."""

    def exact(x: Any) -> list[Bounded]:
        value, grid = x[0].astype("float64"), x[1].astype("float64")
        place = []
        for k, old in ((1, source[0]), (0, source[1])):
            at = grid[..., k]
            place.append((at + 1) / 2 * (old - 1) if corners else ((at + 1) * old - 1) / 2)
        y, z = place
        top, left = np.floor(y).astype(int), np.floor(z).astype(int)
        images = np.arange(batch)[:, None, None]
        found = np.zeros((batch, *size, channels))
        for row in (0, 1):
            for column in (0, 1):
                i, j = top + row, left + column
                weight = (1 - np.abs(y - i)) * (1 - np.abs(z - j))
                inside = (i >= 0) & (i < source[0]) & (j >= 0) & (j < source[1])
                read = value.transpose(0, 2, 3, 1)[images, np.clip(i, 0, source[0] - 1), np.clip(j, 0, source[1] - 1)]
                found += read * np.where(inside, weight, 0)[..., None]
        off = 16 * unit() * (max(source) + 4) * 2 * np.abs(x[0]).max()
        right = found.transpose(0, 3, 1, 2)
        return [Bounded(np.ascontiguousarray(right), np.full(right.shape, off))]

    def in_te(x: Any, grid: Any) -> Any:
        from loopwright import topi

        return topi.image.grid_sample(
            x, topi.transpose(grid, (0, 3, 1, 2)), "bilinear", "NCHW", "zeros", corners
        )

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        return t.nn.functional.grid_sample(x[0], x[1], "bilinear", "zeros", corners)

    return Case(
        "grid_sample",
        [Input((batch, channels, *source)), Input((batch, *size, 2), "float32", -1.1, 1.1)],
        [Output((batch, channels, *size))],
        exact,
        "corners aligned" if corners else "",
        in_te,
        [Step("GridSample", ["x0", "x1"], "y0", {"align_corners": int(corners), "mode": "linear"})],
        torch=with_torch,
    )
