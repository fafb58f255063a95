"""Elements by their places: slices, rows, gathers, indices of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Size
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import apply, broadcast, times
from loopwright.relay.types import AnyDim, Dim, is_any, same_dim

_ENDLESS = 1 << 62


def _from_front(location: Size, size: Dim) -> Size | AnyDim:
    """A place counted from the front."""
    return apply(lambda a, b: a + b, size, location) if isinstance(location, int) and location < 0 else location


@converter("select.int", "select_copy.int")
def select(node: Node, x: Expr, dim: int, index: Size) -> Expr:
    axis = node.axis(dim, node.rank(x))
    size = node.shape(x)[axis]
    location = _from_front(index, size)
    if isinstance(location, Expr):
        return relay.take(x, relay.checked_indices(location, x, axes=(axis,)), axis, mode="fast")
    if isinstance(location, AnyDim):
        whole = relay.take(relay.shape_of(x, dtype="int64"), node.const(axis), axis=0)
        last = relay.add(whole, node.operand(index, "int64"))
        return relay.take(x, last, axis=axis)
    cut = relay.strided_slice(x, begin=[location], end=[location + 1], axes=[axis])
    return relay.squeeze(cut, axis=[axis])


def _plus_size(node: Node, location: Expr, x: Expr, axis: int) -> Expr:
    size = node.shape(x)[axis]
    whole = (
        relay.take(relay.shape_of(x, dtype="int64"), node.const(axis), axis=0)
        if isinstance(size, AnyDim)
        else node.operand(size, "int64")
    )
    return relay.add(node.cast(location, "int64"), whole)


def slice_bounds(node: Node, size: Dim, start: Size | None, end: Size | None, step: int) -> tuple[Dim, Dim] | None:
    """The first place and the one behind the last, within an axis; None where they are known at run time."""
    begin = 0 if start is None else _from_front(start, size)
    last = size if end is None or (isinstance(end, int) and end >= _ENDLESS) else _from_front(end, size)
    if isinstance(begin, (Expr, AnyDim)) or isinstance(last, (Expr, AnyDim)):
        return None
    if isinstance(size, int):
        begin, last = (min(max(one, 0), size) if isinstance(one, int) else one for one in (begin, last))
    elif isinstance(begin, int):
        begin = max(begin, 0)
    return begin, last


@converter("slice.Tensor", "slice_copy.Tensor")
def slice_(
    node: Node, x: Expr, dim: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1
) -> Expr:
    axis = node.axis(dim, node.rank(x))
    size = node.shape(x)[axis]
    count = node.out_shape()[axis]
    if step == 1 and same_dim(count, size):
        return x
    bounds = slice_bounds(node, size, start, end, step)
    if bounds is None or is_any(count):
        return _dynamic_slice(node, x, axis, start, end, step)
    begin, _ = bounds
    if isinstance(count, int) and count == 0:
        return relay.strided_slice(x, begin=[0], end=[0], axes=[axis])
    # As many as torch says: no bound is beyond the end then, whatever the sizes are.
    last = apply(lambda a, n: a + (n - 1) * step + 1, begin, count)
    return relay.strided_slice(x, begin=[begin], end=[last], strides=[step], axes=[axis])


def _dynamic_slice(node: Node, x: Expr, axis: int, start: Size | None, end: Size | None, step: int) -> Expr:
    """A slice whose bounds are tensors of one number."""

    def vector(fill: int, own: Size) -> Expr:
        numbers = [node.const([fill])] * axis
        return relay.concatenate([*numbers, relay.reshape(node.operand(own, "int64"), (1,))], axis=0)

    first = vector(0, 0 if start is None else start)
    last = vector(_ENDLESS, _ENDLESS if end is None else end)
    return relay.strided_slice(x, first, last, node.const([1] * axis + [step]))


@converter("narrow")
def narrow(node: Node, x: Expr, dim: int, start: Size, length: Size) -> Expr:
    return slice_(node, x, dim, start, None)


def within(node: Node, indices: Expr, size: Dim, x: Expr, axis: int) -> Expr:
    """Indices counted from the front: negative ones count from the end, and what is outside is an error."""
    if isinstance(indices, Constant):
        if (indices.data >= 0).all():
            return indices
        if isinstance(size, int):
            return node.const(np.where(indices.data < 0, indices.data + size, indices.data))
    return relay.checked_indices(node.cast(indices, "int64"), x, axes=(axis,))


@converter("index_select")
def index_select(node: Node, x: Expr, dim: int, index: Expr) -> Expr:
    if node.rank(index) == 0:
        index = relay.reshape(index, (1,))
    if not node.rank(x):
        return relay.reshape(x, ())
    return relay.take(x, index, axis=node.axis(dim, node.rank(x)), mode="fast")


@converter("embedding")
def embedding(node: Node, weight: Expr, indices: Expr, *others: object) -> Expr:
    return relay.take(weight, indices, axis=0, mode="fast")


@converter("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    node: Node,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scale_grad: object = False,
    mode: int = 0,
    sparse: object = False,
    weights: Expr | None = None,
    include_last: bool = False,
    padding_idx: int = -1,
) -> list[Expr]:
    """Rows of a table, those between two offsets joined: summed, averaged, or the greatest of them."""
    if include_last or padding_idx >= 0:
        raise node.unsupported("a bag with a last offset or with padding")
    rows = relay.take(weight, indices, axis=0, mode="fast")
    if weights is not None:
        rows = relay.multiply(rows, relay.expand_dims(weights, axis=1))
    count = node.shape(indices)[0]
    bags = node.shape(offsets)[0]
    places = relay.cumsum(relay.full(node.const(1), (count,), "int64"), axis=0, exclusive=True, dtype="int64")
    # The bag of a row is the last one that begins at it or before.
    begun = relay.less_equal(relay.expand_dims(node.cast(offsets, "int64"), axis=1), relay.expand_dims(places, axis=0))
    bag = relay.subtract(relay.sum(relay.cast(begun, "int64"), axis=[0]), node.const(1))
    shape = (bags, node.shape(weight)[1])
    kind = str(node.dtype(weight))
    where = relay.expand_dims(bag, axis=0)
    many = relay.scatter_nd(
        relay.zeros((bags,), kind), where, relay.full(node.like(weight, 1), (count,), kind), mode="add"
    )
    filled = relay.expand_dims(relay.maximum(many, node.like(weight, 1)), axis=1)
    if mode == 2:
        low = relay.full(node.like(weight, -np.inf), shape, kind)
        top = relay.scatter_nd(low, where, rows, mode="max")
        empty = relay.equal(relay.expand_dims(many, axis=1), node.like(weight, 0))
        return [relay.where(empty, node.like(weight, 0), top)]
    total = relay.scatter_nd(relay.zeros(shape, kind), where, rows, mode="add")
    return [relay.divide(total, filled) if mode == 1 else total]


@converter("gather")
def gather(node: Node, x: Expr, dim: int, index: Expr, sparse_grad: bool = False) -> Expr:
    if node.rank(x) == 0:
        return node.reshaped(relay.broadcast_to(x, node.shape(index)), node.shape(index))
    if node.rank(index) == 0:
        index = relay.reshape(index, (1,))
    return node.reshaped(relay.gather(x, node.axis(dim, node.rank(x)), index), node.out_shape())


@converter("take")
def take(node: Node, x: Expr, index: Expr) -> Expr:
    count = times(*node.shape(x))
    flat = relay.reshape(x, (count,), allowzero=True)
    return relay.take(flat, within(node, index, count, flat, 0), axis=0, mode="fast")


@converter("index.Tensor", "_unsafe_index.Tensor")
def index(node: Node, x: Expr, indices: Sequence[Expr | None]) -> Expr:
    """numpy's indexing by tensors; axes that are not indexed stay."""
    locations = by_axis(node, x, indices)
    if len(locations) == 1:
        axis, where = locations[0]
        return relay.take(x, within(node, where, node.shape(x)[axis], x, axis), axis=axis, mode="fast")
    rank = node.rank(x)
    axes = [axis for axis, _ in locations]
    result = [within(node, where, node.shape(x)[axis], x, axis) for axis, where in locations]
    order = [*axes, *[axis for axis in range(rank) if axis not in axes]]
    data = x if order == list(range(rank)) else relay.transpose(x, axes=order)
    wide = [node.cast(where, "int64") for where in spread(node, result)]
    used = relay.adv_index([data, *wide])
    # Where the indexed axes are neighbours, what they become is in their place; otherwise it is in front.
    first, width = axes[0], node.rank(wide[0])
    if first and axes == list(range(first, first + len(axes))):
        total = node.rank(used)
        used = relay.transpose(used, axes=[*range(width, width + first), *range(width), *range(width + first, total)])
    return used


def by_axis(node: Node, x: Expr, indices: Sequence[Expr | None]) -> list[tuple[int, Expr]]:
    """The axes that are indexed, each with its indices; a mask is the places where it holds."""
    locations: list[tuple[int, Expr]] = []
    axis = 0
    for one in indices:
        if one is None:
            axis += 1
        elif node.dtype(one).is_bool or str(node.dtype(one)) == "uint8":
            rank = node.rank(one)
            held = relay.argwhere(one)
            for k in range(rank):
                column = relay.squeeze(relay.strided_slice(held, begin=[k], end=[k + 1], axes=[1]), axis=[1])
                locations.append((axis + k, node.cast(column, "int64")))
            axis += rank
        else:
            locations.append((axis, one))
            axis += 1
    return locations


def spread(node: Node, tensors: Sequence[Expr]) -> list[Expr]:
    """Tensors repeated to one shape."""
    shape: tuple[Dim, ...] = ()
    for one in tensors:
        shape = broadcast("index", shape, node.shape(one))
    if any(is_any(size) for size in shape):
        return list(tensors)
    same = [len(node.shape(one)) == len(shape) and all(map(same_dim, node.shape(one), shape)) for one in tensors]
    return [one if done else relay.broadcast_to(one, shape) for one, done in zip(tensors, same)]


@converter("masked_select")
def masked_select(node: Node, x: Expr, mask: Expr) -> Expr:
    """The elements where the mask holds; how many there are is known when the model runs."""
    x, mask = spread(node, [x, mask])
    if node.rank(x) == 0:
        x, mask = relay.reshape(x, (1,)), relay.reshape(mask, (1,))
    held = relay.transpose(relay.argwhere(mask), axes=[1, 0])
    return relay.gather_nd(x, node.cast(held, "int64"), index_rank=node.rank(x))


@converter("nonzero")
def nonzero(node: Node, x: Expr) -> Expr:
    kept = x if node.dtype(x).is_bool else relay.not_equal(x, node.like(x, 0))
    return relay.argwhere(kept)


@converter("one_hot")
def one_hot(node: Node, x: Expr, num_classes: int = -1) -> Expr:
    if num_classes < 0:
        raise node.unsupported("a number of classes that the elements say", hint="give num_classes")
    return relay.one_hot(x, 1, 0, num_classes, -1, "int64")
