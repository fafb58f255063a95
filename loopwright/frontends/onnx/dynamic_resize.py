"""Resize by factors, or to sizes, that are found when the model runs.

`ops/resize.py` makes a table for each axis: the places of the input that a place of the result is read from, and their
weights. Here the tables are expressions of the graph; every axis has one, for any of them may turn out to be resized.

    source = (at + 0.5) / scale - 0.5
    places = clip(ceil(source) - 1 + [0, 1], 0, before - 1)         (after, taps)
    x      = sum(take(x, places, axis) * weights, axis + 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.relay.expr import Expr


@dataclass(frozen=True)
class How:
    """How a tensor is resized, as the attributes say."""

    mode: str
    coordinates: str
    rounding: str
    alpha: float
    exclude: bool
    extrapolation: float
    antialias: bool


@dataclass(frozen=True)
class _Axis:
    """One axis: sizes before and after (float64), the factor in its own type, and the part of it that is read."""

    axis: int
    before: Expr
    after: Expr
    scale: Expr
    start: Expr | None
    end: Expr | None


def by_scales(node: Node, x: Expr, scales: Expr, over: Sequence[int], roi: Expr | None, how: How) -> Expr:
    """`x` with each axis of `over` as many times as long as the vector `scales` says."""
    _check_count(node, scales, over, "scales")
    before = _sizes_before(node, x, over)
    after = relay.floor(relay.multiply(before, relay.cast(scales, "float64")))
    return _resized(node, x, over, before, after, scales, roi, how)


def by_sizes(node: Node, x: Expr, sizes: Expr, over: Sequence[int], roi: Expr | None, how: How, policy: str) -> Expr:
    """`x` with the sizes of a vector; under a policy of the aspect ratio, with those nearest to them that keep it."""
    _check_count(node, sizes, over, "sizes")
    before, after = _sizes_before(node, x, over), relay.cast(sizes, "float64")
    scales = relay.divide(after, before)
    if policy != "stretch":
        one = (relay.min if policy == "not_larger" else relay.max)(scales, axis=[0], keepdims=True)
        scales = relay.multiply(one, node.const([1.0] * len(over), "float64"))
        after = relay.floor(relay.add(relay.multiply(scales, before), node.const(0.5, "float64")))
    return _resized(node, x, over, before, after, scales, roi, how)


def _check_count(node: Node, given: Expr, over: Sequence[int], words: str) -> None:
    (count,) = node.static_shape(given)
    if count != len(over):
        raise node.bad(f"{count} {words} are given for {len(over)} axes")


def _sizes_before(node: Node, x: Expr, over: Sequence[int]) -> Expr:
    return relay.cast(relay.take(relay.shape_of(x, dtype="int64"), node.const(list(over)), axis=0), "float64")


def _resized(
    node: Node, x: Expr, over: Sequence[int], before: Expr, after: Expr, scales: Expr, roi: Expr | None, how: How
) -> Expr:
    count = len(over)
    if how.coordinates != "tf_crop_and_resize":
        roi = None
    elif roi is None or node.static_shape(roi) != (2 * count,):
        raise node.bad(f"tf_crop_and_resize needs a region of interest of {2 * count} numbers")
    axes = [
        _Axis(
            axis,
            _element(before, k),
            _element(after, k),
            _element(scales, k),
            None if roi is None else relay.cast(_element(roi, k), "float64"),
            None if roi is None else relay.cast(_element(roi, k + count), "float64"),
        )
        for k, axis in enumerate(over)
    ]
    kind, outside = str(node.dtype(x)), []
    result = x if how.mode == "nearest" or kind in ("float32", "float64") else relay.cast(x, "float32")
    for one in axes:
        at = relay.arange(node.const(0), relay.cast(one.after, "int64"), node.const(1), dtype="int64")
        source = relay.cast(_source(node, one, relay.cast(at, str(node.dtype(scales))), how), "float64")
        # An axis that stays as it is is not read anew, whatever rounding would make of it.
        source = relay.where(_is_unchanged(node, one), relay.cast(at, "float64"), source)
        if roi is not None:
            above = relay.greater(source, relay.subtract(one.before, node.const(1.0, "float64")))
            outside.append((one.axis, relay.logical_or(relay.less(source, node.const(0.0, "float64")), above)))
        result = _read(node, result, one, source, how)
    result = relay.cast(result, kind)
    for axis, mask in outside:
        spread = relay.expand_dims(mask, axis=1, num_newaxis=node.rank(x) - 1 - axis)
        result = relay.where(spread, node.const(how.extrapolation, kind), result)
    return result


def _element(vector: Expr, k: int) -> Expr:
    return relay.reshape(relay.strided_slice(vector, begin=[k], end=[k + 1]), ())


def _is_unchanged(node: Node, one: _Axis) -> Expr:
    same = relay.logical_and(relay.equal(one.before, one.after), relay.equal(one.scale, node.const(1, one.scale)))
    if one.start is None or one.end is None:
        return same
    whole = relay.logical_and(
        relay.equal(one.start, node.const(0.0, "float64")), relay.equal(one.end, node.const(1.0, "float64"))
    )
    return relay.logical_and(same, whole)


def _source(node: Node, one: _Axis, at: Expr, how: How) -> Expr:
    """Where the places of the result lie in the axis as it was; a scale that is a float32 is reckoned with as such."""
    kind = str(node.dtype(at))

    def number(value: float) -> Expr:
        return node.const(value, kind)

    before, after = relay.cast(one.before, kind), relay.cast(one.after, kind)
    width, last = relay.multiply(one.scale, before), relay.subtract(before, number(1))
    is_one = relay.equal(width, number(1))
    half_pixel = relay.subtract(relay.divide(relay.add(at, number(0.5)), one.scale), number(0.5))
    match how.coordinates:
        case "align_corners":
            along = relay.divide(relay.multiply(at, last), relay.subtract(width, number(1)))
            return relay.where(is_one, number(0), along)
        case "asymmetric":
            return relay.divide(at, one.scale)
        case "tf_half_pixel_for_nn":
            return relay.divide(relay.add(at, number(0.5)), one.scale)
        case "tf_crop_and_resize":
            assert one.start is not None and one.end is not None
            start, end = relay.cast(one.start, kind), relay.cast(one.end, kind)
            span = relay.multiply(relay.subtract(end, start), last)
            along = relay.divide(relay.multiply(at, span), relay.subtract(width, number(1)))
            along = relay.where(is_one, relay.divide(span, number(2)), along)
            return relay.add(along, relay.multiply(start, last))
        case "half_pixel_symmetric":
            rest = relay.subtract(number(1), relay.divide(after, width))
            return relay.add(relay.multiply(relay.divide(before, number(2)), rest), half_pixel)
        case "pytorch_half_pixel":
            return relay.where(relay.equal(after, number(1)), number(0), half_pixel)
        case _:
            return half_pixel


def _read(node: Node, x: Expr, one: _Axis, source: Expr, how: How) -> Expr:
    """One axis read at the places `source`."""
    last = relay.cast(relay.subtract(one.before, node.const(1.0, "float64")), "int64")
    if how.mode == "nearest":
        return relay.take(x, _clipped(node, relay.cast(_nearest(node, source, how.rounding), "int64"), last), one.axis)
    # The left neighbour of a place is below it, never at it: what is left over is above 0, and at most 1.
    left = relay.subtract(relay.ceil(source), node.const(1.0, "float64"))
    offsets, shrink = _offsets(node, one, how)
    distance = relay.subtract(offsets, relay.expand_dims(relay.subtract(source, left), axis=1))
    distance = distance if shrink is None else relay.multiply(distance, shrink)
    weights = _linear(node, distance) if how.mode == "linear" else _cubic(node, distance, how.alpha)
    places = relay.cast(relay.add(relay.expand_dims(left, axis=1), offsets), "int64")
    if how.exclude:
        inside = relay.logical_and(relay.greater_equal(places, node.const(0)), relay.less_equal(places, last))
        weights = relay.where(inside, weights, node.const(0.0, "float64"))
    if how.exclude or how.antialias:
        weights = relay.divide(weights, relay.sum(weights, axis=[1], keepdims=True))
    weights = relay.cast(weights, str(node.dtype(x)))
    weights = relay.expand_dims(weights, axis=2, num_newaxis=node.rank(x) - 1 - one.axis)
    used = relay.take(x, _clipped(node, places, last), axis=one.axis)
    return relay.sum(relay.multiply(used, weights), axis=[one.axis + 1])


def _clipped(node: Node, places: Expr, last: Expr) -> Expr:
    return relay.maximum(relay.minimum(places, last), node.const(0))


def _offsets(node: Node, one: _Axis, how: How) -> tuple[Expr, Expr | None]:
    """Which neighbours are read, from the left one on; against aliasing more of them, and the factor of distances."""
    reach = 1 if how.mode == "linear" else 2
    if not how.antialias:
        return node.const(np.arange(1 - reach, 1 + reach), "float64"), None
    shrink = relay.minimum(relay.cast(one.scale, "float64"), node.const(1.0, "float64"))
    below = relay.floor(relay.divide(node.const(-float(reach), "float64"), shrink))
    first = relay.add(relay.cast(below, "int64"), node.const(1))
    numbers = relay.arange(first, relay.subtract(node.const(2), first), node.const(1), dtype="int64")
    return relay.cast(numbers, "float64"), shrink


def _nearest(node: Node, source: Expr, rounding: str) -> Expr:
    half = node.const(0.5, "float64")
    match rounding:
        case "floor":
            return relay.floor(source)
        case "ceil":
            return relay.ceil(source)
        case "round_prefer_ceil":
            return relay.floor(relay.add(source, half))
        case _:
            return relay.ceil(relay.subtract(source, half))


def _linear(node: Node, distance: Expr) -> Expr:
    return relay.clip(relay.subtract(node.const(1.0, "float64"), relay.abs(distance)), 0.0, 1.0)


def _cubic(node: Node, distance: Expr, alpha: float) -> Expr:
    x = relay.abs(distance)

    def polynomial(*factors: float) -> Expr:
        result: Expr = node.const(factors[0], "float64")
        for factor in factors[1:]:
            result = relay.add(relay.multiply(result, x), node.const(factor, "float64"))
        return result

    near, far = polynomial(alpha + 2, -(alpha + 3), 0.0, 1.0), polynomial(alpha, -5 * alpha, 8 * alpha, -4 * alpha)
    beyond = relay.where(relay.less(x, node.const(2.0, "float64")), far, node.const(0.0, "float64"))
    return relay.where(relay.less_equal(x, node.const(1.0, "float64")), near, beyond)
