"""Indices that come from data: which elements an operator may be asked for, and the operators that look at them.

    class Gather(FromTopi):
        def index_ranges(self, data, indices):
            return [IndexRange(indices=1, data=0, axis=self.axis)]

An operator that trusts its indices says by `index_ranges` where they may lie; whoever compiles or interprets it checks
them before it runs (`relay/index_checks.py`). `checked_indices` is that check as an operator of its own, for models
that count negative indices from the end and take others outside for an error, as ONNX and PyTorch do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright import te
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import max_value, maximum, min_value, minimum, select
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.registry import Kind, Operator, make, register
from loopwright.relay.op.sizes import equal_dim, normal_axis, times
from loopwright.relay.types import Dim, TensorType
from loopwright.runtime.dtype import DataType


@dataclass(frozen=True)
class IndexRange:
    """The elements of one input are indices into `axis` of another: from 0, or -size with `from_end`, to size - 1.

    Without an axis they index all of its elements in their order. Inputs are counted from 0; (0, 2) is field 2 of input
    0. Where `along` is given, only entry `entry` of that axis of the indices is meant: one of several indices that name
    an element together. An index that is `ignored` is not used.
    """

    indices: int | tuple[int, int]
    data: int | tuple[int, int]
    axis: int | None
    from_end: bool = False
    along: int | None = None
    entry: int = 0
    ignored: int | None = None

    def size(self, data: TensorType) -> Dim:
        """How many elements there are to be named."""
        return times(*data.shape) if self.axis is None else data.shape[self.axis]


def input_at(inputs: Sequence[Any], location: int | tuple[int, int]) -> Any:
    """The input that a range names; fields of tuples by `fields`, or of lists by their position."""
    if isinstance(location, int):
        return inputs[location]
    whole = inputs[location[0]]
    return getattr(whole, "fields", whole)[location[1]]


@register("checked_indices", Kind.BROADCAST)
class CheckedIndices(Operator):
    """The indices into `axes` of the data, negative ones counted from the end; one that is outside ends the call.

    With one axis, every element of `indices` is an index into it. With `tuples`, the last dimension of `indices` holds
    one index for each of the axes.
    """

    axes: tuple[int, ...]
    tuples: bool = False

    def infer(self, indices: TensorType, data: TensorType) -> Type:
        if not indices.dtype.is_int:
            raise TypeMismatch(f"checked_indices: {indices} is no tensor of integers")
        if self.tuples and not (indices.shape and equal_dim(indices.shape[-1], len(self.axes))):
            raise TypeMismatch(f"checked_indices: {indices} does not hold {len(self.axes)} indices for each element")
        if not self.tuples and len(self.axes) != 1:
            raise TypeMismatch(f"checked_indices: {len(self.axes)} axes are indexed by single numbers")
        self.sizes(data)
        return TensorType(indices.shape, str(self._kind(indices.dtype)))

    def _kind(self, dtype: DataType) -> DataType:
        """A type that holds the index counted from the front."""
        return dtype if dtype.is_unsigned or dtype.bits >= 32 else DataType("int64")

    def sizes(self, data: TensorType) -> list[Dim]:
        """The sizes of the axes that are indexed."""
        return [data.shape[normal_axis("checked_indices", axis, len(data.shape))] for axis in self.axes]

    def index_ranges(self, indices: TensorType, data: TensorType) -> list[IndexRange]:
        along = len(indices.shape) - 1 if self.tuples else None
        return [
            IndexRange(0, 1, normal_axis("checked_indices", axis, len(data.shape)), True, along, entry)
            for entry, axis in enumerate(self.axes)
        ]

    def compute(self, indices: te.Tensor, data: te.Tensor) -> te.Tensor:
        if indices.dtype.is_unsigned:
            return te.compute(indices.shape, lambda *at: indices(*at), name="T_checked_indices", tag="elemwise")
        kind = self._kind(indices.dtype)
        sizes = [data.shape[axis].astype(kind) for axis in self.axes]

        def cell(*at: PrimExpr) -> PrimExpr:
            size = sizes[-1]
            for entry in range(len(sizes) - 2, -1, -1):
                size = select(at[-1].equal(entry), sizes[entry], size)
            index = indices(*at).astype(kind)
            return select(index < 0, index + size, index)

        return te.compute(indices.shape, cell, name="T_checked_indices", tag="elemwise")

    def reference(self, indices: np.ndarray, data: np.ndarray) -> np.ndarray:
        sizes = np.array([data.shape[axis] for axis in self.axes])
        if indices.dtype.kind == "u":
            return indices
        wide = indices.astype("int64")
        return np.where(wide < 0, wide + (sizes if self.tuples else sizes[0]), wide)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", arg) for arg in call.args]


@register("index_range", Kind.OPAQUE)
class MeasuredRange(Operator):
    """The least and the greatest index of a tensor: vectors of one number each, or of one for each entry of `along`.

    Of a tensor without elements they are the greatest and the least number there is.
    """

    along: int | None = None
    ignored: int | None = None
    results = 2

    def infer(self, indices: TensorType) -> Type:
        count = 1 if self.along is None else indices.shape[self.along]
        return TupleType((TensorType((count,), "int64"), TensorType((count,), "int64")))

    def compute(self, indices: te.Tensor) -> list[te.Tensor]:
        axes = [k for k in range(indices.ndim) if k != self.along]
        taps = [te.reduce_axis((0, indices.shape[k]), name=f"k{k}") for k in axes]
        count = 1 if self.along is None else indices.shape[self.along]

        def index(entry: PrimExpr) -> PrimExpr:
            at: list[PrimExpr] = [entry] * indices.ndim
            for k, tap in zip(axes, taps, strict=True):
                at[k] = tap.var
            value = indices(*at).astype("int64")
            return value if self.ignored is None else select(value.equal(self.ignored), te.const(0, "int64"), value)

        if not taps:
            return [te.compute((count,), index, name=f"T_{name}_index") for name in ("least", "greatest")]
        reach = te.comm_reducer(
            lambda a, b: (minimum(a[0], b[0]), maximum(a[1], b[1])),
            lambda one, other: (max_value(one), min_value(other)),
            name="reach",
        )
        return te.compute((count,), lambda k: reach((index(k), index(k)), axis=taps), name="T_index_range")

    def reference(self, indices: np.ndarray) -> list[np.ndarray]:
        wide = indices.astype("int64")
        rows = wide.reshape(1, -1)
        if self.along is not None:
            rows = np.moveaxis(wide, self.along, 0).reshape(wide.shape[self.along], -1)
        if self.ignored is not None:
            rows = np.where(rows == self.ignored, 0, rows)
        limits = np.iinfo("int64")
        return [rows.min(axis=1, initial=limits.max), rows.max(axis=1, initial=limits.min)]
