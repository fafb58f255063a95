"""Products of matrices: MatMul, Gemm, Einsum."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.common.products import product as matrix_product
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times


@converter("Gemm")
def gemm(node: Node, a: Expr, b: Expr, c: Expr | None = None) -> Expr:
    """alpha * A * B + beta * C, either operand turned."""
    if node.rank(a) != 2:
        shape = node.shape(a)
        a = relay.reshape(a, (shape[0], times(*shape[1:])), allowzero=True)
    if node.rank(b) != 2:
        raise node.bad(f"the second operand has {node.rank(b)} dimensions, and needs 2")
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    if node.attr("transA", 0):
        a = relay.transpose(a, axes=[1, 0])
    weight = b if node.attr("transB", 0) else relay.transpose(b, axes=[1, 0])
    kind, wide = str(node.dtype(a)), node.sum_dtype(a)
    result = relay.nn.dense(a, weight, out_dtype=wide)
    if alpha != 1.0:
        result = relay.multiply(result, node.const(alpha, result))
    if c is not None and beta != 0.0:
        c = node.beside(node.cast(c, wide), node.shape(result))
        result = relay.add(result, c if beta == 1.0 else relay.multiply(c, node.const(beta, c)))
    return node.cast(result, kind)


@converter("MatMul")
def matmul(node: Node, a: Expr, b: Expr) -> Expr:
    return node.cast(product(node, a, b, node.sum_dtype(a)), str(node.dtype(a)))


def product(node: Node, a: Expr, b: Expr, out_dtype: str = "") -> Expr:
    """numpy's matmul."""
    return matrix_product(node, a, b, out_dtype, turn=bool(node.importer.config.get("use_nt_batch_matmul", True)))


@converter("Einsum", since=12)
def einsum(node: Node, *operands: Expr) -> Expr:
    wide = [node.cast(one, node.sum_dtype(one)) for one in operands]
    return node.cast(relay.einsum(wide, node.attr("equation").replace(" ", "")), str(node.dtype(operands[0])))


@converter("FC")
def fc(node: Node, x: Expr, weight: Expr, bias: Expr) -> Expr:
    shape = node.shape(x)
    axis = node.attr("axis", 1)
    rows = relay.reshape(x, (times(*shape[:axis]), times(*shape[axis:])), allowzero=True)
    return relay.add(relay.nn.dense(rows, weight), bias)


@converter("LinearRegressor", domain="ai.onnx.ml")
def linear_regressor(node: Node, x: Expr) -> Expr:
    weights = np.array(node.attr("coefficients"), np.float32)
    targets = node.attr("targets", 1)
    result = relay.nn.dense(node.cast(x, "float32"), relay.const(weights.reshape(targets, -1), "float32"))
    bias = node.attr("intercepts", None)
    return result if bias is None else relay.add(result, relay.const(np.array(bias), "float32"))
