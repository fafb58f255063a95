"""Elements in order: sort, topk, searchsorted."""

from __future__ import annotations

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Operand, Results, Size
from loopwright.relay.expr import Expr
from loopwright.relay.types import Dim


def _comparable(node: Node, x: Expr) -> Expr:
    return relay.cast(x, "uint8") if node.dtype(x).is_bool else x


@converter("sort.default", "sort.stable", "argsort")
def sort(node: Node, x: Expr, *args: int, dim: int = -1, descending: bool = False) -> Results:
    if "sort.stable" in node.op:
        args = args[1:]
    dim, falling = (*args, *(dim, descending)[len(args) :])[:2]
    rank = node.rank(x)
    x = _comparable(node, x)
    flat = x if rank else relay.reshape(x, (1,))
    axis = node.axis(dim, max(rank, 1))
    locations = relay.argsort(flat, axis=axis, is_ascend=not falling, dtype="int64")
    if "argsort" in node.op:
        return node.reshaped(locations, node.out_shape())
    values = relay.gather(flat, axis, locations)
    return [node.reshaped(values, node.out_shape(0)), node.reshaped(locations, node.out_shape(1))]


@converter("topk")
def topk(node: Node, x: Expr, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True) -> Results:
    rank = node.rank(x)
    if rank == 0:
        return [x, node.const(0)]
    axis = node.axis(dim, rank)
    if isinstance(k, int) and k == 0:
        return [relay.zeros(node.out_shape(location), node.out_dtype(location)) for location in (0, 1)]
    if not isinstance(k, (int, Expr)):
        return _first(node, x, k, axis, largest)
    result = relay.topk(_comparable(node, x), k=k, axis=axis, is_ascend=not largest, dtype="int64")
    return list(result)


def _first(node: Node, x: Expr, k: Dim, axis: int, largest: bool) -> list[Expr]:
    """As many as a size that has a name: the first of all in order."""
    flat = _comparable(node, x)
    locations = relay.argsort(flat, axis=axis, is_ascend=not largest, dtype="int64")
    kept = relay.strided_slice(locations, begin=[0], end=[k], axes=[axis])
    return [relay.gather(flat, axis, kept), kept]


@converter("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    node: Node,
    rows: Expr,
    values: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: object = None,
) -> Expr:
    if sorter is not None:
        raise node.unsupported("a sorter")
    right = right or side == "right"
    if not isinstance(values, Expr):
        values = node.operand(values, rows)
    return _found(node, rows, values, right)


@converter("bucketize.Tensor", "bucketize.Scalar")
def bucketize(node: Node, values: Operand, edges: Expr, out_int32: bool = False, right: bool = False) -> Expr:
    if not isinstance(values, Expr):
        values = node.operand(values, edges)
    return _found(node, edges, values, right)


def _found(node: Node, rows: Expr, values: Expr, right: bool) -> Expr:
    """Where values belong: how many elements of their row come before them."""
    shape = node.shape(values)
    kind = str(node.dtype(rows if node.is_float(rows) else values))
    rows, values = node.cast(rows, kind), node.cast(values, kind)
    if node.rank(rows) == 1:
        flat = relay.reshape(values, (-1,))
        return node.reshaped(relay.searchsorted(rows, flat, right=right, dtype="int64"), shape)
    return relay.searchsorted(rows, values, right=right, dtype="int64")


@converter("_unique2", "unique_dim")
def unique(
    node: Node, x: Expr, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> list[Expr | None]:
    """The different elements; how many there are is known when the model runs."""
    if "unique_dim" in node.op:
        raise node.unsupported("the different slices along an axis")
    flat = relay.reshape(x, (-1,))
    values, _, inverse, count, *counts = relay.unique(flat, is_sorted=True, return_counts=return_counts)
    end = relay.reshape(relay.cast(count, "int64"), (1,))
    begin, step = node.const([0]), node.const([1])
    cut = relay.strided_slice(values, begin, end, step)
    result = [cut, node.reshaped(inverse, node.shape(x))]
    return [*result, relay.strided_slice(counts[0], begin, end, step) if counts else None]
