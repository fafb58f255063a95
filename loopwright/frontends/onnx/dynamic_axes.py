"""Axes that are known when the model runs: which of a tensor's axes they are, as vectors with an entry for each axis.

selected(node, axes, rank)            (rank, count): 1 where an axis is the one named there
spread(node, axes, rank, values)      for each axis the value given for it, else 0
named(node, axes, rank)               1 for each axis that is named, else 0
"""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.relay.expr import Expr


def selected(node: Node, axes: Expr, rank: int) -> Expr:
    """A row for each axis, a column for each that is named; negative ones are counted from the end."""
    given = node.cast(axes, "int64")
    counted = relay.where(relay.less(given, node.const(0)), relay.add(given, node.const(rank)), given)
    same = relay.equal(node.const(np.arange(rank)[:, None]), relay.expand_dims(counted, axis=0))
    return relay.cast(same, "int64")


def spread(node: Node, axes: Expr, rank: int, values: Expr) -> Expr:
    """For each axis its value among `values`, which go with `axes`; 0 where it is not named."""
    given = relay.expand_dims(node.cast(values, "int64"), axis=0)
    return relay.sum(relay.multiply(selected(node, axes, rank), given), axis=1)


def named(node: Node, axes: Expr, rank: int) -> Expr:
    """1 for each axis that is named."""
    return relay.sum(selected(node, axes, rank), axis=1)


def unsqueezed(node: Node, x: Expr, axes: Expr) -> Expr:
    """`x` with axes of size 1 at `axes` of the result."""
    (count,) = node.static_shape(axes)
    rank = node.rank(x) + count
    if rank == count:
        return relay.reshape(x, (1,) * rank)
    new = named(node, axes, rank)
    old = relay.subtract(relay.cumsum(relay.subtract(node.const(1), new), axis=0), node.const(1))
    sizes = relay.take(relay.shape_of(x, dtype="int64"), relay.maximum(old, node.const(0)), axis=0)
    return relay.reshape(x, relay.where(relay.equal(new, node.const(1)), node.const([1] * rank), sizes))


def squeezed(node: Node, x: Expr, axes: Expr) -> Expr:
    """`x` without the axes of size 1 that `axes` names."""
    (count,), rank = node.static_shape(axes), node.rank(x)
    if count == rank:
        return relay.reshape(x, ())
    # Those that stay come first, in order.
    order = relay.add(relay.multiply(named(node, axes, rank), node.const(rank)), node.const(np.arange(rank)))
    first = relay.strided_slice(relay.argsort(order, dtype="int64"), begin=[0], end=[rank - count])
    return relay.reshape(x, relay.take(relay.shape_of(x, dtype="int64"), first, axis=0))


def sliced(node: Node, x: Expr, starts: Expr, ends: Expr, axes: Expr, steps: Expr | None) -> Expr:
    """The part of `x` between bounds of the axes that are named."""
    rank = node.rank(x)
    (count,) = node.static_shape(axes)
    is_cut = relay.equal(named(node, axes, rank), node.const(1))
    sizes = relay.shape_of(x, dtype="int64")
    zero, one = node.const(0), node.const([1] * rank)
    begin = spread(node, axes, rank, starts)
    by = one if steps is None else relay.where(is_cut, spread(node, axes, rank, steps), one)
    if count and steps is not None:  # a start before the first element is the first, also where a step is negative
        from_front = relay.maximum(relay.where(relay.less(begin, zero), relay.add(begin, sizes), begin), zero)
        begin = relay.where(relay.less(by, zero), from_front, begin)
    end = relay.where(is_cut, spread(node, axes, rank, ends), sizes)
    return relay.strided_slice(x, begin, end, by)
