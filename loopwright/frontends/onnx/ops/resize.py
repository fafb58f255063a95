"""Resize and Upsample.

An axis that is resized is a table: for each place of the result the places it is read from, and their weights. ONNX
says how the table is made, and with sizes that are numbers it is made here, exactly. The usual cases (two or three
spatial axes, the factor being the quotient of the sizes) are relay's `image.resize`, which works out the places itself
and may have sizes that are no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Final

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx import dynamic_resize
from loopwright.frontends.onnx.dynamic_resize import How
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import divide_down, times
from loopwright.relay.types import Dim, same_dim

_MODES: Final = ("nearest", "linear", "cubic")
_COORDINATES: Final = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_LAYOUTS: Final = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
_FEW_TAPS: Final = 4  # beyond that an axis is a product with a matrix


@dataclass(frozen=True)
class _Axis:
    """One axis: its sizes before and after, and the factor by which coordinates are computed, in the type it has."""

    axis: int
    before: Dim
    after: Dim
    scale: float | np.float32
    start: float = 0.0
    end: float = 1.0

    @property
    def is_exact(self) -> bool:
        """Whether the factor is the quotient of the sizes."""
        if not isinstance(self.before, int) or not isinstance(self.after, int):
            return True
        error, most = self.scale * self.before - self.after, 1e-6 * max(self.after, 1)
        return bool(-most < error < most)


@converter("Upsample", since=1)
def upsample_attributes(node: Node, x: Expr) -> Expr:
    scales = node.attr("scales", None)
    if scales is None:
        scales = [1.0, 1.0, node.attr("height_scale"), node.attr("width_scale")]
    return _upsampled(node, x, scales)


@converter("Upsample", since=9)
@converter("Resize", since=10)
def upsample(node: Node, x: Expr, scales: Expr) -> Expr:
    if _is_found_later(node, scales):
        return dynamic_resize.by_scales(node, x, scales, range(node.rank(x)), None, _how_upsampled(node))
    return _upsampled(node, x, [float(one) for one in node.value(scales).reshape(-1)])


def _upsampled(node: Node, x: Expr, scales: Sequence[float]) -> Expr:
    return _resized(node, x, _scaled_axes(node, x, scales, list(range(node.rank(x)))), _how_upsampled(node))


def _how_upsampled(node: Node) -> How:
    mode = node.attr("mode", "nearest")
    mode = {"bilinear": "linear"}.get(mode, mode)
    if mode not in ("nearest", "linear"):
        raise node.invalid("mode", mode, "nearest or linear")
    return How(mode, "asymmetric", "floor", -0.75, False, 0.0, False)


def _is_found_later(node: Node, *inputs: Expr | None) -> bool:
    """Whether one of the inputs is known only when the model runs, and may be used then."""
    return node.importer.dynamic and any(one is not None and node.known(one) is None for one in inputs)


@converter("Resize", since=11)
def resize(node: Node, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None) -> Expr:
    how = How(
        _choice(node, "mode", "nearest", _MODES),
        _choice(node, "coordinate_transformation_mode", "half_pixel", _COORDINATES),
        _choice(node, "nearest_mode", "round_prefer_floor", _ROUNDINGS),
        node.attr("cubic_coeff_a", -0.75),
        bool(node.attr("exclude_outside", 0)),
        node.attr("extrapolation_value", 0.0),
        bool(node.attr("antialias", 0)),
    )
    rank = node.rank(x)
    over = [node.axis(axis, rank) for axis in node.attr("axes", list(range(rank)))]
    region = roi if how.coordinates == "tf_crop_and_resize" else None
    if sizes is not None and _is_given(node, sizes):
        policy = _policy(node)
        if _is_found_later(node, sizes, region):
            return dynamic_resize.by_sizes(node, x, sizes, over, roi, how, policy)
        axes = _sized_axes(node, x, node.sizes(sizes), over)
    elif scales is not None and _is_given(node, scales):
        if _is_found_later(node, scales, region):
            return dynamic_resize.by_scales(node, x, scales, over, roi, how)
        axes = _scaled_axes(node, x, [float(one) for one in node.value(scales).reshape(-1)], over)
    else:
        raise node.bad("neither scales nor sizes are given")
    if how.coordinates == "tf_crop_and_resize":
        axes = _with_region(node, axes, roi, over)
    return _resized(node, x, axes, how)


def _choice(node: Node, name: str, default: str, allowed: Sequence[str]) -> str:
    given = node.attr(name, default)
    if given not in allowed:
        raise node.invalid(name, given, ", ".join(allowed))
    return str(given)


def _policy(node: Node) -> str:
    return _choice(node, "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))


def _is_given(node: Node, x: Expr) -> bool:
    """Whether an input has elements: one without any stands for one that is left out."""
    return node.shape(x) != (0,)


def _scaled_axes(node: Node, x: Expr, scales: Sequence[float], over: Sequence[int]) -> list[_Axis]:
    shape = node.shape(x)
    if len(scales) != len(over):
        raise node.bad(f"{len(scales)} scales are given for {len(over)} axes")
    result = []
    for axis, scale in zip(over, scales):
        if not scale > 0:
            raise node.bad(f"a scale is {scale}")
        before = shape[axis]
        if isinstance(before, int):
            after: Dim = math.floor(before * scale)
        else:
            part = Fraction(scale).limit_denominator(1 << 10)
            if part.denominator != 1 or abs(float(part) - scale) > 1e-6 * scale:
                raise node.sizes_needed(f"the size {before} of axis {axis} is scaled by {scale}", [before])
            after = divide_down(times(before, part.numerator), 1)
        result.append(_Axis(axis, before, after, np.float32(scale)))
    return result


def _sized_axes(node: Node, x: Expr, sizes: Sequence[int | PrimExpr], over: Sequence[int]) -> list[_Axis]:
    shape = node.shape(x)
    if len(sizes) != len(over):
        raise node.bad(f"{len(sizes)} sizes are given for {len(over)} axes")
    policy = _policy(node)
    if policy != "stretch":
        before = [node.static_shape(x)[axis] for axis in over]
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(numbers) != len(sizes):
            raise node.bad(f"keep_aspect_ratio_policy {policy} needs sizes that are numbers")
        factors = [size / one for size, one in zip(numbers, before)]
        scale = min(factors) if policy == "not_larger" else max(factors)
        return [_Axis(axis, one, math.floor(scale * one + 0.5), scale) for axis, one in zip(over, before)]
    result = []
    for axis, size in zip(over, sizes):
        given = shape[axis]
        if isinstance(size, int) and size < 1:
            raise node.bad(f"a size is {size}")
        quotient = size / given if isinstance(size, int) and isinstance(given, int) and given else 1.0
        result.append(_Axis(axis, given, size, quotient))
    return result


def _with_region(node: Node, axes: Sequence[_Axis], roi: Expr | None, over: Sequence[int]) -> list[_Axis]:
    if roi is None or not _is_given(node, roi):
        raise node.bad("tf_crop_and_resize needs a region of interest")
    region = [float(one) for one in node.value(roi).reshape(-1)]
    if len(region) != 2 * len(over):
        raise node.bad(f"the region of interest has {len(region)} numbers for {len(over)} axes")
    count = len(over)
    return [
        _Axis(one.axis, one.before, one.after, one.scale, region[k], region[k + count]) for k, one in enumerate(axes)
    ]


def _resized(node: Node, x: Expr, axes: Sequence[_Axis], how: How) -> Expr:
    changed = [
        one
        for one in axes
        if not same_dim(one.before, one.after) or not one.is_exact or (one.start, one.end) != (0.0, 1.0)
    ]
    if not changed:
        return x
    after = list(node.shape(x))
    for one in changed:
        after[one.axis] = one.after
    is_relay = _fits_relay(node, x, changed, how)
    # Relay's operator has the call say so where it is the call that gives the size of another axis.
    is_open = is_relay and any(not isinstance(size, int) for size in after)
    is_empty = any(isinstance(size, int) and size == 0 for size in after)
    for one in changed:
        if isinstance(one.before, int) and one.before == 0 and not is_empty and not is_open:
            raise node.bad(f"axis {one.axis} has no elements, and {one.after} are to be made of them")
    if is_relay:
        return _by_relay(node, x, changed, how)
    for one in changed:
        if not isinstance(one.before, int) or not isinstance(one.after, int):
            raise node.sizes_needed(f"axis {one.axis} of size {one.before} is resized", [one.before])
    return _by_tables(node, x, changed, how)


# By relay's operator.


def _fits_relay(node: Node, x: Expr, changed: Sequence[_Axis], how: How) -> bool:
    rank = node.rank(x)
    return (
        rank in _LAYOUTS
        and all(one.axis >= 2 and one.is_exact for one in changed)
        and how.coordinates != "tf_crop_and_resize"
        and not how.antialias
        and (how.mode == "nearest" or str(node.dtype(x)) in ("float32", "float64"))
        and not (how.coordinates == "tf_half_pixel_for_nn" and how.mode != "nearest")
    )


def _by_relay(node: Node, x: Expr, changed: Sequence[_Axis], how: How) -> Expr:
    shape = node.shape(x)
    size = list(shape[2:])
    for one in changed:
        size[one.axis - 2] = one.after
    # The factor is that of the sizes: what is symmetric about the middle is so already.
    coordinates = "half_pixel" if how.coordinates == "half_pixel_symmetric" else how.coordinates
    function = (relay.image.resize1d, relay.image.resize2d, relay.image.resize3d)[len(size) - 1]
    return function(
        x,
        tuple(size),
        layout=_LAYOUTS[len(shape)],
        method={"nearest": "nearest_neighbor"}.get(how.mode, how.mode),
        coordinate_transformation_mode=coordinates,
        rounding_method=how.rounding if how.mode == "nearest" else "",
        cubic_alpha=how.alpha,
        cubic_exclude=int(how.exclude),
    )


# By tables.


@dataclass(frozen=True)
class _Table:
    """For each place of the result: the places it is read from, their weights, and whether it is outside."""

    places: np.ndarray  # results, taps
    weights: np.ndarray
    outside: np.ndarray


def _source(one: _Axis, how: How) -> np.ndarray:
    """Where the places of the result lie in the axis as it was."""
    assert isinstance(one.before, int) and isinstance(one.after, int)
    # A scale of 0.6 is a float32, and 1.5 / 0.6 is 2.5 in such numbers only.
    at: np.ndarray = np.arange(one.after).astype(np.float32 if isinstance(one.scale, np.float32) else np.float64)
    before, width = float(one.before), one.scale * one.before
    match how.coordinates:
        case "align_corners":
            return np.zeros_like(at) if width == 1 else at * (before - 1) / (width - 1)
        case "asymmetric":
            return at / one.scale
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / one.scale
        case "tf_crop_and_resize":
            span = (one.end - one.start) * (before - 1)
            along = np.full_like(at, span / 2) if width == 1 else at * span / (width - 1)
            return along + one.start * (before - 1)
        case "half_pixel_symmetric":
            offset = before / 2 * (1 - one.after / width)
            return offset + (at + 0.5) / one.scale - 0.5
        case "pytorch_half_pixel" if one.after == 1:
            return np.zeros_like(at)  # the text of Resize-11 and later; the reference implementation has -0.5
        case _:
            return (at + 0.5) / one.scale - 0.5


def _cubic(distance: np.ndarray, alpha: float) -> np.ndarray:
    x = np.abs(distance)
    near = ((alpha + 2) * x - (alpha + 3)) * x * x + 1
    far = ((alpha * x - 5 * alpha) * x + 8 * alpha) * x - 4 * alpha
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _table(one: _Axis, how: How) -> _Table:
    assert isinstance(one.before, int)
    source = _source(one, how).astype(np.float64)
    outside = np.zeros(source.shape, bool)
    if how.coordinates == "tf_crop_and_resize":
        outside = (source < 0) | (source > one.before - 1)
    if how.mode == "nearest":
        locations = _nearest(source, how.rounding)[:, None]
        weights = np.ones_like(source)[:, None]
        return _Table(np.clip(locations, 0, one.before - 1), weights, outside)
    # The left neighbour of a place is below it, never at it: what is left over is above 0, and at most 1.
    left = np.ceil(source) - 1
    rest = (source - left)[:, None]
    reach = 1 if how.mode == "linear" else 2
    shrink = min(float(one.scale), 1.0) if how.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    offsets = np.arange(first, 2 - first)[None, :]
    distance = (offsets - rest) * shrink
    weights = np.clip(1 - np.abs(distance), 0, 1) if how.mode == "linear" else _cubic(distance, how.alpha)
    locations = (left[:, None] + offsets).astype(np.int64)
    if how.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    if how.exclude:
        weights = np.where((locations >= 0) & (locations < one.before), weights, 0.0)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return _Table(np.clip(locations, 0, one.before - 1), weights, outside)


def _nearest(source: np.ndarray, rounding: str) -> np.ndarray:
    match rounding:
        case "floor":
            result = np.floor(source)
        case "ceil":
            result = np.ceil(source)
        case "round_prefer_ceil":
            result = np.floor(source + 0.5)
        case _:
            result = np.ceil(source - 0.5)
    return result.astype(np.int64)


def _by_tables(node: Node, x: Expr, changed: Sequence[_Axis], how: How) -> Expr:
    kind = node.dtype(x)
    tables = [(one.axis, _table(one, how)) for one in changed]
    if how.mode == "nearest":
        for axis, table in tables:
            x = relay.take(x, node.const(table.places[:, 0]), axis=axis)
    else:
        real = x if str(kind) in ("float32", "float64") else node.cast(x, "float32")
        for axis, table in tables:
            real = _interpolated(node, real, axis, table)
        x = node.cast(real, kind)
    rank = node.rank(x)
    for axis, table in tables:
        if table.outside.any():
            mask = table.outside.reshape([-1 if k == axis else 1 for k in range(rank)])
            x = relay.where(node.const(mask, "bool"), node.const(how.extrapolation, x), x)
    return x


def _interpolated(node: Node, x: Expr, axis: int, table: _Table) -> Expr:
    rank = node.rank(x)
    results, taps = table.places.shape
    if taps > _FEW_TAPS:
        return _by_matrix(node, x, axis, table)
    parts: list[Expr] = []
    used = [tap for tap in range(taps) if table.weights[:, tap].any()]
    for tap in used or [0]:  # a result without places has no weights either
        weights = table.weights[:, tap].reshape([results if k == axis else 1 for k in range(rank)])
        part = relay.multiply(relay.take(x, node.const(table.places[:, tap]), axis=axis), node.const(weights, x))
        parts.append(part)
    return reduce(relay.add, parts)


def _by_matrix(node: Node, x: Expr, axis: int, table: _Table) -> Expr:
    """Many weights for each place: the axis, as the last one, times a matrix."""
    shape = node.shape(x)
    rank = len(shape)
    results, _ = table.places.shape
    size = shape[axis]
    assert isinstance(size, int)
    matrix = np.zeros((results, size))
    np.add.at(matrix, (np.arange(results)[:, None], table.places), table.weights)
    order = [k for k in range(rank) if k != axis] + [axis]
    rows = [shape[k] for k in order[:-1]]
    flat = relay.reshape(relay.transpose(x, axes=order), (times(*rows), size), allowzero=True)
    result = relay.reshape(relay.nn.dense(flat, node.const(matrix, x)), (*rows, results), allowzero=True)
    return relay.transpose(result, axes=[order.index(k) for k in range(rank)])
