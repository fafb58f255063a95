"""Products of matrices: linear, matmul, addmm, bmm …"""

from __future__ import annotations

from loopwright import relay
from loopwright.frontends.common.products import product
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times
from loopwright.relay.types import same_dim


@converter("linear")
def linear(node: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    wide = node.sum_dtype(x)
    if node.rank(weight) == 1:
        result = product(node, x, weight, wide)
        return result if bias is None else relay.add(result, node.cast(bias, wide))
    shape = node.shape(x)
    rows = x if len(shape) == 2 else relay.reshape(x, (times(*shape[:-1]), shape[-1]), allowzero=True)
    result = relay.nn.dense(rows, weight, out_dtype=wide)
    if bias is not None:
        result = relay.nn.bias_add(result, node.cast(bias, wide), axis=-1)
    # Beside the product, so that the type is converted before the shape is: both are one kernel then.
    result = node.cast(result, str(node.dtype(x)))
    return result if len(shape) == 2 else relay.reshape(result, (*shape[:-1], node.shape(weight)[0]), allowzero=True)


@converter("matmul", "mm", "mv", "dot", "vdot", "bmm")
def matmul(node: Node, x: Expr, y: Expr) -> Expr:
    return product(node, x, y, node.sum_dtype(x))


def _with_bias(node: Node, bias: Expr, result: Expr, beta: float, alpha: float) -> Expr:
    """beta * bias + alpha * product."""
    if alpha != 1:
        result = relay.multiply(result, node.operand(alpha, result))
    if beta == 0:
        return result
    bias = node.cast(bias, result)
    return relay.add(result, bias if beta == 1 else relay.multiply(bias, node.operand(beta, bias)))


@converter("addmm", "addmv", "baddbmm", "addbmm")
def addmm(node: Node, bias: Expr, x: Expr, y: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    wide = node.sum_dtype(x)
    if node.op.startswith("aten::addbmm"):
        # The products of a batch are summed: one product of matrices that are laid side by side.
        batch, rows, inner = node.shape(x)
        columns = node.shape(y)[2]
        x = relay.reshape(relay.transpose(x, axes=[1, 0, 2]), (rows, times(batch, inner)), allowzero=True)
        y = relay.reshape(y, (times(batch, inner), columns), allowzero=True)
    result = product(node, x, y, wide)
    if node.rank(bias) == 1 and node.rank(result) == 2 and beta == 1 and alpha == 1:
        if same_dim(node.shape(bias)[0], node.shape(result)[1]):
            return relay.nn.bias_add(result, node.cast(bias, wide), axis=-1)
    return _with_bias(node, bias, result, beta, alpha)


@converter("_cdist_forward")
def cdist(node: Node, x: Expr, y: Expr, p: float, compute_mode: object = None) -> Expr:
    """The distances of each row of `x` from each of `y`."""
    apart = relay.abs(relay.subtract(relay.expand_dims(x, axis=-2), relay.expand_dims(y, axis=-3)))
    return norm_along(node, apart, p)


@converter("_pdist_forward")
def pdist(node: Node, x: Expr, p: float = 2.0) -> Expr:
    """The distances of the rows of `x` from one another, each pair once."""
    import numpy as np

    rows = node.static_shape(x)[0]
    first, second = np.triu_indices(rows, 1)
    one, other = (relay.take(x, node.const(locations), axis=0) for locations in (first, second))
    return norm_along(node, relay.abs(relay.subtract(one, other)), p)


def norm_along(node: Node, apart: Expr, p: float) -> Expr:
    """The p-norm of distances along the last axis."""
    if p == 0:
        return relay.sum(relay.cast(relay.not_equal(apart, node.like(apart, 0)), str(node.dtype(apart))), axis=[-1])
    if p == 1:
        return relay.sum(apart, axis=[-1])
    if p == 2:
        return relay.sqrt(relay.sum(relay.multiply(apart, apart), axis=[-1]))
    if p == float("inf"):
        return relay.max(apart, axis=[-1])
    powered = relay.sum(relay.power(apart, node.like(apart, p)), axis=[-1])
    return relay.power(powered, node.like(apart, 1 / p))
