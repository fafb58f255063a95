"""Normalisations: BatchNormalization, LayerNormalization, GroupNormalization, LRN, Dropout …"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.element_types import of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.values import Results
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import divide_down, times


def per_channel(node: Node, x: Expr, values: Expr) -> Expr:
    """One number for each channel, laid out beside axis 1 of `x`."""
    behind = node.rank(x) - 2
    return relay.expand_dims(values, axis=1, num_newaxis=behind) if behind > 0 else values


@converter("BatchNormalization")
def batch_normalization(node: Node, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr) -> Results:
    epsilon = node.attr("epsilon", 1e-5)
    training = (
        node.attr("training_mode", 0) if node.opset >= 14 else not node.attr("is_test", 1 if node.opset >= 7 else 0)
    )
    if training and (node.opset >= 14 or node.wants(1)):
        return _training(node, x, scale, bias, mean, var, epsilon)
    kinds = {str(node.dtype(one)) for one in (x, scale, bias, mean, var)}
    if len(kinds) == 1:
        return relay.nn.batch_norm(x, scale, bias, mean, var, axis=1, epsilon=epsilon)[0]
    wide = "float32"
    parts = [node.cast(one, wide) for one in (x, scale, bias, mean, var)]
    return node.cast(relay.nn.batch_norm(*parts, axis=1, epsilon=epsilon)[0], x)


def _training(node: Node, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, epsilon: float) -> list[Expr]:
    """With the statistics of this batch; the running ones move towards them."""
    axes = [axis for axis in range(node.rank(x)) if axis != 1]
    momentum = node.attr("momentum", 0.9)
    here = relay.mean(x, axis=axes)
    apart = relay.subtract(x, per_channel(node, x, here))
    spread = relay.mean(relay.multiply(apart, apart), axis=axes)
    inverse = relay.divide(node.const(1, x), relay.sqrt(relay.add(spread, node.const(epsilon, x))))
    factor = per_channel(node, x, relay.multiply(node.cast(scale, x), inverse))
    result = relay.add(relay.multiply(apart, factor), per_channel(node, x, node.cast(bias, x)))

    def moved(running: Expr, batch: Expr) -> Expr:
        kept = relay.multiply(running, node.const(momentum, running))
        return relay.add(kept, relay.multiply(node.cast(batch, running), node.const(1 - momentum, running)))

    return [result, moved(mean, here), moved(var, spread)]


@converter("InstanceNormalization")
def instance_normalization(node: Node, x: Expr, scale: Expr, bias: Expr) -> Expr:
    return relay.nn.instance_norm(x, scale, bias, axis=1, epsilon=node.attr("epsilon", 1e-5))


def standardized(node: Node, x: Expr, axes: Sequence[int], epsilon: float) -> tuple[Expr, Expr, Expr]:
    """`x` less its mean and over its deviation along `axes`; the mean and the inverse deviation."""
    mean = relay.mean(x, axis=list(axes), keepdims=True)
    apart = relay.subtract(x, mean)
    spread = relay.mean(relay.multiply(apart, apart), axis=list(axes), keepdims=True)
    inverse = relay.divide(node.const(1, x), relay.sqrt(relay.add(spread, node.const(epsilon, x))))
    return relay.multiply(apart, inverse), mean, inverse


@converter("LayerNormalization", since=17)
def layer_normalization(node: Node, x: Expr, scale: Expr, bias: Expr | None = None) -> Results:
    rank = node.rank(x)
    first = node.axis(node.attr("axis", -1), rank)
    epsilon = node.attr("epsilon", 1e-5)
    kind = str(node.dtype(x))
    simple = first == rank - 1 and not node.wants(1) and not node.wants(2) and node.rank(scale) == 1
    if simple and kind in ("float32", "float64") and node.shape(scale) == node.shape(x)[-1:]:
        shift = bias if bias is not None else relay.zeros(node.shape(scale), kind)
        return relay.nn.layer_norm(x, scale, shift, axis=-1, epsilon=epsilon)
    # `stash_type` is the type of the statistics.
    stash = of_proto(node.attr("stash_type", 1)).dtype if kind != "float64" else kind
    normal, mean, inverse = standardized(node, node.cast(x, stash), list(range(first, rank)), epsilon)
    result = relay.multiply(node.cast(normal, x), node.beside(scale, node.shape(x)))
    return [result if bias is None else relay.add(result, node.beside(bias, node.shape(x))), mean, inverse]


@converter("RMSNormalization", since=23)
def rms_normalization(node: Node, x: Expr, scale: Expr) -> Expr:
    rank = node.rank(x)
    axes = list(range(node.axis(node.attr("axis", -1), rank), rank))
    kind = str(node.dtype(x))
    stash = of_proto(node.attr("stash_type", 1)).dtype if kind != "float64" else kind
    wide = node.cast(x, stash)
    square = relay.mean(relay.multiply(wide, wide), axis=axes, keepdims=True)
    root = relay.sqrt(relay.add(square, node.const(node.attr("epsilon", 1e-5), wide)))
    return relay.multiply(node.cast(relay.divide(wide, root), scale), node.beside(scale, node.shape(x)))


@converter("GroupNormalization", since=18)
def group_normalization(node: Node, x: Expr, scale: Expr, bias: Expr) -> Expr:
    """Scale and bias are one a group at version 18, one a channel from 21 on."""
    groups = node.attr("num_groups")
    batch, channels, *rest = node.shape(x)
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        raise node.bad(f"{channels} channels cannot be parted into {groups} groups")
    each = divide_down(channels, groups)
    kind = str(node.dtype(x))
    stash = of_proto(node.attr("stash_type", 1)).dtype if node.opset >= 21 and kind != "float64" else kind
    is_by_channel = isinstance(channels, int) and node.shape(scale) == node.shape(bias) == (channels,)
    if is_by_channel and (node.opset >= 21 or channels != groups) and kind == stash and kind in ("float32", "float64"):
        return relay.nn.group_norm(x, scale, bias, groups, epsilon=node.attr("epsilon", 1e-5))
    apart = relay.reshape(node.cast(x, stash), (batch, groups, times(each, *rest)), allowzero=True)
    normal, _, _ = standardized(node, apart, [2], node.attr("epsilon", 1e-5))
    if node.opset < 21:
        if node.shape(scale) == (groups,):
            scale, bias = (relay.expand_dims(one, axis=1) for one in (scale, bias))
            result = relay.add(relay.multiply(node.cast(normal, x), scale), bias)
            return relay.reshape(result, (batch, channels, *rest), allowzero=True)
    back = relay.reshape(node.cast(normal, x), (batch, channels, *rest), allowzero=True)
    scale, bias = (node.beside(per_channel(node, x, one), node.shape(x)) for one in (scale, bias))
    return relay.add(relay.multiply(back, scale), bias)


@converter("LRN")
def lrn(node: Node, x: Expr) -> Expr:
    """Each element over the squares of its neighbours among the channels."""
    size = node.attr("size")
    alpha, beta, bias = node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    if size % 2:
        return relay.nn.lrn(x, size=size, axis=1, bias=bias, alpha=alpha, beta=beta)
    # An even window reaches one further behind than before.
    channels = node.static_shape(x)[1]
    squared = relay.multiply(x, x)
    locations = np.arange(channels)
    apart = locations[None, :] - locations[:, None]
    near = ((apart >= -((size - 1) // 2)) & (apart <= size // 2)).astype(np.float64)
    shape = node.shape(x)
    flat = relay.reshape(squared, (shape[0], channels, times(*shape[2:])), allowzero=True)
    summed = relay.reshape(relay.einsum([node.const(near, x), flat], "kc,bcp->bkp"), shape, allowzero=True)
    scale = relay.add(relay.multiply(summed, node.const(alpha / size, x)), node.const(bias, x))
    return relay.divide(x, relay.power(scale, node.const(beta, x)))


@converter("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node, x: Expr) -> Expr:
    axes = [node.axis(axis, node.rank(x)) for axis in node.attr("axes", [0, 2, 3])]
    mean = relay.mean(x, axis=axes, keepdims=True)
    apart = relay.subtract(x, mean)
    deviation = relay.sqrt(relay.mean(relay.multiply(apart, apart), axis=axes, keepdims=True))
    return relay.divide(apart, relay.add(deviation, node.const(1e-9, x)))


@converter("LpNormalization")
def lp_normalization(node: Node, x: Expr) -> Expr:
    """Each vector along an axis over its norm; one of zeros stays as it is."""
    axis = node.axis(node.attr("axis", -1), node.rank(x))
    p = node.attr("p", 2)
    if p == 1:
        norm = relay.sum(relay.abs(x), axis=[axis], keepdims=True)
    elif p == 2:
        norm = relay.sqrt(relay.sum(relay.multiply(x, x), axis=[axis], keepdims=True))
    else:
        raise node.invalid("p", p, "1 or 2")
    zero = relay.equal(norm, node.const(0, x))
    return relay.where(zero, node.const(0, x), relay.divide(x, relay.where(zero, node.const(1, x), norm)))


@converter("Dropout")
def dropout(node: Node, x: Expr, ratio: Expr | None = None, training: Expr | None = None) -> list[Expr]:
    """What is dropped is dropped in training alone; here all is kept, and the mask says so."""
    if training is not None and bool(node.scalar(training)):
        rate = 0.5 if ratio is None else float(node.scalar(ratio))
        if rate != 0.0:
            raise node.unsupported("dropping elements, as in training")
    if not node.wants(1):
        return [x]
    kind = "bool" if node.opset >= 10 else str(node.dtype(x))
    return [x, relay.cast(relay.ones_like(x), kind)]
