"""Elements chosen by indices: Gather, Scatter, OneHot, TopK, NonZero, Compress, Unique …"""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.values import Results
from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import times


def indices_of_axis(node: Node, x: Expr, indices: Expr, axis: int) -> Expr:
    """Indices into an axis of `x`, the negative ones counted from the front; one that is outside is an error.

    Indices that are known are looked at now, others in each call.
    """
    size = node.shape(x)[axis]
    result = node.known(indices)
    if result is not None and result.dtype != object and isinstance(size, int):
        if result.size and (result.min() < -size or result.max() >= size):
            raise node.bad(f"an index is outside the size {size} of axis {axis}: {result.min()} … {result.max()}")
        return counted_from_front(node, indices, size)
    return relay.checked_indices(indices, x, axes=(axis,))


def counted_from_front(node: Node, indices: Expr, size: int) -> Expr:
    """The same for a size that is a number, without a check."""
    result = node.known(indices)
    if result is not None and result.dtype != object:
        if not (result < 0).any():
            return indices
        return Constant(np.where(result < 0, result + size, result).astype(result.dtype))
    length = node.const(size, node.dtype(indices))
    return relay.where(relay.less(indices, node.const(0, indices)), relay.add(indices, length), indices)


@converter("Gather")
def gather(node: Node, x: Expr, indices: Expr) -> Expr:
    axis = node.axis(node.attr("axis", 0), node.rank(x))
    return relay.take(x, indices_of_axis(node, x, indices, axis), axis=axis, mode="fast")


@converter("GatherElements", since=11)
def gather_elements(node: Node, x: Expr, indices: Expr) -> Expr:
    axis = node.axis(node.attr("axis", 0), node.rank(x))
    return relay.gather(x, axis, indices_of_axis(node, x, indices, axis))


def _tuples_first(node: Node, indices: Expr) -> Expr:
    """Index tuples as the first axis, which is where relay wants them; ONNX has them last."""
    rank = node.rank(indices)
    return relay.transpose(indices, axes=[rank - 1, *range(rank - 1)]) if rank > 1 else indices


def _tuples_from_front(node: Node, x: Expr, indices: Expr, first: int, count: int) -> Expr:
    """Index tuples (last axis) into `count` axes of `x`, from `first` on, without negative numbers; all are checked."""
    axes = range(first, first + count)
    sizes = [node.shape(x)[axis] for axis in axes]
    result = node.known(indices)
    if result is None or result.dtype == object or not all(isinstance(size, int) for size in sizes):
        return relay.checked_indices(indices, x, axes=tuple(axes), tuples=True)
    wrong = (result < -np.array(sizes)) | (result >= np.array(sizes))
    if wrong.any():
        raise node.bad(f"an index is outside the sizes {tuple(sizes)}: {result[wrong.any(axis=-1)][0]}")
    return Constant(np.where(result < 0, result + np.array(sizes), result).astype(result.dtype))


@converter("GatherND", since=11)
def gather_nd(node: Node, x: Expr, indices: Expr) -> Expr:
    batch = node.attr("batch_dims", 0)
    depth = node.shape(indices)[-1]
    if not isinstance(depth, int):
        raise node.sizes_needed(f"index tuples have the length {depth}", [depth])
    indices = _tuples_from_front(node, x, indices, batch, depth)
    return relay.gather_nd(x, _tuples_first(node, indices), batch_dims=batch, index_rank=depth)


_REDUCTIONS = {"none": "update", "update": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(node: Node) -> str:
    given = node.attr("reduction", "none")
    if given not in _REDUCTIONS:
        raise node.invalid("reduction", given, ", ".join(_REDUCTIONS))
    return _REDUCTIONS[given]


@converter("Scatter", since=9)
@converter("ScatterElements", since=11)
def scatter_elements(node: Node, x: Expr, indices: Expr, updates: Expr) -> Expr:
    axis = node.axis(node.attr("axis", 0), node.rank(x))
    locations = indices_of_axis(node, x, indices, axis)
    return relay.scatter_elements(x, locations, updates, axis=axis, reduction=_reduction(node))


@converter("ScatterND", since=11)
def scatter_nd(node: Node, x: Expr, indices: Expr, updates: Expr) -> Expr:
    depth = node.shape(indices)[-1]
    if not isinstance(depth, int):
        raise node.sizes_needed(f"index tuples have the length {depth}", [depth])
    indices = _tuples_from_front(node, x, indices, 0, depth)
    return relay.scatter_nd(x, _tuples_first(node, indices), updates, mode=_reduction(node))


@converter("TensorScatter", since=24)
def tensor_scatter(node: Node, past: Expr, update: Expr, write_indices: Expr | None = None) -> Expr:
    """New rows written into a cache, each batch at its own place; around the end where that is circular."""
    axis = node.axis(node.attr("axis", -2), node.rank(past))
    mode = node.attr("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.invalid("mode", mode, "linear or circular")
    shape, part = node.static_shape(past), node.static_shape(update)
    starts = node.const(np.zeros(shape[0])) if write_indices is None else node.cast(write_indices, "int64")
    column = (shape[0],) + (1,) * (len(shape) - 1)
    along = np.arange(part[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    locations = relay.add(relay.reshape(starts, column, allowzero=True), node.const(along))
    if mode == "circular":
        locations = relay.floor_mod(locations, node.const(shape[axis]))
    indices = relay.checked_indices(relay.broadcast_to(locations, part), past, axes=(axis,))
    return relay.scatter_elements(past, indices, update, axis=axis, reduction="update")


@converter("OneHot", since=9)
def one_hot(node: Node, indices: Expr, depth: Expr, values: Expr) -> Expr:
    """`values` are [off, on]; indices below zero are counted from the end, others outside have no place."""
    rank = node.rank(indices)
    axis = node.axis(node.attr("axis", -1), rank + 1)
    whole = node.cast(indices, "int64")
    open_ended = node.importer.dynamic and node.known(depth) is None
    total = relay.reshape(node.cast(depth, "int64"), ()) if open_ended else node.const(int(node.scalar(depth)))
    locations = relay.where(relay.less(whole, node.const(0)), relay.add(whole, total), whole)
    if open_ended:
        hot = relay.cast(relay.one_hot(locations, 1, 0, total, axis, "int32"), "bool")
        return _hot_or_not(node, hot, values)
    count = int(node.scalar(depth))
    classes = node.const(np.arange(count).reshape([-1 if k == axis else 1 for k in range(rank + 1)]))
    return _hot_or_not(node, relay.equal(relay.expand_dims(locations, axis=axis), classes), values)


def _hot_or_not(node: Node, hot: Expr, values: Expr) -> Expr:
    off = relay.reshape(relay.strided_slice(values, begin=[0], end=[1]), ())
    on = relay.reshape(relay.strided_slice(values, begin=[1], end=[2]), ())
    return relay.where(hot, on, off)


@converter("TopK", since=1)
def topk_attribute(node: Node, x: Expr) -> Results:
    return _topk(node, x, node.attr("k"), largest=True)


@converter("TopK", since=10)
def topk(node: Node, x: Expr, k: Expr) -> Results:
    largest = bool(node.attr("largest", 1))
    counts = node.sizes_if_known(k)
    if counts is not None and len(counts) == 1 and isinstance(counts[0], PrimExpr):  # as a call's sizes say
        axis = node.axis(node.attr("axis", -1), node.rank(x))
        return relay.topk(x, k=counts[0], axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")
    if node.importer.dynamic and counts is None:
        axis = node.axis(node.attr("axis", -1), node.rank(x))
        count = relay.reshape(node.cast(k, "int64"), ())
        return relay.topk(x, k=count, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")
    return _topk(node, x, int(node.scalar(k)), largest)


def _topk(node: Node, x: Expr, count: int, largest: bool) -> Results:
    axis = node.axis(node.attr("axis", -1), node.rank(x))
    size = node.shape(x)[axis]
    if count < 0 or (isinstance(size, int) and count > size):
        raise node.bad(f"k is {count}, and axis {axis} has {size} elements")
    if count == 0:
        shape = [0 if k == axis else one for k, one in enumerate(node.static_shape(x))]
        return [relay.const(np.zeros(shape), str(node.dtype(x))), node.const(np.zeros(shape))]
    return relay.topk(x, k=count, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")


@converter("NonZero", since=9)
def non_zero(node: Node, x: Expr) -> Expr:
    """Places of what is not zero, a row an axis."""
    result = node.known(x)
    if result is not None and result.dtype != object:
        locations = np.nonzero(result.reshape(result.shape or (1,)))
        return Constant(np.array(locations, dtype=np.int64)[: result.ndim])
    if node.rank(x) == 0:  # a number has no axes, so there are no rows: only their length tells
        locations = relay.argwhere(relay.reshape(x, (1,)))
        return relay.cast(relay.transpose(relay.strided_slice(locations, [0], [0], axes=[1]), axes=[1, 0]), "int64")
    locations = relay.argwhere(x, dtype="int64")
    if node.rank(x) == 1:  # which moves nothing
        return relay.expand_dims(relay.squeeze(locations, axis=[1]), axis=0)
    return relay.transpose(locations, axes=[1, 0])


@converter("Compress", since=9)
def compress(node: Node, x: Expr, condition: Expr) -> Expr:
    """The slices along an axis (or elements) where the condition holds; what it is too short for is left out."""
    axis = node.attr("axis", None)
    if axis is None:
        x = relay.reshape(x, (times(*node.shape(x)),), allowzero=True)
        axis = 0
    axis = node.axis(axis, node.rank(x))
    result = node.known(condition)
    if result is not None:
        return relay.take(x, node.const(np.nonzero(result)[0]), axis=axis)
    locations = relay.squeeze(relay.argwhere(condition, dtype="int64"), axis=[1])
    return relay.take(x, locations, axis=axis)


@converter("Unique", since=11)
def unique(node: Node, x: Expr) -> Results:
    """Different values, in order (or in order of their first places); their first places, where each is, how many."""
    axis = node.attr("axis", None)
    in_order = bool(node.attr("sorted", 1))
    result = node.known(x)
    if result is None or result.dtype == object:
        if axis is not None and node.rank(x) > 1:
            raise node.importer.value_needed(node, x)
        return _unique_running(node, relay.reshape(x, (times(*node.shape(x)),), allowzero=True), in_order)
    values, first, inverse, counts = np.unique(
        result, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = np.asarray(inverse).reshape(-1)
    if not in_order:
        order = np.argsort(first, kind="stable")
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(order.size)
        values = np.take(values, order, axis=axis or 0)
        first, counts, inverse = first[order], counts[order], rank_of[inverse]
    return [Constant(values), *(Constant(np.asarray(one, np.int64)) for one in (first, inverse, counts))]


def _unique_running(node: Node, x: Expr, in_order: bool) -> list[Expr]:
    values, first, inverse, count, counts = relay.unique(x, is_sorted=in_order, return_counts=True)
    begin, end = node.const([0]), node.cast(relay.reshape(count, (1,)), "int64")

    def trimmed(padded: Expr) -> Expr:
        return relay.strided_slice(padded, begin, end, node.const([1]))

    return [trimmed(values), *(relay.cast(one, "int64") for one in (trimmed(first), inverse, trimmed(counts)))]
