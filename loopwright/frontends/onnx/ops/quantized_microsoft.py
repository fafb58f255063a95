"""Quantised operators of ONNX Runtime's own set (com.microsoft): QLinearAdd, QLinearConcat, QGemm …

Most are the operator on real numbers, between a DequantizeLinear and a QuantizeLinear; one kernel does all three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import relay
from loopwright.frontends.onnx.element_types import ElementType
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.microsoft import self_attention
from loopwright.frontends.onnx.ops.pooling import average_pool, global_average_pool
from loopwright.frontends.onnx.ops.quantized import (
    dequantize_linear,
    dequantized,
    dynamic_quantize_linear,
    integer_product,
    is_zero,
    quantize_linear,
    quantized,
    rounded,
    single,
)
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_DOMAIN: Final = "com.microsoft"

converter("QuantizeLinear", domain=_DOMAIN)(quantize_linear)
converter("DequantizeLinear", domain=_DOMAIN)(dequantize_linear)


def _kind(node: Node, zero_point: Expr | None, x: Expr) -> ElementType:
    """The element type of a result: that of its zero point, or of what it is computed from."""
    return node.element(x if zero_point is None else zero_point)


@converter("QLinearAdd", "QLinearMul", domain=_DOMAIN)
def binary(
    node: Node,
    a: Expr,
    a_scale: Expr,
    a_zero: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero: Expr,
    scale: Expr,
    zero: Expr | None = None,
) -> Expr:
    combine = relay.add if node.op == "QLinearAdd" else relay.multiply
    result = combine(dequantized(node, a, a_scale, a_zero), dequantized(node, b, b_scale, b_zero))
    return quantized(node, result, scale, zero, _kind(node, zero, a))


def _leaky(node: Node, x: Expr) -> Expr:
    return relay.nn.leaky_relu(x, alpha=node.attr("alpha", 0.01))


def _softmax(node: Node, x: Expr) -> Expr:
    """`opset` is that of the Softmax it stands for: before 13 all axes from `axis` on are one."""
    rank = node.rank(x)
    axis = node.axis(node.attr("axis", -1), rank)
    if node.attr("opset", 13) >= 13 or axis == rank - 1:
        return relay.nn.softmax(x, axis=axis)
    shape = node.shape(x)
    flat = relay.reshape(x, (*shape[:axis], -1), allowzero=True)
    return relay.reshape(relay.nn.softmax(flat, axis=axis), shape, allowzero=True)


def _global_average(node: Node, x: Expr) -> Expr:
    if node.attr("channels_last", 0):
        return relay.mean(x, axis=list(range(1, node.rank(x) - 1)), keepdims=True)
    return global_average_pool(node, x)


def _average(node: Node, x: Expr) -> Expr:
    if node.attr("channels_last", 0):
        raise node.unsupported("channels_last")
    return average_pool(node, x)


_OF_ONE: Final[dict[str, Callable[[Node, Expr], Expr]]] = {
    "QLinearSigmoid": lambda node, x: relay.sigmoid(x),
    "QLinearLeakyRelu": _leaky,
    "QLinearSoftmax": _softmax,
    "QLinearGlobalAveragePool": _global_average,
    "QLinearAveragePool": _average,
    "QLinearReduceMean": lambda node, x: relay.mean(
        x, axis=node.attr("axes", list(range(node.rank(x)))), keepdims=bool(node.attr("keepdims", 1))
    ),
}


@converter(*_OF_ONE, domain=_DOMAIN)
def unary(node: Node, x: Expr, x_scale: Expr, x_zero: Expr, scale: Expr, zero: Expr | None = None) -> Expr:
    result = _OF_ONE[node.op](node, dequantized(node, x, x_scale, x_zero))
    return quantized(node, result, scale, zero, _kind(node, zero, x))


@converter("QLinearConcat", domain=_DOMAIN)
def concat(node: Node, scale: Expr, zero: Expr, *parts: Expr) -> Expr:
    if not parts or len(parts) % 3:
        raise node.bad(f"{len(parts)} inputs are no triples of data, scale and zero point")
    triples = zip(parts[::3], parts[1::3], parts[2::3])
    real = [dequantized(node, x, of, moved) for x, of, moved in triples]
    axis = node.axis(node.attr("axis"), node.rank(real[0]))
    whole = real[0] if len(real) == 1 else relay.concatenate(real, axis=axis)
    return quantized(node, whole, scale, zero, _kind(node, zero, parts[0]))


def _scaled(node: Node, total: Expr, a_scale: Expr, b_scale: Expr, bias: Expr | None) -> Expr:
    """A sum of int32 as real numbers."""
    by = relay.multiply(node.cast(single(node, a_scale), "float32"), node.cast(single(node, b_scale), "float32"))
    real = relay.multiply(relay.cast(total, "float32"), by)
    return real if bias is None else relay.add(real, bias)


@converter("MatMulIntegerToFloat", domain=_DOMAIN)
def matmul_integer_to_float(
    node: Node,
    a: Expr,
    b: Expr,
    a_scale: Expr,
    b_scale: Expr,
    a_zero: Expr | None = None,
    b_zero: Expr | None = None,
    bias: Expr | None = None,
) -> Expr:
    return _scaled(node, integer_product(node, a, b, a_zero, b_zero), a_scale, b_scale, bias)


@converter("DynamicQuantizeMatMul", domain=_DOMAIN)
def dynamic_quantize_matmul(
    node: Node, a: Expr, b: Expr, b_scale: Expr, b_zero: Expr | None = None, bias: Expr | None = None
) -> Expr:
    numbers, scale, zero = dynamic_quantize_linear(node, a)
    return _scaled(node, integer_product(node, numbers, b, zero, b_zero), scale, b_scale, bias)


@converter("QGemm", domain=_DOMAIN)
def gemm(
    node: Node,
    a: Expr,
    a_scale: Expr,
    a_zero: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero: Expr,
    c: Expr | None = None,
    scale: Expr | None = None,
    zero: Expr | None = None,
) -> Expr:
    """Quantised where a scale of the result is given, and real otherwise; C is of int32."""
    left = relay.transpose(a, axes=[1, 0]) if node.attr("transA", 0) else a
    right = relay.transpose(b, axes=[1, 0]) if node.attr("transB", 0) else b
    total = integer_product(node, left, right, a_zero, None if is_zero(node, b_zero) else b_zero)
    if c is not None:
        total = relay.add(total, c)
    real = _scaled(node, total, a_scale, b_scale, None)
    alpha = node.attr("alpha", 1.0)
    if alpha != 1.0:
        real = relay.multiply(real, node.const(alpha, real))
    if scale is None:
        return real
    units = relay.divide(real, node.cast(single(node, scale), "float32"))
    return rounded(node, units, None if zero is None else single(node, zero), _kind(node, zero, a))


@converter("QAttention", domain=_DOMAIN)
def attention(
    node: Node,
    x: Expr,
    weights: Expr,
    bias: Expr,
    x_scale: Expr,
    weights_scale: Expr,
    mask: Expr | None = None,
    x_zero: Expr | None = None,
    weights_zero: Expr | None = None,
    past: Expr | None = None,
) -> list[Expr | None]:
    """Self-attention whose projection to queries, keys and values is of integers."""
    total = relay.cast(integer_product(node, x, weights, x_zero, weights_zero), "float32")
    scale = relay.multiply(single(node, x_scale), single(node, weights_scale))
    whole = relay.add(relay.multiply(total, node.cast(scale, "float32")), node.cast(bias, "float32"))
    return self_attention(node, whole, node.static_shape(weights)[1], mask, past)
