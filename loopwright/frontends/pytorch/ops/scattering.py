"""Elements put to places: scatter, index_put, slices that are replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.ops.indexing import by_axis, slice_bounds, spread, within
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Operand, Size
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import apply, minus, times
from loopwright.relay.types import Dim, is_any, same_dim

_REDUCTIONS = {
    "sum": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
    "mean": "mean",
    "add": "add",
    "multiply": "mul",
}


@converter("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(node: Node, x: Expr, dim: int, index: Expr, source: Operand, reduce: str | None = None) -> Expr:
    return _scattered(node, x, dim, index, source, "update" if reduce is None else _REDUCTIONS[reduce])


@converter("scatter_add")
def scatter_add(node: Node, x: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    return _scattered(node, x, dim, index, source, "add")


@converter("scatter_reduce")
def scatter_reduce(
    node: Node, x: Expr, dim: int, index: Expr, source: Expr, reduce: str, include_self: bool = True
) -> Expr:
    if include_self and reduce != "mean":
        return _scattered(node, x, dim, index, source, _REDUCTIONS[reduce])
    kind = node.dtype(x)
    neutral: dict[str, float] = {
        "sum": 0,
        "mean": 0,
        "prod": 1,
        "amax": -math.inf if kind.is_float else kind.min_value(),
        "amin": math.inf if kind.is_float else kind.max_value(),
    }
    ones = relay.full(node.like(x, 1), node.shape(index), str(kind))
    zeros = relay.full(node.like(x, 0), node.shape(x), str(kind))
    hits = _scattered(node, zeros, dim, index, ones, "add")
    touched = relay.greater(hits, node.like(x, 0))
    begin = x if include_self else relay.where(touched, node.like(x, neutral[reduce]), x)
    result = _scattered(node, begin, dim, index, source, "add" if reduce == "mean" else _REDUCTIONS[reduce])
    if reduce != "mean":
        return result
    count = relay.add(hits, node.like(x, 1)) if include_self else relay.maximum(hits, node.like(x, 1))
    return relay.divide(result, count) if kind.is_float else relay.floor_divide(result, count)


def _scattered(node: Node, x: Expr, dim: int, index: Expr, source: Operand, how: str) -> Expr:
    """Each element of `source`, of those that `index` has a place for, put along an axis."""
    shape = node.shape(x)
    if not shape:
        x, index = relay.reshape(x, (1,)), relay.reshape(index, (1,))
        source = relay.reshape(source, (1,)) if isinstance(source, Expr) else source
        return relay.reshape(_scattered(node, x, 0, index, source, how), ())
    if node.rank(index) == 0:
        index = relay.reshape(index, (1,))
        source = relay.reshape(source, (1,)) if isinstance(source, Expr) else source
    sizes = node.shape(index)
    if not isinstance(source, Expr) or node.rank(source) == 0:
        put: Expr = relay.full(node.operand(source, x), sizes, str(node.dtype(x)))
    elif all(map(same_dim, node.shape(source), sizes)):
        put = source
    else:
        put = relay.strided_slice(source, begin=[0] * len(sizes), end=list(sizes), axes=list(range(len(sizes))))
    axis = node.axis(dim, len(shape))
    locations = relay.checked_indices(index, x, axes=(axis,))
    return relay.scatter_elements(x, locations, node.cast(put, x), axis=axis, reduction=how)


@converter("index_put", "_unsafe_index_put")
def index_put(node: Node, x: Expr, indices: Sequence[Expr | None], values: Expr, accumulate: bool = False) -> Expr:
    """numpy's assignment to elements that tensors index."""
    given = [one for one in indices if one is not None]
    if len(given) == 1 and node.dtype(given[0]).is_bool and node.rank(values) == 0:
        return _masked(node, x, indices, values, accumulate)
    rank = node.rank(x)
    locations = by_axis(node, x, indices)
    axes = [axis for axis, _ in locations]
    answer = spread(node, [within(node, where, node.shape(x)[axis], x, axis) for axis, where in locations])
    wide = [node.cast(where, "int64") for where in answer]
    rest = [axis for axis in range(rank) if axis not in axes]
    order = [*axes, *rest]
    straight = order == list(range(rank))
    data = x if straight else relay.transpose(x, axes=order)
    width = node.rank(wide[0])
    # What is put has the axes of the indices in the place of those indexed, or in front where these are apart.
    target = (*node.shape(wide[0]), *[node.shape(x)[axis] for axis in rest])
    first = axes[0]
    together = axes == list(range(first, first + len(axes)))
    if first and together:
        target = (*target[width : width + first], *target[:width], *target[width + first :])
    if any(is_any(size) for size in target):
        raise node.unsupported("values put where a mask holds, unless it is one value for all")
    put = node.cast(values, x)
    if not (node.rank(put) == len(target) and all(map(same_dim, node.shape(put), target))):
        put = relay.broadcast_to(put, target)
    if first and together:
        put = relay.transpose(
            put, axes=[*range(first, first + width), *range(first), *range(first + width, len(target))]
        )
    columns = relay.stack(wide, axis=0)
    result = relay.scatter_nd(data, columns, put, mode="add" if accumulate else "update")
    return result if straight else relay.transpose(result, axes=[order.index(axis) for axis in range(rank)])


def _masked(node: Node, x: Expr, indices: Sequence[Expr | None], values: Expr, accumulate: bool) -> Expr:
    """One value put where a mask holds."""
    before, mask = next((k, one) for k, one in enumerate(indices) if one is not None)
    behind = node.rank(x) - before - node.rank(mask)
    if behind:
        mask = relay.expand_dims(mask, axis=node.rank(mask), num_newaxis=behind)
    value = node.cast(values, x)
    return relay.where(mask, relay.add(x, value) if accumulate else value, x)


@converter("masked_scatter")
def masked_scatter(node: Node, x: Expr, mask: Expr, source: Expr) -> Expr:
    """The elements of `source` one by one to where the mask holds."""
    shape = node.shape(x)
    count = times(*shape)
    wide = mask if node.shape(mask) == shape else relay.broadcast_to(mask, shape)
    flat = relay.cast(relay.reshape(wide, (count,), allowzero=True), "int64")
    turn = relay.maximum(relay.subtract(relay.cumsum(flat, axis=0, dtype="int64"), node.const(1)), node.const(0))
    used = relay.take(relay.reshape(source, (times(*node.shape(source)),), allowzero=True), turn, axis=0)
    return relay.where(wide, node.cast(relay.reshape(used, shape, allowzero=True), x), x)


@converter("slice_scatter")
def slice_scatter(
    node: Node, x: Expr, source: Expr, dim: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1
) -> Expr:
    """`x` with a slice of it replaced."""
    axis = node.axis(dim, node.rank(x))
    size = node.shape(x)[axis]
    bounds = slice_bounds(node, size, start, end, step)
    if bounds is None:
        raise node.unsupported("a slice replaced whose bounds are known only when the model runs")
    begin, last = bounds
    put = node.cast(source, x)
    if step != 1:
        if not (isinstance(size, int) and isinstance(begin, int) and isinstance(last, int)):
            raise node.unsupported("every so many elements replaced of a size that is no number")
        return _every(node, x, put, axis, range(size)[begin:last:step])
    return _between(node, x, put, axis, begin, last)


def _between(node: Node, x: Expr, put: Expr, axis: int, begin: Dim, last: Dim) -> Expr:
    """What is before, what is put, what is behind."""
    size = node.shape(x)[axis]
    parts = []
    if not same_dim(begin, 0):
        parts.append(relay.strided_slice(x, begin=[0], end=[begin], axes=[axis]))
    parts.append(put)
    if not same_dim(last, size):
        behind = apply(lambda a, n: a + n, last, minus(size, last))
        parts.append(relay.strided_slice(x, begin=[last], end=[behind], axes=[axis]))
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=axis)


def _every(node: Node, x: Expr, put: Expr, axis: int, locations: range) -> Expr:
    """`x` with what is put at these places along an axis: taken from there, where it is, and from `x` elsewhere."""
    size = node.static_shape(x)[axis]
    source = np.zeros(size, np.int64)
    source[list(locations)] = np.arange(len(locations))
    held = np.zeros(size, bool)
    held[list(locations)] = True
    behind = node.rank(x) - axis - 1
    mask = node.const(held.reshape(-1, *[1] * behind), "bool")
    return relay.where(mask, relay.take(put, node.const(source), axis=axis), x)


@converter("select_scatter")
def select_scatter(node: Node, x: Expr, source: Expr, dim: int, index: Size) -> Expr:
    axis = node.axis(dim, node.rank(x))
    size = node.shape(x)[axis]
    location = apply(lambda a, b: a + b, size, index) if isinstance(index, int) and index < 0 else index
    if isinstance(location, Expr) or is_any(location):
        raise node.unsupported("a row replaced whose place is known only when the model runs")
    put = relay.expand_dims(node.cast(source, x), axis=axis)
    return _between(node, x, put, axis, location, apply(lambda a: a + 1, location))


@converter("index_copy", "index_add")
def index_add(node: Node, x: Expr, dim: int, index: Expr, source: Expr, alpha: float = 1) -> Expr:
    """Rows along an axis put to, or added at, places."""
    axis = node.axis(dim, max(node.rank(x), 1))
    order = [axis, *[k for k in range(node.rank(x)) if k != axis]]
    put = node.cast(source, x)
    if alpha != 1:
        put = relay.multiply(put, node.operand(alpha, put))
    data, rows = (relay.transpose(one, axes=order) if axis else one for one in (x, put))
    where = relay.reshape(index, (1, times(*node.shape(index))), allowzero=True)
    result = relay.scatter_nd(data, where, rows, mode="add" if "add" in node.op else "update")
    return relay.transpose(result, axes=[order.index(k) for k in range(len(order))]) if axis else result
