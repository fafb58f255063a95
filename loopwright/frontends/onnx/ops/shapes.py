"""Shapes and what changes only them: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Identity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import relay
from loopwright.frontends.common.tensors import shape_text
from loopwright.frontends.onnx import dynamic_axes
from loopwright.frontends.onnx.node import Node, all_known
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.shape_values import objects
from loopwright.frontends.onnx.values import Value
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Select, as_expr, const
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import divide_down, times
from loopwright.relay.types import Dim, as_dim, is_any, same_dim


@converter("Identity")
def identity(node: Node, x: Value) -> Value:
    return x


@converter("Shape")
def shape(node: Node, x: Expr) -> Expr:
    """The shape as int64; sizes with names are known as such."""
    sizes = node.shape(x)
    rank = len(sizes)
    start, end = (_bound(node.attr(name, default), rank) for name, default in (("start", 0), ("end", rank)))
    return _sizes_as_tensor(node, x, sizes, start, max(end, start))


def _bound(index: int, rank: int) -> int:
    return min(max(index + rank if index < 0 else index, 0), rank)


def _sizes_as_tensor(node: Node, x: Expr, sizes: Sequence[Dim], start: int, end: int) -> Expr:
    part = sizes[start:end]
    if all(isinstance(size, int) for size in part):
        return Constant(np.array(part, np.int64))
    whole = relay.shape_of(x, dtype="int64")
    result = whole if (start, end) == (0, len(sizes)) else relay.strided_slice(whole, begin=[start], end=[end])
    if all_known(part):
        node.importer.set_known(result, objects(part))
    return result


@converter("Size")
def size(node: Node, x: Expr) -> Expr:
    total = times(*node.shape(x))
    if isinstance(total, int):
        return Constant(np.array(total, np.int64))
    result = relay.ndarray_size(x, dtype="int64")
    if not is_any(total):
        node.importer.set_known(result, objects([total], ()))
    return result


@converter("Reshape", since=1)
def reshape_attribute(node: Node, x: Expr) -> Expr:
    return reshaped(node, x, node.attr("shape"), allow_zero=False)


@converter("Reshape", since=5)
def reshape(node: Node, x: Expr, shape: Expr) -> Expr:
    """0 keeps a size (unless `allowzero`), -1 is what is left."""
    sizes = node.sizes_if_known(shape)
    if sizes is None:
        return relay.reshape(x, shape, allowzero=bool(node.attr("allowzero", 0)))
    return reshaped(node, x, sizes, allow_zero=bool(node.attr("allowzero", 0)))


def reshaped(node: Node, x: Expr, sizes: Sequence[Dim], allow_zero: bool) -> Expr:
    """`x` in another shape, its sizes written out."""
    given = node.shape(x)
    wanted: list[Dim] = []
    inferred = None
    for index, one in enumerate(sizes):
        if isinstance(one, int) and one == 0 and not allow_zero:
            if index >= len(given):
                raise node.bad(f"shape {list(sizes)} keeps size {index}, and the tensor has {len(given)} dimensions")
            wanted.append(given[index])
        elif isinstance(one, int) and one == -1:
            if inferred is not None:
                raise node.bad(f"shape {list(sizes)} leaves two sizes open")
            inferred = index
            wanted.append(1)
        elif isinstance(one, int) and one < 0:
            raise node.bad(f"shape {list(sizes)} has the size {one}")
        else:
            wanted.append(one)
    if inferred is not None:
        wanted[inferred] = _rest(node, given, [one for index, one in enumerate(wanted) if index != inferred])
    if len(wanted) == len(given) and all(same_dim(one, other) for one, other in zip(wanted, given)):
        return x
    if any(is_any(one) for one in wanted):
        return relay.reshape(x, tuple(-1 if is_any(one) else one for one in wanted), allowzero=True)
    return relay.reshape(x, tuple(wanted), allowzero=True)


def _rest(node: Node, given: Sequence[Dim], others: Sequence[Dim]) -> Dim:
    """The size that is left when the others are taken from a shape."""
    left = list(given)
    remaining = []
    for one in others:  # what is in both, one by one: n * 3 / n is 3 whatever n is
        location = next((k for k, size in enumerate(left) if same_dim(size, one)), None)
        if location is None:
            remaining.append(one)
        else:
            del left[location]
    total, used = times(*left), times(*remaining)
    if isinstance(total, int) and isinstance(used, int):
        if used == 0:
            return 0
        if total % used:
            raise node.bad(f"{total} elements cannot be parted by {used}")
    return divide_down(total, used)


@converter("Flatten")
def flatten(node: Node, x: Expr) -> Expr:
    shape = node.shape(x)
    axis = node.attr("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise node.bad(f"axis {axis} is not one of a tensor of {len(shape)} dimensions")
    axis = axis + len(shape) if axis < 0 else axis
    return relay.reshape(x, (times(*shape[:axis]), times(*shape[axis:])), allowzero=True)


@converter("Squeeze", since=1)
def squeeze_attribute(node: Node, x: Expr) -> Expr:
    return _squeezed(node, x, node.attr("axes", None))


@converter("Squeeze", since=13)
def squeeze(node: Node, x: Expr, axes: Expr | None = None) -> Expr:
    if axes is not None and node.importer.dynamic and node.known(axes) is None:
        return dynamic_axes.squeezed(node, x, axes)
    return _squeezed(node, x, None if axes is None else node.ints(axes))


def _squeezed(node: Node, x: Expr, axes: Sequence[int] | None) -> Expr:
    shape = node.shape(x)
    if axes is None:
        if not all(isinstance(one, int) for one in shape):
            raise node.sizes_needed(f"which sizes of {shape_text(shape)} are 1", shape)
        over = [axis for axis, one in enumerate(shape) if isinstance(one, int) and one == 1]
    else:
        over = sorted({node.axis(axis, len(shape)) for axis in axes})
        for axis in over:
            if isinstance(shape[axis], int) and shape[axis] != 1:
                raise node.bad(f"axis {axis} has size {shape[axis]}, and not 1")
    return relay.squeeze(x, axis=over) if over else x


@converter("Unsqueeze", since=1)
def unsqueeze_attribute(node: Node, x: Expr) -> Expr:
    return _unsqueezed(node, x, node.attr("axes"))


@converter("Unsqueeze", since=13)
def unsqueeze(node: Node, x: Expr, axes: Expr) -> Expr:
    if node.importer.dynamic and node.known(axes) is None:
        return dynamic_axes.unsqueezed(node, x, axes)
    return _unsqueezed(node, x, node.ints(axes))


def _unsqueezed(node: Node, x: Expr, axes: Sequence[int]) -> Expr:
    rank = node.rank(x) + len(axes)
    over = sorted({node.axis(axis, rank) for axis in axes})
    if len(over) != len(axes):
        raise node.bad(f"an axis is named twice: {list(axes)}")
    for axis in over:
        x = relay.expand_dims(x, axis=axis)
    return x


@converter("Expand", since=8)
def expand(node: Node, x: Expr, shape: Expr) -> Expr:
    """Broadcast both ways: a size of 1 in the wanted shape keeps that of the tensor."""
    sizes = node.sizes_if_known(shape)
    if sizes is None:
        return _expanded_dynamic(node, x, shape)
    given = node.shape(x)
    rank = max(len(given), len(sizes))
    left: list[Dim] = [1] * (rank - len(given)) + list(given)
    right = [1] * (rank - len(sizes)) + sizes
    wanted = [_expanded(node, one, other) for one, other in zip(left, right)]
    if rank == len(given) and all(same_dim(one, other) for one, other in zip(wanted, given)):
        return x
    result = relay.broadcast_to(x, tuple(wanted))
    # A size that is a number stays one: the size with a name that it is expanded to is 1 or that number.
    numbers = [one if isinstance(one, int) and one != 1 else 0 for one in left]
    if any(number and not isinstance(size, int) for number, size in zip(numbers, wanted)):
        return relay.reshape(result, numbers)
    return result


def _expanded_dynamic(node: Node, x: Expr, shape: Expr) -> Expr:
    """Expand to a shape found when the model runs."""
    rank, (count,) = node.rank(x), node.static_shape(shape)
    own, wanted = relay.shape_of(x, dtype="int64"), node.cast(shape, "int64")
    if rank < count:
        own = relay.concatenate([node.const([1] * (count - rank)), own], axis=0)
    elif count < rank:
        wanted = relay.concatenate([node.const([1] * (rank - count)), wanted], axis=0)
    return relay.broadcast_to(x, relay.where(relay.equal(wanted, node.const(1)), own, wanted))


def _expanded(node: Node, one: Dim, other: int | PrimExpr) -> Dim:
    """The size that two are broadcast to: the wanted one, unless that is 1.

    That the tensor's own size is 1 or that one, `broadcast_to` checks when the model is called.
    """
    if is_any(one):
        return one
    wanted = as_dim(other) if isinstance(other, PrimExpr) else int(other)
    if isinstance(wanted, int):
        if isinstance(one, int) and one != 1 and wanted not in (1, one):
            raise node.bad(f"a size of {one} cannot be expanded to {wanted}")
        return one if wanted == 1 else wanted
    if same_dim(one, wanted) or (isinstance(one, int) and one == 1):
        return wanted
    assert isinstance(wanted, PrimExpr)
    kept = const(one, wanted.dtype) if isinstance(one, int) else as_expr(one).astype(wanted.dtype)
    return as_dim(Select(wanted.equal(1), kept, wanted))
