"""Convolutions, both ways."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import relay
from loopwright.frontends.common.windows import Window, transposed_convolution
from loopwright.frontends.pytorch.node import Node, ints
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import PerAxis
from loopwright.relay.expr import Expr


def _batched(node: Node, x: Expr, rank: int) -> tuple[Expr, bool]:
    """The data with a batch in front, and whether it had none."""
    single = node.rank(x) == rank + 1
    return (relay.expand_dims(x, axis=0) if single else x), single


def _kernel(node: Node, weight: Expr) -> list[int]:
    return list(node.static_shape(weight)[2:])


@converter("convolution")
def convolution(
    node: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: PerAxis,
    padding: PerAxis,
    dilation: PerAxis,
    transposed: bool,
    output_padding: PerAxis,
    groups: int,
) -> Expr:
    if transposed:
        return _transposed(node, x, weight, bias, stride, padding, output_padding, groups, dilation)
    rank = len(_kernel(node, weight))
    return _forward(node, x, weight, bias, stride, ints(padding, rank) * 2, dilation, groups)


@converter("conv1d", "conv2d", "conv3d")
def conv(
    node: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Expr:
    kernel = _kernel(node, weight)
    rank = len(kernel)
    if isinstance(padding, str):
        # "same": as many elements as before; the one that is over comes behind.
        reach = [(k - 1) * d for k, d in zip(kernel, ints(dilation, rank))] if padding == "same" else [0] * rank
        pads = [one // 2 for one in reach] + [one - one // 2 for one in reach]
    else:
        pads = ints(padding, rank) * 2
    return _forward(node, x, weight, bias, stride, pads, dilation, groups)


def _forward(
    node: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: PerAxis,
    pads: Sequence[int],
    dilation: PerAxis,
    groups: int,
) -> Expr:
    kernel = _kernel(node, weight)
    rank = len(kernel)
    x, single = _batched(node, x, rank)
    wide = node.sum_dtype(x)
    function = (relay.nn.conv1d, relay.nn.conv2d, relay.nn.conv3d)[rank - 1]
    result = function(
        x,
        weight,
        strides=ints(stride, rank, 1),
        padding=list(pads),
        dilation=ints(dilation, rank, 1),
        groups=groups,
        channels=node.shape(weight)[0],
        kernel_size=kernel,
        out_dtype=wide,
    )
    if bias is not None:
        result = relay.nn.bias_add(result, node.cast(bias, wide), axis=1)
    return relay.squeeze(result, axis=[0]) if single else result


@converter("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    node: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Expr:
    return _transposed(node, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _transposed(
    node: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: PerAxis,
    padding: PerAxis,
    output_padding: PerAxis,
    groups: int,
    dilation: PerAxis,
) -> Expr:
    kernel = _kernel(node, weight)
    rank = len(kernel)
    x, single = _batched(node, x, rank)
    wide = node.sum_dtype(x)
    window = Window(kernel, ints(stride, rank, 1), ints(dilation, rank, 1), ints(padding, rank) * 2)
    result = transposed_convolution(
        node, node.cast(x, wide), node.cast(weight, wide), window, ints(output_padding, rank), groups
    )
    if bias is not None:
        result = relay.nn.bias_add(result, node.cast(bias, wide), axis=1)
    return relay.squeeze(result, axis=[0]) if single else result
