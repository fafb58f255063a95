"""Random numbers. They are those of a fixed key: each call of the compiled model makes the same ones."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Size
from loopwright.relay.expr import Expr

if TYPE_CHECKING:
    import torch


def _key(node: Node) -> Expr:
    """A key of its own for each node, the same whenever the model is imported."""
    return relay.random.threefry_key(zlib.crc32(node.fx.name.encode()))


def _shape(node: Node) -> tuple[int, ...]:
    shape = node.out_shape()
    if not all(isinstance(size, int) for size in shape):
        raise node.unsupported("random numbers in a shape whose sizes are no numbers")
    return tuple(int(size) for size in shape if isinstance(size, int))


@converter("rand", "rand_like")
def rand(node: Node, *sizes: object, dtype: torch.dtype | None = None) -> Expr:
    return relay.random.uniform(_key(node), _shape(node), dtype="float32")[1]


@converter("randn", "randn_like")
def randn(node: Node, *sizes: object, dtype: torch.dtype | None = None) -> Expr:
    return relay.random.normal(_key(node), _shape(node), dtype="float32")[1]


@converter("randperm")
def randperm(node: Node, count: Size, *others: object, dtype: torch.dtype | None = None) -> Expr:
    """The order that so many random numbers have."""
    (size,) = _shape(node)
    numbers: Sequence[Expr] = relay.random.uniform(_key(node), (size,), dtype="float32")
    return relay.argsort(numbers[1], axis=0, dtype="int64") if size else node.const(np.zeros(0))
