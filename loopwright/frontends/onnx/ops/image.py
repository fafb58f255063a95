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
