"""Operators of ONNX Runtime (com.microsoft) that exporters and optimisers of transformers leave in models."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from loopwright import relay
from loopwright.frontends.common.tensors import DTypeLike
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.activation import gelu_of
from loopwright.frontends.onnx.ops.linear import product
from loopwright.frontends.onnx.ops.normalization import standardized
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import divide_down, times
from loopwright.relay.types import Dim

MICROSOFT: Final = "com.microsoft"


@converter("Gelu", domain=MICROSOFT)
def gelu(node: Node, x: Expr) -> Expr:
    return gelu_of(node, x, approximate=False)


@converter("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node, x: Expr, bias: Expr | None = None) -> Expr:
    return gelu_of(node, x if bias is None else relay.add(x, bias), approximate=True)


@converter("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Node, x: Expr, bias: Expr) -> Expr:
    return gelu_of(node, relay.add(x, bias), approximate=False)


@converter("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node, x: Expr) -> Expr:
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, node.const(node.attr("alpha", 1.702), x))))


def _layer_norm(node: Node, x: Expr, gamma: Expr, beta: Expr | None, epsilon: float) -> Expr:
    normal, _, _ = standardized(node, node.cast(x, node.sum_dtype(x)), [node.rank(x) - 1], epsilon)
    scaled = relay.multiply(node.cast(normal, x), gamma)
    return scaled if beta is None else relay.add(scaled, beta)


@converter("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    node: Node, x: Expr, skip: Expr, gamma: Expr, beta: Expr | None = None, bias: Expr | None = None
) -> list[Expr | None]:
    """The sum of two branches (and a bias), normalised; the sum itself is the fourth output."""
    total = relay.add(x, skip)
    if bias is not None:
        total = relay.add(total, bias)
    return [_layer_norm(node, total, gamma, beta, node.attr("epsilon", 1e-12)), None, None, total]


def _rms_norm(node: Node, x: Expr, gamma: Expr, epsilon: float) -> Expr:
    wide = node.cast(x, node.sum_dtype(x))
    square = relay.mean(relay.multiply(wide, wide), axis=[node.rank(x) - 1], keepdims=True)
    root = relay.sqrt(relay.add(square, node.const(epsilon, wide)))
    return relay.multiply(node.cast(relay.divide(wide, root), x), gamma)


@converter("SimplifiedLayerNormalization", domain=MICROSOFT)
@converter("SimplifiedLayerNormalization")
def simplified_layer_normalization(node: Node, x: Expr, scale: Expr) -> Expr:
    return _rms_norm(node, x, scale, node.attr("epsilon", 1e-5))


@converter("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified(node: Node, x: Expr, skip: Expr, gamma: Expr, bias: Expr | None = None) -> list[Expr | None]:
    total = relay.add(x, skip)
    if bias is not None:
        total = relay.add(total, bias)
    return [_rms_norm(node, total, gamma, node.attr("epsilon", 1e-12)), None, None, total]


@converter("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    node: Node,
    ids: Expr,
    segments: Expr | None,
    words: Expr,
    positions: Expr,
    segment_table: Expr | None = None,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    mask: Expr | None = None,
    position_ids: Expr | None = None,
) -> list[Expr]:
    """Embeddings of words, places and segments added up and normalised; how many places of each row the mask has."""
    batch, length = node.shape(ids)
    result = relay.take(words, ids, axis=0, mode="fast")
    if position_ids is not None:
        result = relay.add(result, relay.take(positions, position_ids, axis=0, mode="fast"))
    else:
        result = relay.add(result, relay.strided_slice(positions, begin=[0], end=[length], axes=[0]))
    if segments is not None and segment_table is not None:
        result = relay.add(result, relay.take(segment_table, segments, axis=0, mode="fast"))
    if gamma is None:
        raise node.bad("gamma is left out")
    normal = _layer_norm(node, result, gamma, beta, node.attr("epsilon", 1e-12))
    counts = (
        relay.full(node.const(0, "int32"), (batch,), dtype="int32")
        if mask is None
        else relay.sum(node.cast(mask, "int32"), axis=[1])
    )
    return [normal, counts, result]


def _heads(node: Node, x: Expr, heads: int) -> Expr:
    """(batch, length, heads * size) → (batch, heads, length, size)."""
    batch, length, width = node.shape(x)
    if isinstance(width, int) and width % heads:
        raise node.bad(f"a width of {width} cannot be parted into {heads} heads")
    apart = relay.reshape(x, (batch, length, heads, divide_down(width, heads)), allowzero=True)
    return relay.transpose(apart, axes=[0, 2, 1, 3])


def _attended(node: Node, q: Expr, k: Expr, v: Expr, scale: float | None, added: Expr | None) -> Expr:
    """softmax(q kᵀ · scale + added) v of heads; the heads side by side again."""
    batch, heads, length, size = node.shape(q)
    if scale is None or scale == 0.0:
        if not isinstance(size, int):
            raise node.unsupported("heads whose size is no number")
        scale = 1 / math.sqrt(size)
    scores = product(node, q, relay.transpose(k, axes=[0, 1, 3, 2]), node.sum_dtype(q))
    scores = relay.multiply(scores, node.const(scale, scores))
    if added is not None:
        scores = relay.add(scores, node.cast(added, node.dtype(scores)))
    weights = node.cast(relay.nn.softmax(scores, axis=-1), q)
    result = node.cast(product(node, weights, v, node.sum_dtype(v)), v)
    width = node.shape(result)[3]
    together = relay.transpose(result, axes=[0, 2, 1, 3])
    return relay.reshape(together, (batch, length, times(heads, width)), allowzero=True)


def _mask(node: Node, mask: Expr, total: Dim, kind: DTypeLike) -> Expr:
    """What is added to scores: 0 where a place is seen, a very negative number where it is not."""
    value = node.attr("mask_filter_value", -10000.0)
    rank = node.rank(mask)
    if rank == 2:
        seen = relay.reshape(mask, (node.shape(mask)[0], 1, 1, node.shape(mask)[1]), allowzero=True)
    elif rank == 3:
        seen = relay.expand_dims(mask, axis=1)
    elif rank == 1:
        # How many places of each row are seen.
        if not isinstance(total, int):
            raise node.unsupported("lengths as a mask, for a size that is no number")
        locations = relay.const(np.arange(total).reshape(1, 1, 1, total), "int32")
        lengths = relay.reshape(node.cast(mask, "int32"), (node.shape(mask)[0], 1, 1, 1), allowzero=True)
        seen = relay.less(locations, lengths)
    else:
        raise node.unsupported(f"a mask of {rank} dimensions")
    hidden = relay.equal(node.cast(seen, "int32"), node.const(0, "int32"))
    return relay.where(hidden, node.const(value, kind), node.const(0, kind))


def _causal(node: Node, length: Dim, total: Dim, kind: str) -> Expr:
    """No place sees what comes after it."""
    if not isinstance(length, int) or not isinstance(total, int):
        raise node.unsupported("attention to what was before alone, for a size that is no number")
    later = np.arange(total)[None, :] > np.arange(length)[:, None] + (total - length)
    return relay.const(np.where(later, np.finfo(np.float32).min / 2, 0.0), str(kind))


def _summed(*parts: Expr | None) -> Expr | None:
    present = [part for part in parts if part is not None]
    total = present[0] if present else None
    for part in present[1:]:
        total = relay.add(total, part)
    return total


@converter("Attention", domain=MICROSOFT)
def attention(
    node: Node,
    x: Expr,
    weights: Expr,
    bias: Expr | None = None,
    mask: Expr | None = None,
    past: Expr | None = None,
    bias_of_scores: Expr | None = None,
) -> list[Expr | None]:
    """Self-attention with one weight for queries, keys and values side by side."""
    whole = node.cast(product(node, x, weights, node.sum_dtype(x)), x)
    if bias is not None:
        whole = relay.add(whole, bias)
    return self_attention(node, whole, node.static_shape(weights)[1], mask, past, bias_of_scores)


def self_attention(
    node: Node, whole: Expr, width: int, mask: Expr | None, past: Expr | None, bias_of_scores: Expr | None = None
) -> list[Expr | None]:
    """Attention of queries, keys and values that lie side by side in `width` columns; keys and values with the past."""
    heads = node.attr("num_heads")
    sizes = node.attr("qkv_hidden_sizes", [width // 3] * 3)
    q, k, v = relay.split(whole, [sizes[0], sizes[0] + sizes[1]], axis=2)
    q, k, v = (_heads(node, one, heads) for one in (q, k, v))
    if past is not None:
        old_k, old_v = (relay.squeeze(one, axis=[0]) for one in relay.split(past, 2, axis=0))
        k, v = relay.concatenate([old_k, k], axis=2), relay.concatenate([old_v, v], axis=2)
    present = relay.stack([k, v], axis=0) if node.wants(1) else None
    length, total = node.shape(q)[2], node.shape(k)[2]
    kind = node.sum_dtype(q)
    hidden = None if mask is None else _mask(node, mask, total, kind)
    causal = _causal(node, length, total, kind) if node.attr("unidirectional", 0) else None
    extra = None if bias_of_scores is None else node.cast(bias_of_scores, kind)
    return [_attended(node, q, k, v, node.attr("scale", None), _summed(hidden, causal, extra)), present]


@converter("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    node: Node,
    query: Expr,
    key: Expr | None = None,
    value: Expr | None = None,
    bias: Expr | None = None,
    mask: Expr | None = None,
    bias_of_scores: Expr | None = None,
    past_key: Expr | None = None,
    past_value: Expr | None = None,
) -> list[Expr]:
    """Attention of queries, keys and values that are projected already."""
    heads = node.attr("num_heads")
    if key is None or value is None or node.rank(query) != 3 or node.rank(key) != 3:
        raise node.unsupported("queries, keys and values packed into one tensor")
    if bias is not None:
        width = node.static_shape(query)[2]
        parts = relay.split(bias, [width, 2 * width], axis=0)
        query, key, value = (relay.add(one, part) for one, part in zip((query, key, value), parts))
    q, k, v = (_heads(node, one, heads) for one in (query, key, value))
    if past_key is not None:
        k, v = relay.concatenate([past_key, k], axis=2), relay.concatenate([past_value, v], axis=2)
    kind = node.sum_dtype(q)
    hidden = None if mask is None else _mask(node, mask, node.shape(k)[2], kind)
    causal = _causal(node, node.shape(q)[2], node.shape(k)[2], kind) if node.attr("unidirectional", 0) else None
    extra = None if bias_of_scores is None else node.cast(bias_of_scores, kind)
    return [_attended(node, q, k, v, node.attr("scale", None), _summed(hidden, causal, extra)), k, v]


@converter("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node, x: Expr, position_ids: Expr, cosines: Expr, sines: Expr) -> Expr:
    """Pairs of elements of each head turned by an angle that grows with their place."""
    shape = node.shape(x)
    heads = node.attr("num_heads", 0)
    flat = len(shape) == 3
    if flat:
        size = 2 * node.static_shape(cosines)[1] if not heads else None
        width = node.static_shape(x)[2]
        x = _heads(node, x, heads or width // int(size or 1))
    batch, count, length, size_of_head = node.shape(x)
    if node.rank(position_ids) == 1:
        starts = relay.reshape(node.cast(position_ids, "int64"), (1, 1))
        if not isinstance(length, int):
            raise node.unsupported("a place to begin at, for a length that is no number")
        position_ids = relay.add(starts, node.const(np.arange(length)))
    cos, sin = (
        relay.expand_dims(relay.take(table, position_ids, axis=0, mode="fast"), axis=1) for table in (cosines, sines)
    )
    transposed = 2 * node.static_shape(cosines)[1]
    head, rest = x, None
    if isinstance(size_of_head, int) and transposed < size_of_head:
        head, rest = relay.split(x, [transposed], axis=3)
    if node.attr("interleaved", 0):
        pairs = relay.reshape(head, (batch, count, length, transposed // 2, 2), allowzero=True)
        one, other = (relay.squeeze(part, axis=[4]) for part in relay.split(pairs, 2, axis=4))
    else:
        one, other = relay.split(head, 2, axis=3)
    first = relay.subtract(relay.multiply(one, cos), relay.multiply(other, sin))
    second = relay.add(relay.multiply(one, sin), relay.multiply(other, cos))
    if node.attr("interleaved", 0):
        result = relay.reshape(relay.stack([first, second], axis=4), (batch, count, length, transposed), allowzero=True)
    else:
        result = relay.concatenate([first, second], axis=3)
    if rest is not None:
        result = relay.concatenate([result, rest], axis=3)
    return relay.reshape(relay.transpose(result, axes=[0, 2, 1, 3]), shape, allowzero=True) if flat else result


@converter("FusedMatMul", domain=MICROSOFT)
def fused_matmul(node: Node, a: Expr, b: Expr) -> Expr:
    """A product of matrices, either one turned, times `alpha`."""
    a, b = (
        relay.transpose(one, axes=[*range(node.rank(one) - 2), node.rank(one) - 1, node.rank(one) - 2])
        if node.attr(turn, 0)
        else one
        for one, turn in ((a, "transA"), (b, "transB"))
    )
    result = node.cast(product(node, a, b, node.sum_dtype(a)), a)
    alpha = node.attr("alpha", 1.0)
    return result if alpha == 1.0 else relay.multiply(result, node.const(alpha, a))


@converter("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node, x: Expr, w: Expr, b: Expr | None = None, z: Expr | None = None) -> Expr:
    """A convolution with an activation behind it."""
    from loopwright.frontends.onnx.ops.convolution import conv

    result = conv(node, x, w, b)
    if z is not None:
        result = relay.add(result, z)
    name = node.attr("activation", "")
    parameters: list[float] = node.attr("activation_params", [])
    match name:
        case "":
            return result
        case "Relu":
            return relay.nn.relu(result)
        case "Tanh":
            return relay.tanh(result)
        case "Sigmoid":
            return relay.sigmoid(result)
        case "LeakyRelu":
            return relay.nn.leaky_relu(result, alpha=parameters[0] if parameters else 0.01)
        case "Clip":
            return relay.clip(result, parameters[0], parameters[1])
        case "HardSigmoid":
            alpha, beta = node.const(parameters[0], result), node.const(parameters[1], result)
            return relay.clip(relay.add(relay.multiply(result, alpha), beta), 0.0, 1.0)
        case _:
            raise node.unsupported(f"the activation {name}")
