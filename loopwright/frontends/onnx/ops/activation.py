"""Activations: Relu, Gelu, Softmax …"""

from __future__ import annotations

import math

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.constants import counted
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times


@converter("Relu")
def relu(node: Node, x: Expr) -> Expr:
    return relay.nn.relu(x)


@converter("LeakyRelu")
def leaky_relu(node: Node, x: Expr) -> Expr:
    return relay.nn.leaky_relu(x, alpha=node.attr("alpha", 0.01))


@converter("PRelu")
def prelu(node: Node, x: Expr, slope: Expr) -> Expr:
    """The slope is broadcast to the data from the right. (Before version 7 a slope of one axis is that of channels.)"""
    if node.opset < 7 and node.rank(slope) == 1 and node.rank(x) > 2:
        slope = relay.expand_dims(slope, axis=1, num_newaxis=node.rank(x) - 2)
    zero = node.const(0, x)
    slope = node.beside(slope, node.shape(x))
    return relay.where(relay.less(x, zero), relay.multiply(x, slope), x)


@converter("Elu")
def elu(node: Node, x: Expr) -> Expr:
    zero, one, alpha = node.const(0, x), node.const(1, x), node.const(node.attr("alpha", 1.0), x)
    below = relay.multiply(alpha, relay.subtract(relay.exp(relay.minimum(x, zero)), one))
    return relay.where(relay.less(x, zero), below, x)


@converter("Selu")
def selu(node: Node, x: Expr) -> Expr:
    alpha = node.const(node.attr("alpha", 1.67326319217681884765625), x)
    gamma = node.const(node.attr("gamma", 1.05070102214813232421875), x)
    zero, one = node.const(0, x), node.const(1, x)
    below = relay.multiply(alpha, relay.subtract(relay.exp(relay.minimum(x, zero)), one))
    return relay.multiply(gamma, relay.where(relay.less_equal(x, zero), below, x))


@converter("Celu", since=12)
def celu(node: Node, x: Expr) -> Expr:
    zero, one, alpha = node.const(0, x), node.const(1, x), node.const(node.attr("alpha", 1.0), x)
    below = relay.multiply(alpha, relay.subtract(relay.exp(relay.divide(relay.minimum(x, zero), alpha)), one))
    return relay.add(relay.maximum(x, zero), relay.minimum(below, zero))


@converter("HardSigmoid")
def hard_sigmoid(node: Node, x: Expr) -> Expr:
    alpha, beta = node.const(node.attr("alpha", 0.2), x), node.const(node.attr("beta", 0.5), x)
    return relay.clip(relay.add(relay.multiply(x, alpha), beta), 0.0, 1.0)


@converter("HardSwish", since=14)
def hard_swish(node: Node, x: Expr) -> Expr:
    gate = relay.clip(relay.add(relay.multiply(x, node.const(1 / 6, x)), node.const(0.5, x)), 0.0, 1.0)
    return relay.multiply(x, gate)


def softplus_of(node: Node, x: Expr) -> Expr:
    """log(1 + exp(x)), without overflow: max(x, 0) + log(1 + exp(-|x|))."""
    small = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), node.const(1, x)))
    return relay.add(relay.maximum(x, node.const(0, x)), small)


@converter("Softplus")
def softplus(node: Node, x: Expr) -> Expr:
    return softplus_of(node, x)


@converter("Softsign")
def softsign(node: Node, x: Expr) -> Expr:
    return relay.divide(x, relay.add(relay.abs(x), node.const(1, x)))


@converter("ThresholdedRelu")
def thresholded_relu(node: Node, x: Expr) -> Expr:
    alpha = node.const(node.attr("alpha", 1.0), x)
    return relay.where(relay.greater(x, alpha), x, node.const(0, x))


@converter("Shrink", since=9)
def shrink(node: Node, x: Expr) -> Expr:
    threshold, bias = node.attr("lambd", 0.5), node.const(node.attr("bias", 0.0), x)
    zero = node.const(0, x)
    above = relay.where(relay.greater(x, node.const(threshold, x)), relay.subtract(x, bias), zero)
    return relay.where(relay.less(x, node.const(-threshold, x)), relay.add(x, bias), above)


@converter("Mish", since=18)
def mish(node: Node, x: Expr) -> Expr:
    return relay.multiply(x, relay.tanh(softplus_of(node, x)))


@converter("Swish", since=24)
def swish(node: Node, x: Expr) -> Expr:
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, node.const(node.attr("alpha", 1.0), x))))


def gelu_of(node: Node, x: Expr, approximate: bool) -> Expr:
    half, one = node.const(0.5, x), node.const(1, x)
    if approximate:
        cubed = relay.multiply(relay.multiply(x, x), relay.multiply(x, node.const(0.044715, x)))
        inner = relay.tanh(relay.multiply(node.const(math.sqrt(2 / math.pi), x), relay.add(x, cubed)))
    else:
        inner = relay.erf(relay.multiply(x, node.const(math.sqrt(0.5), x)))
    return relay.multiply(relay.multiply(half, x), relay.add(one, inner))


@converter("Gelu", since=20)
def gelu(node: Node, x: Expr) -> Expr:
    approximate = node.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.invalid("approximate", approximate, "none or tanh")
    return gelu_of(node, x, approximate == "tanh")


def flattened(node: Node, x: Expr, axis: int) -> Expr:
    """`x` as a matrix: the axes before `axis` are its rows, the others its columns."""
    shape = node.shape(x)
    return relay.reshape(x, (times(*shape[:axis]), times(*shape[axis:])), allowzero=True)


@converter("Softmax", "LogSoftmax", since=1)
def softmax_flattened(node: Node, x: Expr) -> Expr:
    """Before version 13: over all axes from `axis` on."""
    shape = node.shape(x)
    axis = node.axis(node.attr("axis", 1), len(shape))
    if axis == len(shape) - 1:
        return _softmax(node, x, axis)
    return relay.reshape(_softmax(node, flattened(node, x, axis), 1), shape, allowzero=True)


@converter("Softmax", "LogSoftmax", since=13)
def softmax(node: Node, x: Expr) -> Expr:
    return _softmax(node, x, node.axis(node.attr("axis", -1), node.rank(x)))


def _softmax(node: Node, x: Expr, axis: int) -> Expr:
    function = relay.nn.softmax if node.op == "Softmax" else relay.nn.log_softmax
    return node.cast(function(node.cast(x, node.sum_dtype(x)), axis=axis), str(node.dtype(x)))


def _hardmax(node: Node, x: Expr, axis: int) -> Expr:
    """1 at the first largest element along an axis, 0 elsewhere."""
    size = node.shape(x)[axis]
    best = relay.argmax(x, axis=axis, keepdims=True)
    numbers = relay.const(np.arange(size), "int32") if isinstance(size, int) else counted(size, "int32")
    locations = relay.reshape(numbers, [size if k == axis else 1 for k in range(node.rank(x))], allowzero=True)
    return relay.cast(relay.equal(locations, node.cast(best, "int32")), str(node.dtype(x)))


@converter("Hardmax", since=1)
def hardmax_flattened(node: Node, x: Expr) -> Expr:
    shape = node.shape(x)
    axis = node.axis(node.attr("axis", 1), len(shape))
    return relay.reshape(_hardmax(node, flattened(node, x, axis), 1), shape, allowzero=True)


@converter("Hardmax", since=13)
def hardmax(node: Node, x: Expr) -> Expr:
    return _hardmax(node, x, node.axis(node.attr("axis", -1), node.rank(x)))


@converter("Clip", since=1)
def clip_attributes(node: Node, x: Expr) -> Expr:
    low, high = node.attr("min", None), node.attr("max", None)
    return _clipped(node, x, None if low is None else node.const(low, x), None if high is None else node.const(high, x))


@converter("Clip", since=11)
def clip(node: Node, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    return _clipped(node, x, low, high)


def _clipped(node: Node, x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    """The upper bound wins where the bounds cross."""
    bounds = [None if one is None else node.known(one) for one in (low, high)]
    if node.is_float(x) and all(bound is not None and bound.size == 1 for bound in bounds):
        smallest, largest = (float(bound.reshape(())) for bound in bounds if bound is not None)
        if smallest <= largest:
            return relay.clip(x, smallest, largest)
    if low is not None:
        x = relay.maximum(x, low)
    return x if high is None else relay.minimum(x, high)


@converter("ScaledTanh")
def scaled_tanh(node: Node, x: Expr) -> Expr:
    alpha, beta = node.const(node.attr("alpha", 1.0), x), node.const(node.attr("beta", 1.0), x)
    return relay.multiply(relay.tanh(relay.multiply(x, beta)), alpha)


@converter("ParametricSoftplus")
def parametric_softplus(node: Node, x: Expr) -> Expr:
    alpha, beta = node.const(node.attr("alpha", 1.0), x), node.const(node.attr("beta", 1.0), x)
    return relay.multiply(softplus_of(node, relay.multiply(x, beta)), alpha)


@converter("Affine")
def affine(node: Node, x: Expr) -> Expr:
    alpha, beta = node.const(node.attr("alpha", 1.0), x), node.const(node.attr("beta", 0.0), x)
    return relay.add(relay.multiply(x, alpha), beta)
