"""Pictures read at given places: GridSample, AffineGrid."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_METHODS = {
    "linear": "bilinear",
    "bilinear": "bilinear",
    "nearest": "nearest",
    "cubic": "bicubic",
    "bicubic": "bicubic",
}


@converter("GridSample", since=16)
def grid_sample(node: Node, x: Expr, grid: Expr) -> Expr:
    """ONNX has the coordinates of a place as the last axis of the grid, relay as the second one."""
    mode = node.attr("mode", "linear")
    if mode not in _METHODS:
        raise node.invalid("mode", mode, "linear, nearest or cubic")
    padding = node.attr("padding_mode", "zeros")
    if padding not in ("zeros", "border", "reflection"):
        raise node.invalid("padding_mode", padding, "zeros, border or reflection")
    rank = node.rank(x)
    if rank not in (4, 5):
        raise node.unsupported(f"a picture of {rank - 2} dimensions")
    transposed = relay.transpose(grid, axes=[0, rank - 1, *range(1, rank - 1)])
    return relay.image.grid_sample(
        x,
        node.cast(transposed, x),
        method=_METHODS[mode],
        layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=padding,
        align_corners=bool(node.attr("align_corners", 0)),
    )


@converter("AffineGrid", since=20)
def affine_grid(node: Node, theta: Expr, size: Expr) -> Expr:
    """For each matrix the places that it moves those of a picture to, from -1 to 1; x comes before y (before z)."""
    if node.importer.dynamic and node.known(size) is None:
        return _affine_grid_dynamic(node, theta, size)
    batch, _, *sizes = node.ints(size)
    count = len(sizes)
    if count not in (2, 3):
        raise node.bad(f"a picture has {count} dimensions, and not 2 or 3")
    if node.shape(theta)[1:] != (count, count + 1):
        raise node.bad(f"the matrices have shape {node.shape(theta)[1:]}, and not {(count, count + 1)}")
    align = bool(node.attr("align_corners", 0))

    def along(length: int) -> np.ndarray:
        if align:
            return np.linspace(-1, 1, length)
        return (2 * np.arange(length) + 1) / length - 1

    axes = np.meshgrid(*(along(length) for length in sizes), indexing="ij")
    locations = np.stack([*axes[::-1], np.ones(sizes)], axis=-1).reshape(-1, count + 1)
    moved = relay.einsum([node.const(locations, theta), theta], "pk,njk->npj")
    return relay.reshape(moved, (batch, *sizes, count), allowzero=True)


def _affine_grid_dynamic(node: Node, theta: Expr, size: Expr) -> Expr:
    """AffineGrid for a picture whose size is found when the model runs."""
    count, kind = node.static_shape(size)[0] - 2, str(node.dtype(theta))
    if count not in (2, 3):
        raise node.bad(f"a picture has {count} dimensions, and not 2 or 3")
    sizes = node.cast(size, "int64")
    one, two = node.const(1.0, "float64"), node.const(2.0, "float64")
    picture = relay.strided_slice(sizes, begin=[2], end=[2 + count])
    columns = []
    for axis in range(count):
        length = relay.take(picture, node.const(axis), axis=0)
        at = relay.cast(relay.arange(node.const(0), length, node.const(1), dtype="int64"), "float64")
        whole = relay.cast(length, "float64")
        if node.attr("align_corners", 0):  # a single place is at the beginning
            parts = relay.maximum(relay.subtract(whole, one), one)
            along = relay.subtract(relay.divide(relay.multiply(two, at), parts), one)
        else:
            along = relay.subtract(relay.divide(relay.add(relay.multiply(two, at), one), whole), one)
        spread = relay.expand_dims(along, axis=1, num_newaxis=count - 1 - axis)
        columns.append(relay.reshape(relay.broadcast_to(spread, picture), (-1,)))
    ones = relay.full(one, relay.prod(picture, axis=[0], keepdims=True), dtype="float64")
    locations = relay.cast(relay.stack([*columns[::-1], ones], axis=1), kind)
    moved = relay.nn.batch_matmul(relay.expand_dims(locations, axis=0), theta, transpose_b=True)
    batch = relay.strided_slice(sizes, begin=[0], end=[1])
    return relay.reshape(moved, relay.concatenate([batch, picture, node.const([count])], axis=0), allowzero=True)
