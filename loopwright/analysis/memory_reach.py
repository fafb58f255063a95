"""How far a buffer reaches into its memory: the elements between the first and the last, and their bytes."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import Buffer, Expr, IntImm, Max, const
from loopwright.ir.products import product
from loopwright.runtime.dtype import DataType


def reach(buffer: Buffer) -> Expr:
    """How many elements there are from the first of a buffer on to the one that lies last, both among them."""
    if not buffer.strides:
        return product(buffer.shape)
    total: Expr = const(1)
    for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
        if not isinstance(stride, IntImm) or stride.value > 0:
            total = total + (extent - 1) * stride
    return total


def min_offset(buffer: Buffer) -> Expr:
    """How far before the first of its elements a buffer reaches: where strides are negative, or may be."""
    total: Expr = const(0)
    for extent, stride in zip(buffer.shape, buffer.strides, strict=bool(buffer.strides)):
        if isinstance(stride, IntImm) and stride.value < 0:
            total = total + (extent - 1) * -stride.value
        elif not isinstance(stride, IntImm):
            total = total + Max(const(0, stride.dtype), (extent - 1) * stride * -1)
    return total


def row_extent(buffer: Buffer) -> Expr:
    """The same, the last of its rows counted to the end like all others: what `access_ptr` is for by itself."""
    return buffer.shape[0] * buffer.strides[0] if buffer.strides and buffer.shape else reach(buffer)


def flat_index(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """How many elements behind the first of the buffer an element is."""
    total: Expr = const(0)
    for axis, index in enumerate(indices):
        stride = buffer.strides[axis] if buffer.strides else product(buffer.shape[axis + 1 :])
        total = total + index * stride
    return total


def bytes_of(count: Expr, dtype: DataType) -> Expr:
    """The bytes of so many elements."""
    return product([count, dtype.nbytes * dtype.lanes])
