"""Indexing by tensors: elements whose places other tensors hold.

    take(a, at, axis=1)        out[i, j…, k] = a[i, at[j…], k]
    gather(a, 1, at)           out[i, j] = a[i, at[i, j]]
    gather_nd(a, at)           out[j…, k] = a[at[0, j…], at[1, j…], k]
    adv_index(a, [p, q])       out[j…, k] = a[p[j…], q[j…], k], as numpy does; negative places count from the end

Only `take` in its modes "clip" and "wrap" and `adv_index` mend places that lie outside; the others trust theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from loopwright import te
from loopwright.ir import Expr, logical_or
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.te.assumed_sizes import assume
from loopwright.te.tensor import shape_text
from loopwright.te.whole_tensors import broadcast_shape, repeated
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import BadAxis, axis_of
from loopwright.topi.parts.choices import UnsuitableType, choose
from loopwright.topi.parts.row_major import product, unravel
from loopwright.topi.parts.sizes import check_same, is_zero, known, no_larger, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers


def places_of(op: str, indices: te.Tensor) -> te.Tensor:
    """`indices`, refused when they are no integers."""
    if not indices.dtype.is_int:
        raise UnsuitableType(op, f"the indices {indices.name} are {indices.dtype}", "give integers, such as int32")
    return indices


def place(value: Expr) -> Expr:
    """An element of an index tensor, wide and signed enough to reckon with."""
    return value if value.dtype in ("int32", "int64") else value.astype("int64" if value.dtype.bits > 16 else "int32")


def from_the_end(value: Expr, size: Expr) -> Expr:
    """`value`, counted from the end where it is negative."""
    at = place(value)
    return select(at < 0, at + size, at) if not value.dtype.is_unsigned else at


def _take_reference(
    a: np.ndarray, indices: np.ndarray, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> np.ndarray:
    how: Literal["clip", "wrap"] = "clip" if mode == "clip" else "wrap"
    batched = batch_dims % indices.ndim if batch_dims < 0 else batch_dims
    if not batched:
        return np.take(a, indices, axis, mode=how)
    assert axis is not None
    along = axis % a.ndim - 1
    return np.stack([_take_reference(x, at, along, batched - 1, mode) for x, at in zip(a, indices, strict=True)])


def _take_samples() -> Iterator[Sample]:
    at = np.array([[1, 0], [3, -2]], "int32")
    inside = np.array([2, 0, 1, 2], "int64")
    yield Sample((numbers((3, 4)), at))
    yield Sample((numbers((3, 4)), at), {"axis": 0})
    yield Sample((numbers((3, 4)), at, -1), {"mode": "wrap"})
    yield Sample((numbers((3, 4)), inside, 0), {"mode": "fast"})
    yield Sample((numbers((2, 4, 3)), at, 1), {"batch_dims": 1})
    yield Sample((numbers((2, 2, 5)), at, 2), {"batch_dims": -1, "mode": "wrap"})
    yield Sample((numbers((5,)), np.array(3, "uint8"), 0))
    yield Sample((numbers((3, 4)), np.zeros((0, 2), "int32"), 1))
    for dtype in TYPES:
        yield Sample((numbers((3, 2), dtype), inside, 0))


@operator(reference=_take_reference, samples=_take_samples)
def take(
    a: te.Tensor, indices: te.Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> te.Tensor:
    """The elements of `a` at `indices` along `axis`, or of all its elements in their order.

    Places outside are moved to the nearest end ("clip", negative ones to 0), counted round and round ("wrap"), or
    trusted not to be there ("fast"). The first `batch_dims` dimensions of both tensors are gone through together.
    """
    choose("take", "mode", mode, ("clip", "wrap", "fast"))
    places_of("take", indices)

    def within(value: Expr, size: Expr) -> Expr:
        at = place(value)
        if mode == "clip":
            return minimum(maximum(at, 0), size - 1)
        return at % size if mode == "wrap" else at

    if axis is None:
        total = simplify(product(a.shape))
        _check_not_empty("take", a, total, indices)
        return moved(indices.shape, lambda *at: a(*unravel(within(indices(*at), total), a.shape)), "T_take")
    along = axis_of("take", axis, a.ndim)
    batched = axis_of("take", batch_dims, indices.ndim, "batch_dims") if batch_dims < 0 else batch_dims
    if batched > min(along, indices.ndim):
        raise BadAxis(
            "take",
            f"batch_dims {batch_dims} reaches past axis {along} of {a.name}, or past the {indices.ndim} dimensions of "
            f"{indices.name}",
            "batch dimensions come before the axis, in both tensors",
        )
    for k in range(batched):
        check_same("take", f"batch dimension {k}", (a.name, a.shape[k]), (indices.name, indices.shape[k]))
    _check_not_empty("take", a, a.shape[along], indices)
    width = indices.ndim - batched

    def cell(*out: Expr) -> Expr:
        at = indices(*out[:batched], *out[along : along + width])
        return a(*out[:along], within(at, a.shape[along]), *out[along + width :])

    return moved((*a.shape[:along], *indices.shape[batched:], *a.shape[along + 1 :]), cell, "T_take")


def _check_not_empty(op: str, a: te.Tensor, size: Expr, indices: te.Tensor) -> None:
    nothing = [simplify(one.equal(0)) for one in indices.shape if known(one) is None]
    assume(logical_or(size >= 1, *nothing), [size], "it at least 1, to take from")
    if is_zero(size) and not nothing and not any(is_zero(one) for one in indices.shape):
        raise InvalidShapeError(
            op,
            f"there is nothing to take from {a.name}, of shape {shape_text(a.shape)}",
            "give a tensor with elements, or no indices",
        )


def _gather_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 4)), 0, np.array([[1, 0, 2, 2], [0, 0, 1, 2]], "int32")))
    yield Sample((numbers((3, 4)), -1, np.array([[3, 0], [1, 1], [0, 2]], "int64")))
    yield Sample((numbers((2, 3, 4)), 1, np.array([[[2, 0, 1, 1]]] * 2, "uint8")))
    yield Sample((numbers((2, 4)), 1, np.zeros((2, 0), "int32")))
    for dtype in TYPES:
        yield Sample((numbers((3,), dtype), 0, np.array([2, 0, 0, 1], "int32")))


@operator(reference=lambda data, axis, indices: np.take_along_axis(data, indices, axis), samples=_gather_samples)
def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """The tensor shaped like `indices` whose every element says where along `axis` its value is."""
    along = axis_of("gather", axis, data.ndim)
    places_of("gather", indices)
    if indices.ndim != data.ndim:
        raise InvalidShapeError(
            "gather",
            f"{indices.name} has {indices.ndim} dimensions, {data.name} {data.ndim}",
            "indices have one dimension for each of the data",
        )
    for k in range(data.ndim):
        if k != along and not no_larger(indices.shape[k], data.shape[k]):
            raise InvalidShapeError(
                "gather",
                f"{indices.name} of shape {shape_text(indices.shape)} reaches past {data.name} of shape "
                f"{shape_text(data.shape)} in dimension {k}",
                f"only dimension {along}, the axis, may be longer than that of the data",
            )
    return moved(
        indices.shape,
        lambda *at: data(*at[:along], place(indices(*at)), *at[along + 1 :]),
        "T_gather",
    )


def _gather_nd_reference(a: np.ndarray, indices: np.ndarray, batch_dims: int = 0) -> np.ndarray:
    where = indices.astype("int64")
    if not batch_dims:
        return a[tuple(where)]
    return np.stack([_gather_nd_reference(x, where[:, k], batch_dims - 1) for k, x in enumerate(a)])


def _gather_nd_samples() -> Iterator[Sample]:
    pairs = np.array([[1, 0, 2], [3, 1, 0]], "int32")
    yield Sample((numbers((3, 4)), pairs))
    yield Sample((numbers((3, 4, 5)), pairs))
    yield Sample((numbers((3, 4, 2)), np.array([[[1, 2], [0, 0]]], "int64")))
    yield Sample((numbers((3, 4)), np.array([[2.0, 1.0]], "float32")))
    yield Sample((numbers((2, 3, 4)), np.array([[[0, 2], [1, 1]]], "int64")), {"batch_dims": 1})
    yield Sample((numbers((3, 4)), np.zeros((2, 0), "int32")))
    for dtype in TYPES:
        yield Sample((numbers((3, 4), dtype), pairs))


@operator(reference=_gather_nd_reference, samples=_gather_nd_samples)
def gather_nd(a: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """The elements, or rows, of `a` whose first indices are the columns of `indices`; floats lose their fraction.

    Dimension 0 of `indices` goes through the axes of `a`, so its size is known. The first `batch_dims` dimensions of
    `a` are gone through together with those that follow dimension 0 of `indices`.
    """
    count = known(indices.shape[0]) if indices.ndim else None
    if count is None or count + batch_dims > a.ndim or batch_dims > indices.ndim - 1:
        raise InvalidShapeError(
            "gather_nd",
            f"{indices.name} of shape {shape_text(indices.shape)} does not index {a.name} of shape "
            f"{shape_text(a.shape)} with {batch_dims} batch dimensions",
            "dimension 0 of the indices is known, and names at most all axes of the data after the batch",
        )
    inner = indices.ndim - 1
    for k in range(batch_dims):
        check_same("gather_nd", f"batch dimension {k}", (a.name, a.shape[k]), (indices.name, indices.shape[k + 1]))

    def cell(*out: Expr) -> Expr:
        result: list[Expr] = [indices(k, *out[:inner]) for k in range(count)]
        at = [value.astype("int32") if value.dtype.is_float else place(value) for value in result]
        return a(*out[:batch_dims], *at, *out[inner:])

    return moved((*indices.shape[1:], *a.shape[batch_dims + count :]), cell, "T_gather_nd")


def _adv_index_samples() -> Iterator[Sample]:
    one = np.array([[1], [-2]], "int64")
    other = np.array([0, 3, -1], "int32")
    yield Sample((numbers((3, 4)), [one, other]))
    yield Sample((numbers((3, 4, 2)), [one, other]))
    yield Sample((numbers((4, 5)), [other]))
    yield Sample((numbers((3, 4)), [one, np.array(2, "int32")]))
    yield Sample((numbers((4, 5)), [np.zeros((0,), "int64")]))
    for dtype in TYPES:
        yield Sample((numbers((4,), dtype), [other]))


@operator(reference=lambda data, indices: data[tuple(indices)], samples=_adv_index_samples)
def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """`data[indices]` as numpy has it, for a list of index tensors, one for each of the first axes."""
    if not 1 <= len(indices) <= data.ndim:
        raise InvalidShapeError(
            "adv_index",
            f"{len(indices)} index tensors for {data.name}, which has {data.ndim} dimensions",
            "give at least one, and at most one an axis",
        )
    shape = broadcast_shape("adv_index", *[places_of("adv_index", index) for index in indices])

    def cell(*out: Expr) -> Expr:
        at: list[Expr] = []
        for axis, index in enumerate(indices):
            own = out[len(shape) - index.ndim : len(shape)]
            whole = shape[len(shape) - index.ndim :]
            ones = [repeated(*location) for location in zip(own, index.shape, whole, strict=True)]
            at.append(from_the_end(index(*ones), data.shape[axis]))
        return data(*at, *out[len(shape) :])

    return moved((*shape, *data.shape[len(indices) :]), cell, "advanced_index")


def _unravel_reference(indices: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.array(np.unravel_index(indices, tuple(shape)))


def _unravel_samples() -> Iterator[Sample]:
    yield Sample((np.array([22, 41, 37, 0], "int32"), np.array([7, 6], "int32")))
    yield Sample((np.array([5, 1], "int64"), np.array([2, 3, 4], "int64")))
    yield Sample((np.array(11, "int64"), np.array([4, 5], "int32")))
    yield Sample((np.zeros((0,), "int32"), np.array([4, 5], "int32")))


@operator(reference=_unravel_reference, samples=_unravel_samples)
def unravel_index(indices: te.Tensor, shape: te.Tensor) -> te.Tensor:
    """The indices, one row an axis, of elements given by their places in a tensor of `shape`, itself a tensor."""
    rank = known(shape.shape[0]) if shape.ndim == 1 else None
    if rank is None:
        raise InvalidShapeError("unravel_index", f"{shape.name} is no vector of a known size", "give a shape")
    places_of("unravel_index", indices)

    def cell(row: Expr, *at: Expr) -> Expr:
        rest: Expr = indices(*at)
        value = rest
        for axis in range(rank - 1, -1, -1):
            size = maximum(shape(axis).astype(indices.dtype), 1)  # data may say 0, by which nothing is divided
            value = select(row == axis, rest % size, value)
            rest = rest // size
        return value

    return moved((rank, *indices.shape), cell, "T_unravel")
