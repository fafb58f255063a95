"""Pictures of other sizes, and pictures sampled at a grid of places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.types import Dim

# How much larger a result is: for one axis, or for all of them; None where only its size is given.
Scale: TypeAlias = float | Sequence[float | None] | None

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@converter("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
@converter("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
def nearest(node: Node, x: Expr, output_size: object = None, *scales: Scale) -> Expr:
    return _resized(node, x, "nearest", False, scales)


@converter("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def linear(node: Node, x: Expr, output_size: object, align_corners: bool = False, *scales: Scale) -> Expr:
    return _resized(node, x, "linear", align_corners, scales)


@converter("upsample_bicubic2d")
def cubic(node: Node, x: Expr, output_size: object, align_corners: bool = False, *scales: Scale) -> Expr:
    return _resized(node, x, "cubic", align_corners, scales)


def _resized(node: Node, x: Expr, method: str, align: bool, scales: Sequence[Scale]) -> Expr:
    rank = node.rank(x) - 2
    given, wanted = node.shape(x)[2:], node.out_shape()[2:]
    flat = [one for given in scales for one in (given if isinstance(given, Sequence) else [given])]
    factors = [*flat, *[None] * rank][:rank]
    exact = "exact" in node.op
    plain = align or all(_divides(size, out, factor) for size, out, factor in zip(given, wanted, factors))
    if plain and not exact:
        mode = "align_corners" if align else "asymmetric" if method == "nearest" else "half_pixel"
        function = (relay.image.resize1d, relay.image.resize2d, relay.image.resize3d)[rank - 1]
        return function(
            node.cast(x, node.sum_dtype(x)),
            list(wanted),
            layout=_LAYOUTS[rank],
            method="nearest_neighbor" if method == "nearest" else method,
            coordinate_transformation_mode=mode,
            rounding_method="floor" if method == "nearest" else "",
            cubic_alpha=-0.75,
        )
    result = node.cast(x, node.sum_dtype(x))
    sizes = node.static_shape(x)[2:]
    for k, (size, out, factor) in enumerate(zip(sizes, wanted, factors)):
        if not isinstance(out, int):
            raise node.unsupported("a size that is no number, with a factor that does not divide")
        ratio = 1 / factor if factor is not None else size / out
        result = _along(node, result, k + 2, _taps(size, out, ratio, "exact" if exact else method))
    return result


def _divides(size: Dim, out: Dim, factor: float | None) -> bool:
    """Whether the factor says the same as the two sizes do."""
    if factor is None:
        return True
    if isinstance(size, int) and isinstance(out, int):
        return abs(size * factor - out) < 1e-9
    return float(factor).is_integer()


def _taps(size: int, out: int, ratio: float, method: str) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """The elements that each result is made of: their places, and how much each counts (None: all)."""
    locations = np.arange(out)
    if method in ("nearest", "exact"):
        at = np.floor(locations * ratio) if method == "nearest" else np.floor((locations + 0.5) * ratio)
        return [(np.minimum(at.astype(np.int64), size - 1), None)]
    at = (locations + 0.5) * ratio - 0.5
    if method == "linear":
        at = np.maximum(at, 0)
        low = np.minimum(np.floor(at).astype(np.int64), size - 1)
        part = np.minimum(at - low, 1.0)
        return [(low, 1 - part), (np.minimum(low + 1, size - 1), part)]
    low = np.floor(at).astype(np.int64)
    part = at - low
    weights = [_cubic(part + 1), _cubic(part), _cubic(1 - part), _cubic(2 - part)]
    return [(np.clip(low + k - 1, 0, size - 1), weight) for k, weight in enumerate(weights)]


def _cubic(distance: np.ndarray, a: float = -0.75) -> np.ndarray:
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _along(node: Node, x: Expr, axis: int, taps: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> Expr:
    behind = node.rank(x) - axis - 1
    parts: list[Expr] = []
    for locations, weight in taps:
        part = relay.take(x, node.const(locations), axis=axis)
        if weight is not None:
            part = relay.multiply(part, node.const(weight.reshape(-1, *[1] * behind), x))
        parts.append(part)
    return reduce(relay.add, parts)


@converter("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(node: Node, x: Expr, grid: Expr, interpolation: int, padding: int, align_corners: bool) -> Expr:
    rank = node.rank(x)
    locations = relay.transpose(grid, axes=[0, rank - 1, *range(1, rank - 1)])
    return relay.image.grid_sample(
        x,
        locations,
        method=("bilinear", "nearest", "bicubic")[interpolation],
        layout=_LAYOUTS[rank - 2],
        padding_mode=("zeros", "border", "reflection")[padding],
        align_corners=align_corners,
    )
