"""Detectors: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr


@converter("NonMaxSuppression", since=10)
def non_max_suppression(
    node: Node,
    boxes: Expr,
    scores: Expr,
    most: Expr | None = None,
    overlap: Expr | None = None,
    least: Expr | None = None,
) -> Expr:
    """Rows (picture, class, box) of the boxes that are kept: as many as there are."""
    if node.attr("center_point_box", 0):
        boxes = _corners(node, boxes)
    limit = node.const(0, "int32") if most is None else _number(node, most, "int32")
    threshold = node.const(0.0, "float32") if overlap is None else _number(node, overlap, "float32")
    lowest = node.const(-np.inf, "float32") if least is None else _number(node, least, "float32")
    result = relay.vision.all_class_non_max_suppression(_sorted(boxes), scores, limit, threshold, lowest)
    rows, count = result[0], result[1]
    # Along the first axis alone: then only its length is left to the run, and native code can do without the others.
    return relay.strided_slice(rows, node.const([0]), relay.reshape(count, (1,)), node.const([1]))


def _number(node: Node, x: Expr, dtype: str) -> Expr:
    result = node.known(x)
    if result is not None:
        if dtype == "int32":
            result = np.clip(result, 0, 2**31 - 1)
        return node.const(result.reshape(()), dtype)
    return node.cast(relay.reshape(x, ()), dtype)


def _corners(node: Node, boxes: Expr) -> Expr:
    """From middle and size (x, y, width, height) to corners (y1, x1, y2, x2)."""
    x, y, width, height = relay.split(boxes, 4, axis=2)
    half = node.const(0.5, boxes)
    wide, high = relay.multiply(width, half), relay.multiply(height, half)
    sides = [relay.subtract(y, high), relay.subtract(x, wide), relay.add(y, high), relay.add(x, wide)]
    return relay.concatenate(sides, axis=2)


def _sorted(boxes: Expr) -> Expr:
    """A box may be given by any two opposite corners: the lower one comes first."""
    one, other = relay.split(boxes, 2, axis=2)
    return relay.concatenate([relay.minimum(one, other), relay.maximum(one, other)], axis=2)


@converter("RoiAlign", since=10)
def roi_align(node: Node, x: Expr, rois: Expr, batches: Expr) -> Expr:
    mode = node.attr("mode", "avg")
    if mode not in ("avg", "max"):
        raise node.invalid("mode", mode, "avg or max")
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    pixels = node.attr("coordinate_transformation_mode", default)
    if pixels not in ("half_pixel", "output_half_pixel"):
        raise node.invalid("coordinate_transformation_mode", pixels, "half_pixel or output_half_pixel")
    size = (node.attr("output_height", 1), node.attr("output_width", 1))
    samples = node.attr("sampling_ratio", 0)
    scale, aligned = node.attr("spatial_scale", 1.0), pixels == "half_pixel"
    if mode == "max":
        return _greatest(node, x, rois, batches, size, samples, scale, aligned)
    column = node.cast(relay.expand_dims(batches, axis=1), rois)
    rows = relay.concatenate([column, rois], axis=1)
    ratio = samples if samples > 0 else -1
    return relay.vision.roi_align(x, rows, size, scale, sample_ratio=ratio, mode="avg", aligned=aligned)


def _greatest(
    node: Node, x: Expr, rois: Expr, batches: Expr, size: tuple[int, int], samples: int, scale: float, aligned: bool
) -> Expr:
    """The greatest of the four weighted pixels around every place: what ONNX means by max, and no interpolation."""
    if samples < 1:
        raise node.unsupported("mode max with as many samples as a region has pixels", hint="give sampling_ratio")
    kind = str(node.dtype(x))
    _, channels, height, width = node.static_shape(x)
    count = node.shape(rois)[0]
    locations, weights = [], []
    for column, pooled, extent in ((1, size[0], height), (0, size[1], width)):  # y, then x
        start = _scaled(node, rois, column, scale)
        length = relay.subtract(_scaled(node, rois, column + 2, scale), start)
        if aligned:
            start = relay.subtract(start, node.const(0.5, start))
        else:
            length = relay.maximum(length, node.const(1, length))
        steps = (np.arange(pooled)[:, None] + (np.arange(samples) + 0.5) / samples).reshape(1, -1) / pooled
        at = relay.add(start, relay.multiply(length, node.const(steps, start)))  # regions, pooled * samples
        inside = relay.logical_and(
            relay.greater_equal(at, node.const(-1, at)), relay.less_equal(at, node.const(extent, at))
        )
        kept = relay.clip(at, 0.0, float(extent - 1))
        low = relay.floor(kept)
        rest = relay.subtract(kept, low)
        high = relay.minimum(relay.add(low, node.const(1, low)), node.const(extent - 1, low))
        none = node.const(0, rest)
        locations.append([low, high])
        shares = [relay.subtract(node.const(1, rest), rest), rest]
        weights.append([node.cast(relay.where(inside, share, none), kind) for share in shares])
    area = height * width
    result = relay.take(x, node.cast(batches, "int64"), axis=0, mode="fast")
    own = relay.reshape(result, (count, channels, area), allowzero=True)
    rows, columns = size[0] * samples, size[1] * samples
    best: Expr | None = None
    for row, row_weight in zip(locations[0], weights[0]):
        for column_, column_weight in zip(locations[1], weights[1]):
            line = relay.multiply(relay.expand_dims(row, axis=2), node.const(width, row))
            at = relay.cast(relay.add(line, relay.expand_dims(column_, axis=1)), "int64")
            flat = relay.reshape(at, (count, 1, rows * columns), allowzero=True)
            values = relay.gather(own, 2, relay.broadcast_to(flat, (count, channels, rows * columns)))
            share = relay.multiply(relay.expand_dims(row_weight, axis=2), relay.expand_dims(column_weight, axis=1))
            value = relay.multiply(values, relay.reshape(share, (count, 1, rows * columns), allowzero=True))
            best = value if best is None else relay.maximum(best, value)
    apart = relay.reshape(best, (count, channels, size[0], samples, size[1], samples), allowzero=True)
    return relay.max(apart, axis=[3, 5])


def _scaled(node: Node, rois: Expr, column: int, scale: float) -> Expr:
    """One coordinate of the regions, in pixels of the feature map: (regions, 1)."""
    part = relay.strided_slice(rois, begin=[column], end=[column + 1], axes=[1])
    return relay.multiply(part, node.const(scale, part))


@converter("MaxRoiPool")
def max_roi_pool(node: Node, x: Expr, rois: Expr) -> Expr:
    size = tuple(node.attr("pooled_shape"))
    return relay.vision.roi_pool(x, rois, size, node.attr("spatial_scale", 1.0))
