"""Random numbers: RandomNormal, RandomUniform, Bernoulli, Multinomial.

A compiled model is a function: run twice, it gives the same numbers twice. They come from the seed that the node has,
or from its name, so that two nodes without one have different numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.element_types import of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr


def key_of(node: Node) -> Expr:
    """The beginning of the stream of a node's numbers."""
    seed = node.attr("seed", None)
    if seed is None:
        return relay.random.threefry_key(zlib.crc32(node.name.encode()))
    return relay.random.threefry_key(int(np.float32(seed).view(np.uint32)))


def uniform(node: Node, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> Expr:
    """float32 numbers from low to below high."""
    return relay.random.uniform(key_of(node), tuple(shape), "float32", low, high)[1]


def _shape(node: Node, like: Expr | None) -> tuple[int, ...]:
    return tuple(node.attr("shape")) if like is None else node.static_shape(like)


def _kind(node: Node, like: Expr | None) -> str:
    given = node.attr("dtype", None)
    if given:
        return of_proto(given).dtype
    return "float32" if like is None else str(node.dtype(like))


@converter("RandomUniform", "RandomUniformLike", fold=False)
def random_uniform(node: Node, like: Expr | None = None) -> Expr:
    numbers = uniform(node, _shape(node, like), node.attr("low", 0.0), node.attr("high", 1.0))
    return node.cast(numbers, _kind(node, like))


@converter("RandomNormal", "RandomNormalLike", fold=False)
def random_normal(node: Node, like: Expr | None = None) -> Expr:
    mean, scale = node.attr("mean", 0.0), node.attr("scale", 1.0)
    numbers = relay.random.normal(key_of(node), _shape(node, like), "float32", mean, scale)[1]
    return node.cast(numbers, _kind(node, like))


@converter("Bernoulli", since=15, fold=False)
def bernoulli(node: Node, x: Expr) -> Expr:
    """1 as often as the element says, else 0."""
    drawn = uniform(node, node.static_shape(x))
    return node.cast(relay.less(drawn, node.cast(x, "float32")), _kind(node, x))


@converter("Multinomial", since=7, fold=False)
def multinomial(node: Node, x: Expr) -> Expr:
    """Indices into the last axis, each as often as the logarithm there says."""
    weights = relay.nn.softmax(node.cast(x, "float32"), axis=-1)
    drawn = relay.random.multinomial(key_of(node), weights, num_samples=node.attr("sample_size", 1))[1]
    return node.cast(drawn, of_proto(node.attr("dtype", 6)).dtype)
