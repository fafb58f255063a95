"""Vectors other than those that copy one value (`Broadcast`, in `literals.py`)."""

from __future__ import annotations

from loopwright.ir.expr.base import Expr, OperandMismatch
from loopwright.ir.expr.literals import vector_dtype
from loopwright.ir.node import derived, node
from loopwright.runtime.dtype import DataType


def _ramp_dtype(base: Expr, stride: Expr, lanes: int) -> DataType:
    if base.dtype is not stride.dtype:
        raise OperandMismatch("Ramp", base, stride)
    return vector_dtype("Ramp", base, lanes)


@node
class Ramp(Expr):
    """The vector base, base + stride, base + 2 * stride, … of `lanes` elements."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DataType = derived("_ramp_dtype(base, stride, lanes)")


@node
class Shuffle(Expr):
    """The elements at `indices` of the concatenation of `vectors`."""

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    dtype: DataType = derived("vectors[0].dtype.with_lanes(len(indices))")
