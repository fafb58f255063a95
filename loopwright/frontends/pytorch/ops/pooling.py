"""Pooling: the greatest or the mean of windows, and of windows that give a certain size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loopwright import relay
from loopwright.frontends.common.windows import Window, max_with_indices
from loopwright.frontends.pytorch.node import Node, ints, is_static
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import PerAxis
from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times


def _rank(node: Node) -> int:
    """How many axes a window moves along, as the name of the operator says."""
    return next(k for k in (1, 2, 3) if f"pool{k}d" in node.op)


def _window(
    node: Node, x: Expr, kernel: PerAxis, stride: PerAxis, padding: PerAxis, dilation: PerAxis, ceil: bool
) -> Window:
    rank = _rank(node)
    size = ints(kernel, rank)
    steps = ints(stride, rank, 0)
    window = Window(size, steps if all(steps) else size, ints(dilation, rank, 1), ints(padding, rank) * 2)
    if not ceil:
        return window
    sizes = node.shape(x)[-rank:]
    if not is_static(sizes):
        raise node.unsupported("ceil_mode for sizes that are no numbers")
    return window.with_partial([size for size in sizes if isinstance(size, int)])


def _batched(node: Node, x: Expr) -> tuple[Expr, bool]:
    single = node.rank(x) == _rank(node) + 1
    return (relay.expand_dims(x, axis=0) if single else x), single


def _back(x: Expr, single: bool) -> Expr:
    return relay.squeeze(x, axis=[0]) if single else x


@converter("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    node: Node,
    x: Expr,
    kernel: PerAxis,
    stride: PerAxis = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Expr:
    window = _window(node, x, kernel, stride, padding, dilation, ceil_mode)
    x, single = _batched(node, x)
    function = getattr(relay.nn, f"max_pool{window.rank}d")
    result = function(
        x,
        pool_size=list(window.kernel),
        strides=list(window.strides),
        dilation=list(window.dilations),
        padding=list(window.pads),
    )
    return _back(result, single)


@converter("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(
    node: Node,
    x: Expr,
    kernel: PerAxis,
    stride: PerAxis = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> list[Expr]:
    if not node.wants(1):
        return [max_pool(node, x, kernel, stride, padding, dilation, ceil_mode)]
    window = _window(node, x, kernel, stride, padding, dilation, ceil_mode)
    return list(max_with_indices(node, x, window, node.static_shape(x)[-window.rank :]))


@converter("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    node: Node,
    x: Expr,
    kernel: PerAxis,
    stride: PerAxis = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:
    window = _window(node, x, kernel, stride, padding, 1, ceil_mode)
    x, single = _batched(node, x)
    rank = window.rank
    named = ints(padding, rank) * 2
    function = getattr(relay.nn, f"avg_pool{rank}d")
    counted = count_include_pad
    pads = list(window.pads)
    if divisor_override is not None:
        counted = True  # the sum alone counts, and what is padded adds nothing
    elif counted and pads != named:
        # The pads that are named count, those of a last partial window do not.
        x = relay.nn.pad(x, [(0, 0), (0, 0), *zip(named[:rank], named[rank:])])
        pads = [0] * rank + [max(wide - pad, 0) for wide, pad in zip(pads[rank:], named[rank:])]
        counted = False
    wide = node.cast(x, node.sum_dtype(x))
    result = function(
        wide, pool_size=list(window.kernel), strides=list(window.strides), padding=pads, count_include_pad=counted
    )
    if divisor_override is not None:
        result = relay.multiply(result, node.like(result, math.prod(window.kernel) / divisor_override))
    return _back(result, single)


@converter("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
@converter("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(node: Node, x: Expr, output_size: PerAxis) -> Expr:
    return _adaptive(node, node.cast(x, node.sum_dtype(x)), output_size, "avg")


@converter("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(node: Node, x: Expr, output_size: PerAxis) -> list[Expr]:
    if node.wants(1):
        raise node.unsupported("the places of the greatest elements (return_indices)")
    return [_adaptive(node, x, output_size, "max")]


def _adaptive(node: Node, x: Expr, output_size: PerAxis, kind: str) -> Expr:
    x, single = _batched(node, x)
    rank = _rank(node)
    own = node.shape(x)[-rank:]
    sizes = [given if size is None else size for size, given in zip(ints(output_size, rank), own)]
    if all(isinstance(size, int) and size == 1 for size in sizes):
        return _back(getattr(relay.nn, f"global_{kind}_pool{rank}d")(x), single)
    return _back(getattr(relay.nn, f"adaptive_{kind}_pool{rank}d")(x, output_size=sizes), single)


@converter("max_unpool2d", "max_unpool3d")
def max_unpool(node: Node, x: Expr, indices: Expr, output_size: Sequence[int | PrimExpr], *others: object) -> Expr:
    """Elements put back to where they were taken from; zeros elsewhere."""
    rank = len(output_size)
    lead = node.shape(x)[:-rank]
    rows = times(*lead)
    flat = times(*node.shape(x)[-rank:])
    empty = relay.zeros((rows, times(*output_size)), str(node.dtype(x)))
    locations = relay.checked_indices(relay.reshape(indices, (rows, flat), allowzero=True), empty, axes=(1,))
    filled = relay.scatter_elements(
        empty, locations, relay.reshape(x, (rows, flat), allowzero=True), axis=1, reduction="update"
    )
    return relay.reshape(filled, (*lead, *output_size), allowzero=True)
