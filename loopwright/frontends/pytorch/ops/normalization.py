"""Normalisations: by batch, layer, group, instance, root mean square."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Size
from loopwright.relay.expr import Expr, require_expr
from loopwright.relay.op.sizes import divide_down, times
from loopwright.relay.types import Dim


def per_channel(node: Node, x: Expr, values: Expr) -> Expr:
    """One number for each channel, laid out beside axis 1 of `x`."""
    behind = node.rank(x) - 2
    return relay.expand_dims(values, axis=1, num_newaxis=behind) if behind > 0 else values


def _channel_values(node: Node, x: Expr, given: Expr | None, value: float) -> Expr:
    """Factors or terms of the channels in the type of `x`; `value` for each where none are given."""
    if given is not None:
        return node.cast(given, x)
    return relay.full(node.like(x, value), (node.shape(x)[1],), str(node.dtype(x)))


@converter("_native_batch_norm_legit_no_training")
def batch_norm_inner(
    node: Node, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, var: Expr, momentum: float, eps: float
) -> list[Expr]:
    return [_by_running(node, x, weight, bias, mean, var, eps)]


def _by_running(node: Node, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, var: Expr, eps: float) -> Expr:
    x = node.cast(x, node.sum_dtype(x))
    gamma, beta = _channel_values(node, x, weight, 1), _channel_values(node, x, bias, 0)
    return relay.nn.batch_norm(x, gamma, beta, node.cast(mean, x), node.cast(var, x), axis=1, epsilon=eps)[0]


@converter("_native_batch_norm_legit", "_native_batch_norm_legit_functional")
def batch_norm_by_batch(node: Node, x: Expr, weight: Expr | None, bias: Expr | None, *rest: Any) -> list[Expr]:
    """By the mean and variance of this batch; or, where it says so, by the running ones."""
    *running, training, _, eps = rest
    if not training and len(running) == 2:
        mean, var = running
        return [_by_running(node, x, weight, bias, mean, var, eps)]
    return [_by_batch(node, x, weight, bias, eps)]


def _by_batch(node: Node, x: Expr, weight: Expr | None, bias: Expr | None, eps: float) -> Expr:
    x = node.cast(x, node.sum_dtype(x))
    normal, _, _ = standardized(node, x, [axis for axis in range(node.rank(x)) if axis != 1], eps)
    return _scaled(node, x, normal, weight, bias)


def _scaled(node: Node, x: Expr, normal: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    if weight is not None:
        normal = relay.multiply(normal, per_channel(node, x, node.cast(weight, x)))
    return normal if bias is None else relay.add(normal, per_channel(node, x, node.cast(bias, x)))


def standardized(node: Node, x: Expr, axes: Sequence[int], eps: float) -> tuple[Expr, Expr, Expr]:
    """`x` less its mean and over its deviation along `axes`; the mean and the inverse deviation."""
    mean = relay.mean(x, axis=list(axes), keepdims=True)
    apart = relay.subtract(x, mean)
    spread = relay.mean(relay.multiply(apart, apart), axis=list(axes), keepdims=True)
    inverse = relay.rsqrt(relay.add(spread, node.like(x, eps)))
    return relay.multiply(apart, inverse), mean, inverse


@converter("layer_norm", "native_layer_norm")
def layer_norm(
    node: Node,
    x: Expr,
    shape: Sequence[Size],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enable: object = None,
) -> list[Expr]:
    several = "native" in node.op
    x = node.cast(x, node.sum_dtype(x))
    if len(shape) == 1 and not (several and (node.wants(1) or node.wants(2))):
        kind = str(node.dtype(x))
        gamma = node.cast(weight, x) if weight is not None else relay.ones(tuple(shape), kind)
        beta = node.cast(bias, x) if bias is not None else relay.zeros(tuple(shape), kind)
        return [relay.nn.layer_norm(x, gamma, beta, axis=-1, epsilon=eps)]
    rank = node.rank(x)
    normal, mean, inverse = standardized(node, x, list(range(rank - len(shape), rank)), eps)
    if weight is not None:
        normal = relay.multiply(normal, node.cast(weight, x))
    if bias is not None:
        normal = relay.add(normal, node.cast(bias, x))
    return [normal, mean, inverse]


@converter("rms_norm", "_fused_rms_norm")
def rms_norm(
    node: Node, x: Expr, shape: Sequence[Size], weight: Expr | None = None, eps: float | None = None
) -> list[Expr]:
    import numpy as np

    kind = str(node.dtype(x))
    if eps is None:
        eps = float(np.finfo(np.float32 if kind in ("float16", "bfloat16") else kind).eps)
    x = node.cast(x, node.sum_dtype(x))
    if len(shape) == 1 and weight is not None:
        return [relay.nn.rms_norm(x, node.cast(weight, x), axis=-1, epsilon=eps)]
    axes = list(range(node.rank(x) - len(shape), node.rank(x)))
    square = relay.mean(relay.multiply(x, x), axis=axes, keepdims=True)
    normal = relay.multiply(x, relay.rsqrt(relay.add(square, node.like(x, eps))))
    return [normal if weight is None else relay.multiply(normal, node.cast(weight, x))]


@converter("group_norm")
def group_norm(
    node: Node,
    x: Expr,
    groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn: object = None,
) -> Expr:
    x = node.cast(x, node.sum_dtype(x))
    gamma, beta = _channel_values(node, x, weight, 1), _channel_values(node, x, bias, 0)
    if node.rank(x) > 2:
        return relay.nn.group_norm(x, gamma, beta, num_groups=groups, axis=1, epsilon=eps)
    return _by_groups(node, x, groups, weight, bias, eps)


def _by_groups(node: Node, x: Expr, groups: int, weight: Expr | None, bias: Expr | None, eps: float) -> Expr:
    shape = node.shape(x)
    each = divide_down(shape[1], groups)
    apart = relay.reshape(x, (shape[0], groups, times(each, *shape[2:])), allowzero=True)
    normal, _, _ = standardized(node, apart, [2], eps)
    return _scaled(node, x, relay.reshape(normal, shape, allowzero=True), weight, bias)


@converter("native_group_norm")
def native_group_norm(
    node: Node,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    batch: Dim,
    channels: Dim,
    rest: Dim,
    groups: int,
    eps: float,
) -> list[Expr]:
    if node.wants(1) or node.wants(2):
        raise node.unsupported("the mean and deviation of groups as results")
    return [group_norm(node, x, groups, weight, bias, eps)]


@converter("instance_norm")
def instance_norm(
    node: Node,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: object = None,
) -> Expr:
    if not use_input_stats:
        mean, var = require_expr(running_mean, "a tensor"), require_expr(running_var, "a tensor")
        return _by_running(node, x, weight, bias, mean, var, eps)
    x = node.cast(x, node.sum_dtype(x))
    gamma, beta = _channel_values(node, x, weight, 1), _channel_values(node, x, bias, 0)
    return relay.nn.instance_norm(x, gamma, beta, axis=1, epsilon=eps)
