"""Sequences of different lengths in one tensor: those past their end masked, or each turned round.

sequence_mask(data, lengths)         out[t, b] = data[t, b] where t < lengths[b], else 0
reverse_sequence(data, lengths)      out[b, t] = data[b, lengths[b] - 1 - t] where t < lengths[b]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, minimum, select
from loopwright.te.tensor import dim_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.indexing import place, places_of
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import BadAxis, axis_of
from loopwright.topi.parts.sizes import check_same, one_size
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers
from loopwright.topi.types import Scalar


def _mask_reference(data: np.ndarray, valid_length: np.ndarray, mask_value: float = 0, axis: int = 0) -> np.ndarray:
    inside = np.arange(data.shape[axis])[:, None] < valid_length[None, :]
    inside = inside if axis == 0 else inside.T
    return np.where(inside.reshape(inside.shape + (1,) * (data.ndim - 2)), data, mask_value)


def _mask_samples() -> Iterator[Sample]:
    lengths = np.array([2, 0, 9], "int32")
    yield Sample((numbers((5, 3, 2)), lengths))
    yield Sample((numbers((3, 5)), lengths, -1.5), {"axis": 1})
    yield Sample((numbers((5, 3, 2)), lengths.astype("float32"), 7))
    yield Sample((numbers((0, 3)), lengths))
    for dtype in TYPES:
        yield Sample((numbers((3, 4), dtype), lengths.astype("int64"), 1), {"axis": 1})


@operator(reference=_mask_reference, samples=_mask_samples)
def sequence_mask(data: te.Tensor, valid_length: te.Tensor, mask_value: Scalar = 0, axis: int = 0) -> te.Tensor:
    """`data` with `mask_value` past the end of each sequence; time is `axis`, 0 or 1, the other one the batch."""
    if axis not in (0, 1):
        raise BadAxis("sequence_mask", f"axis is {axis!r}", "time is axis 0 or axis 1", axis=axis)
    if data.ndim < 2 or valid_length.ndim != 1:
        raise InvalidShapeError(
            "sequence_mask",
            f"{data.name} has {data.ndim} dimensions, {valid_length.name} {valid_length.ndim}",
            "data has time and batch, lengths are a vector",
        )
    batch = (data.name, data.shape[1 - axis])
    check_same("sequence_mask", "size of the batch", batch, (valid_length.name, valid_length.shape[0]))
    mask = as_expr(mask_value).astype(data.dtype)

    def cell(*at: Expr) -> Expr:
        length: Expr = valid_length(at[1 - axis])
        time = at[axis].astype(length.dtype) if length.dtype.is_float else at[axis]
        return if_then_else(time < length, data(*at), mask)

    return moved(data.shape, cell, "T_sequence_mask")


def _reverse_reference(
    a: np.ndarray, seq_lengths: np.ndarray, seq_axis: int = 1, batch_axis: int | None = 0
) -> np.ndarray:
    result = a.copy()
    time = seq_axis % a.ndim
    batch = batch_axis
    for b, length in enumerate(np.atleast_1d(seq_lengths)):
        count = int(min(max(length, 1), a.shape[time]))
        cut: list[slice | int] = [slice(None)] * a.ndim
        cut[time] = slice(0, count)
        if batch is not None:
            cut[batch] = slice(b, b + 1)
        result[tuple(cut)] = np.flip(a[tuple(cut)], time)
    return result


def _reverse_samples() -> Iterator[Sample]:
    lengths = np.array([1, 2, 3, 9, -1], "int32")
    yield Sample((numbers((5, 4)), lengths))
    yield Sample((numbers((4, 5, 2)), lengths.astype("int64"), 0, 1))
    yield Sample((numbers((5, 2, 3)), lengths, -1, 0))
    yield Sample((numbers((3, 6)), np.array([4], "int32"), 1, None))
    yield Sample((numbers((4, 5)), lengths, 0, -1))
    yield Sample((numbers((3, 6)), np.array(4, "int32"), 1, None))
    yield Sample((numbers((0, 4)), np.zeros((0,), "int32")))
    for dtype in TYPES:
        yield Sample((numbers((2, 3), dtype), np.array([2, 3], "int32")))


@operator(reference=_reverse_reference, samples=_reverse_samples)
def reverse_sequence(a: te.Tensor, seq_lengths: te.Tensor, seq_axis: int = 1, batch_axis: int | None = 0) -> te.Tensor:
    """`a` with the first elements of each sequence turned round, as many as its length; the others stay.

    A length less than 1 is 1, one past the end is all. Without a batch (`batch_axis` None) there is one length.
    """
    op = "reverse_sequence"
    time = axis_of(op, seq_axis, a.ndim, "seq_axis")
    places_of(op, seq_lengths)
    if batch_axis is None:
        if seq_lengths.ndim > 1 or (seq_lengths.ndim == 1 and not one_size(seq_lengths.shape[0], 1)):
            raise InvalidShapeError(
                op,
                f"without a batch axis there is one length, and {seq_lengths.name} has "
                f"{' × '.join(dim_text(size) for size in seq_lengths.shape)}",
                "name the batch axis",
            )
        batch = None
    else:
        batch = axis_of(op, batch_axis, a.ndim, "batch_axis")
        if batch == time:
            raise BadAxis(op, f"seq_axis and batch_axis are both {time}", "give two axes")
        if seq_lengths.ndim != 1 or not one_size(seq_lengths.shape[0], a.shape[batch]):
            raise InvalidShapeError(
                op,
                f"dimension {batch} of {a.name}, the batch, has size {dim_text(a.shape[batch])}, and the lengths "
                f"{seq_lengths.name} have size {' × '.join(dim_text(size) for size in seq_lengths.shape) or 1}",
                "give one length for each sequence of the batch",
            )

    def cell(*at: Expr) -> Expr:
        length = place(seq_lengths(*([0] if batch is None else [at[batch]])[: seq_lengths.ndim]))
        inside = minimum(length, a.shape[time])
        transposed = select(all_of(length > 1, at[time] < inside), inside - 1 - at[time], at[time])
        return a(*at[:time], transposed, *at[time + 1 :])

    return moved(a.shape, cell, "T_reverse_sequence")
