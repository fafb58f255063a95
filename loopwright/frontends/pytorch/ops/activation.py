"""Activations that have operators, or a shorter way, here; torch writes the others by arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Results
from loopwright.relay.expr import Expr

if TYPE_CHECKING:
    import torch


@converter("relu")
def relu(node: Node, x: Expr) -> Expr:
    return relay.nn.relu(x)


@converter("relu6")
def relu6(node: Node, x: Expr) -> Expr:
    return relay.clip(x, 0.0, 6.0)


@converter("hardtanh")
def hardtanh(node: Node, x: Expr, low: float = -1.0, high: float = 1.0) -> Expr:
    return relay.clip(x, low, high) if node.is_float(x) else relay.clip(x, int(low), int(high))


@converter("leaky_relu")
def leaky_relu(node: Node, x: Expr, slope: float = 0.01) -> Expr:
    return relay.nn.leaky_relu(x, alpha=slope)


@converter("elu")
def elu(node: Node, x: Expr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Expr:
    x = node.float_operand(x)
    zero = node.like(x, 0)
    inner = relay.multiply(relay.minimum(x, zero), node.like(x, input_scale))
    below = relay.multiply(node.like(x, alpha * scale), relay.subtract(relay.exp(inner), node.like(x, 1)))
    return relay.where(relay.greater(x, zero), relay.multiply(x, node.like(x, scale)), below)


@converter("silu")
def silu(node: Node, x: Expr) -> Expr:
    x = node.float_operand(x)
    return relay.multiply(x, relay.sigmoid(x))


@converter("softplus")
def softplus(node: Node, x: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta * x)) / beta, without overflow; beyond the threshold x itself."""
    x = node.float_operand(x)
    scaled = relay.multiply(x, node.like(x, beta))
    small = relay.log(relay.add(relay.exp(relay.negative(relay.abs(scaled))), node.like(x, 1)))
    result = relay.divide(relay.add(relay.maximum(scaled, node.like(x, 0)), small), node.like(x, beta))
    return relay.where(relay.greater(scaled, node.like(x, threshold)), x, result)


@converter("gelu")
def gelu(node: Node, x: Expr, approximate: str = "none") -> Expr:
    x = node.float_operand(x)
    if approximate == "tanh":
        cubed = relay.multiply(relay.multiply(x, x), relay.multiply(x, node.like(x, 0.044715)))
        inner = relay.tanh(relay.multiply(node.like(x, math.sqrt(2 / math.pi)), relay.add(x, cubed)))
    else:
        inner = relay.erf(relay.multiply(x, node.like(x, math.sqrt(0.5))))
    return relay.multiply(relay.multiply(node.like(x, 0.5), x), relay.add(node.like(x, 1), inner))


@converter("prelu", "_prelu_kernel")
def prelu(node: Node, x: Expr, weight: Expr) -> Expr:
    """A slope for all, or one for each channel, which are axis 1."""
    behind = node.rank(x) - 2
    if node.op == "aten::prelu" and node.rank(weight) == 1 and node.shape(weight) != (1,) and behind > 0:
        weight = relay.expand_dims(weight, axis=1, num_newaxis=behind)
    return relay.where(relay.greater(x, node.like(x, 0)), x, relay.multiply(x, weight))


@converter("softmax.int", "_softmax", "_safe_softmax", "log_softmax.int", "_log_softmax")
def softmax(node: Node, x: Expr, dim: int, *others: object, dtype: torch.dtype | None = None) -> Expr:
    x = node.float_operand(x)
    if node.rank(x) == 0:
        return relay.reshape(softmax_along(node, relay.reshape(x, (1,)), 0), ())
    return softmax_along(node, x, node.axis(dim, node.rank(x)))


def softmax_along(node: Node, x: Expr, axis: int) -> Expr:
    if "log_softmax" in node.op:
        return relay.nn.log_softmax(x, axis=axis)
    result = relay.nn.softmax(x, axis=axis)
    if "_safe_softmax" in node.op:
        # A row in which nothing is allowed is one of zeros.
        dead = relay.equal(relay.max(x, axis=[axis], keepdims=True), node.like(x, -math.inf))
        result = relay.where(dead, node.like(x, 0), result)
    return result


@converter("dropout", "native_dropout", "feature_dropout", "alpha_dropout")
def dropout(node: Node, x: Expr, p: float = 0.5, train: bool = False) -> Results:
    """All is kept, unless in training."""
    if train and p:
        raise node.unsupported("dropping elements, as in training", hint="call model.eval() before it is exported")
    return [x, relay.ones(node.shape(x), "bool")] if "native" in node.op else x
