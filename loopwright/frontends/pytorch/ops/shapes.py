"""Shapes: views, permutations, parts put together and taken apart. The shape that torch says a result has is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Size
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import plus
from loopwright.relay.types import is_any, same_dim

if TYPE_CHECKING:
    import torch


@converter("view.default", "_unsafe_view", "reshape", "view_copy.default", "_reshape_alias", "squeeze", "flatten")
@converter("squeeze_copy", "unflatten")
def view(node: Node, x: Expr, *shape: object) -> Expr:
    return node.reshaped(x, node.out_shape())


@converter("view.dtype")
def view_dtype(node: Node, x: Expr, dtype: torch.dtype | None) -> Expr:
    """The same bits read as another type."""
    if node.out_shape() != node.shape(x):
        raise node.unsupported("bits read as a type of another size")
    return relay.reinterpret(x, dtype=node.out_dtype())


@converter("unsqueeze", "unsqueeze_copy")
def unsqueeze(node: Node, x: Expr, dim: int) -> Expr:
    return relay.expand_dims(x, axis=dim)


@converter("permute", "permute_copy")
def permute(node: Node, x: Expr, dims: Sequence[int]) -> Expr:
    rank = node.rank(x)
    order = [node.axis(axis, rank) for axis in dims] if rank else []
    return x if order == list(range(rank)) else relay.transpose(x, axes=order)


@converter("transpose.int", "t", "numpy_T")
def transpose(node: Node, x: Expr, one: int = 0, other: int = 1) -> Expr:
    rank = node.rank(x)
    if rank < 2:
        return x
    order = list(range(rank))
    if "numpy_T" in node.op:
        return relay.transpose(x, axes=order[::-1])
    one, other = node.axis(one, rank), node.axis(other, rank)
    order[one], order[other] = order[other], order[one]
    return permute(node, x, order)


@converter("expand", "expand_copy", "broadcast_to")
def expand(node: Node, x: Expr, sizes: Sequence[Size], implicit: bool = False) -> Expr:
    shape = node.out_shape()
    if any(is_any(size) for size in shape):
        known = [given if isinstance(size, int) and size == -1 else size for size, given in zip(sizes, shape)]
        return relay.broadcast_to(x, node.shape_of(known))
    given = node.shape(x)
    same = len(given) == len(shape) and all(map(same_dim, given, shape))
    return x if same else relay.broadcast_to(x, shape)


@converter("repeat")
def repeat(node: Node, x: Expr, repeats: Sequence[Size]) -> Expr:
    lead = len(repeats) - node.rank(x)
    if lead:
        x = node.reshaped(x, (*[1] * lead, *node.shape(x)))
    if all(isinstance(one, int) and one == 1 for one in repeats):
        return x
    return relay.tile(x, node.shape_of(repeats))


@converter("cat", "concat", "concatenate")
def cat(node: Node, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    # A vector of nothing goes with everything, as it always did in torch.
    used = [one for one in tensors if node.shape(one) != (0,)] or list(tensors[:1])
    kind = node.out_dtype()
    parts = [node.cast(one, kind) for one in used]
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=node.axis(dim, node.rank(parts[0])))


@converter("stack")
def stack(node: Node, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    kind = node.out_dtype()
    return relay.stack([node.cast(one, kind) for one in tensors], axis=node.axis(dim, len(node.out_shape())))


@converter("split_with_sizes", "split_with_sizes_copy", "split", "split_copy", "unsafe_split", "chunk")
def split(node: Node, x: Expr, sizes: object, dim: int = 0) -> list[Expr]:
    axis = node.axis(dim, node.rank(x))
    parts = [node.importer.sizes.of(part.shape[axis]) for part in node.results]
    if any(is_any(size) for size in parts):
        raise node.unsupported("parts whose sizes are known only when the model runs")
    if len(parts) == 1:
        return [x]
    edges = [parts[0]]
    for size in parts[1:-1]:
        edges.append(plus(edges[-1], size))
    return list(relay.split(x, edges, axis=axis))


@converter("unbind", "unbind_copy")
def unbind(node: Node, x: Expr, dim: int = 0) -> list[Expr]:
    axis = node.axis(dim, node.rank(x))
    count = len(node.results)
    if count == 1:
        return [relay.squeeze(x, axis=[axis])]
    return [relay.squeeze(part, axis=[axis]) for part in relay.split(x, count, axis=axis)]


@converter("flip")
def flip(node: Node, x: Expr, dims: Sequence[int]) -> Expr:
    for dim in dims:
        x = relay.reverse(x, axis=node.axis(dim, node.rank(x)))
    return x


def flat_places(node: Node, x: Expr, locations: np.ndarray) -> Expr:
    """The elements at these places, counted over all of `x`, in the shape of `locations`."""
    flat = relay.reshape(x, (math.prod(node.static_shape(x)),), allowzero=True)
    return relay.take(flat, node.const(locations.astype(np.int64)), axis=0)


@converter("diagonal", "diagonal_copy")
def diagonal(node: Node, x: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    shape = node.static_shape(x)
    indices = np.arange(math.prod(shape)).reshape(shape)
    return flat_places(node, x, np.diagonal(indices, offset, node.axis(dim1, len(shape)), node.axis(dim2, len(shape))))


@converter("as_strided", "as_strided_copy")
def as_strided(
    node: Node, x: Expr, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Expr:
    """Elements at so many steps of memory, which is that of a tensor in rows."""
    if not all(isinstance(one, int) for one in (*size, *stride)):
        raise node.unsupported("steps of memory for sizes that are no numbers")
    locations = np.array(storage_offset or 0)
    for count, step in zip(size, stride):
        locations = locations[..., None] + np.arange(count) * step
    return flat_places(node, x, locations)


@converter("unfold", "unfold_copy")
def unfold(node: Node, x: Expr, dim: int, size: int, step: int) -> Expr:
    """Windows along an axis; what they hold is a new last axis."""
    axis = node.axis(dim, node.rank(x))
    count = node.out_shape()[axis]
    if not isinstance(count, int):
        raise node.unsupported("windows along an axis whose size is no number")
    locations = np.arange(count)[:, None] * step + np.arange(size)
    used = relay.take(x, node.const(locations), axis=axis)
    rank = node.rank(used)
    return relay.transpose(used, axes=[*[k for k in range(rank) if k != axis + 1], axis + 1])


@converter("tril", "triu")
def tril(node: Node, x: Expr, diagonal: int = 0) -> Expr:
    kept = relay.cast(x, "uint8") if node.dtype(x).is_bool else x
    return relay.trilu(kept, diagonal, upper="triu" in node.op)
