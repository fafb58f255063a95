"""Attention: softmax(query · keyᵀ · scale + mask) · value."""

from __future__ import annotations

import math

from loopwright import relay
from loopwright.frontends.common.products import product
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.types import same_dim


@converter("scaled_dot_product_attention")
def attention(
    node: Node,
    query: Expr,
    key: Expr,
    value: Expr,
    attn_mask: Expr | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Expr:
    if dropout_p:
        raise node.unsupported("dropping elements, as in training", hint="call model.eval() before it is exported")
    wide = node.sum_dtype(query)
    query, key, value = (node.cast(one, wide) for one in (query, key, value))
    if enable_gqa:
        key, value = (_repeated(node, one, query) for one in (key, value))
    width = node.shape(query)[-1]
    if scale is None:
        if not isinstance(width, int):
            raise node.unsupported("a width of heads that is no number, without a scale")
        scale = 1 / math.sqrt(width)
    scores = product(node, relay.multiply(query, node.like(query, scale)), key, transpose_b=True)
    lowest = node.like(scores, -math.inf)
    dead: Expr | None = None
    if is_causal:
        scores = relay.where(_causal(node, scores), scores, lowest)
    if attn_mask is not None:
        if node.dtype(attn_mask).is_bool:
            scores = relay.where(attn_mask, scores, lowest)
            dead = relay.logical_not(relay.any(attn_mask, axis=[-1], keepdims=True))
        else:
            mask = node.cast(attn_mask, wide)
            scores = relay.add(scores, mask)
            dead = relay.equal(relay.max(mask, axis=[-1], keepdims=True), lowest)
    weights = relay.nn.softmax(scores, axis=-1)
    if dead is not None:
        # A row in which nothing is allowed attends to nothing.
        weights = relay.where(dead, node.like(weights, 0), weights)
    return product(node, weights, value)


def _causal(node: Node, scores: Expr) -> Expr:
    """Whether a query may see a key: those up to its own place."""
    rows, columns = node.shape(scores)[-2:]
    ones = relay.full(node.const(1, "int32"), (rows, columns), "int32")
    return relay.cast(relay.trilu(ones, 0, upper=False), "bool")


def _repeated(node: Node, x: Expr, query: Expr) -> Expr:
    """Heads of keys and values, each for several heads of queries."""
    heads, own = node.shape(query)[-3], node.shape(x)[-3]
    if same_dim(heads, own):
        return x
    if not (isinstance(heads, int) and isinstance(own, int)):
        raise node.unsupported("numbers of heads that are not known")
    return relay.repeat(x, repeats=heads // own, axis=node.rank(x) - 3)
