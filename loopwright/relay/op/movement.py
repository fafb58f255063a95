"""Operators that move elements: transposes, layouts, joins, cuts, repetitions, and blocks of space and depth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, Tuple, TupleWrapper
from loopwright.relay.op.from_topi import FromTopi, numbers_of, only_interpreted
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.reshaping import vector_length
from loopwright.relay.op.sizes import (
    at_most,
    divide_exactly,
    equal_dim,
    minus,
    normal_axis,
    plus,
    repeats_to,
)
from loopwright.relay.types import AnyDim, Dim, TensorType, as_dim, is_any


@register("transpose", Kind.INJECTIVE)
class Transpose(FromTopi):
    """The axes of the data in another order; without `axes`, the last one first."""

    axes: tuple[int, ...] | None = None

    def infer(self, data: TensorType) -> Type:
        rank = len(data.shape)
        order = range(rank)[::-1] if self.axes is None else [normal_axis("transpose", a, rank) for a in self.axes]
        if sorted(order) != list(range(rank)):
            raise TypeMismatch(f"transpose: axes {self.axes} do not name each axis of {data} once")
        return TensorType([data.shape[axis] for axis in order], str(data.dtype))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        if self.axes is None:
            return [make("transpose", grad)]
        order = [axis % len(self.axes) for axis in self.axes]
        return [make("transpose", grad, axes=tuple(order.index(axis) for axis in range(len(order))))]


@register("layout_transform", Kind.INJECTIVE)
class LayoutTransform(FromTopi):
    """The data, which lies in `src_layout`, as `dst_layout` lays it out; new blocks are filled up with zeros."""

    src_layout: str
    dst_layout: str

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("layout_transform", grad, src_layout=self.dst_layout, dst_layout=self.src_layout)]


@calls("layout_transform")
def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Expr:
    """The data in another layout; itself where the two are the same."""
    if src_layout == dst_layout:
        return data
    return make("layout_transform", data, src_layout=src_layout, dst_layout=dst_layout)


@register("broadcast_to", Kind.BROADCAST)
class BroadcastTo(FromTopi):
    """The data repeated to `shape`, matched from the right."""

    shape: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("collapse_sum_like", grad, call.args[0])]


@calls("broadcast_to")
def broadcast_to(data: Expr, shape: object) -> Expr:
    """The data repeated to `shape`: numbers, or an expression that is the shape when the program runs."""
    numbers = numbers_of(shape)
    return make("dyn.broadcast_to", data, shape) if numbers is None else make("broadcast_to", data, shape=numbers)


@register("broadcast_to_like", Kind.BROADCAST)
class BroadcastToLike(Operator):
    """The data repeated to the shape of another tensor."""

    def infer(self, data: TensorType, broadcast_type: TensorType) -> Type:
        ranks = len(broadcast_type.shape) - len(data.shape)
        if ranks < 0 or not all(map(repeats_to, data.shape, broadcast_type.shape[ranks:])):
            raise TypeMismatch(
                f"broadcast_to_like is unable to show the following types match: {data} and {broadcast_type}"
            )
        return TensorType(broadcast_type.shape, str(data.dtype))

    def compute(self, data: te.Tensor, broadcast_type: te.Tensor) -> te.Tensor:
        return topi.broadcast_to(data, broadcast_type.shape)

    def reference(self, data: np.ndarray, broadcast_type: np.ndarray) -> np.ndarray:
        return np.broadcast_to(data, broadcast_type.shape)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("collapse_sum_like", grad, call.args[0]), make("zeros_like", call.args[1])]


@register("dyn.broadcast_to", Kind.BROADCAST)
class DynBroadcastTo(Operator):
    """The data repeated to a shape that is a tensor."""

    def infer(self, data: TensorType, shape: TensorType) -> Type:
        return TensorType([AnyDim()] * vector_length("dyn.broadcast_to", "shape", shape), str(data.dtype))

    def compute(self, data: te.Tensor, shape: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.broadcast_to", "the shape")

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return np.broadcast_to(data, tuple(int(size) for size in shape))


@register("concatenate", Kind.INJECTIVE)
class Concatenate(FromTopi):
    """Tensors one after another along `axis`; they agree in type and in all other sizes."""

    axis: int = 0

    def infer(self, data: TupleType) -> Type:
        tensors = _tensors("concatenate", data)
        first = tensors[0]
        along = normal_axis("concatenate", self.axis, len(first.shape))
        shape = list(first.shape)
        for other in tensors[1:]:
            for axis, (one, size) in enumerate(zip(shape, other.shape, strict=True)):
                if axis == along:
                    shape[axis] = plus(one, size)
                elif not equal_dim(one, size):
                    raise TypeMismatch(
                        f"concatenate is unable to show the following types match: {first} and {other}",
                        why=f"they differ in axis {axis}, and are joined along axis {along}",
                    )
                elif is_any(one):
                    shape[axis] = size
        return TensorType(shape, str(first.dtype))

    def equal_sizes(self, data: TupleType) -> list[tuple[Dim, Dim]]:
        first, *others = _tensors("concatenate", data)
        along = self.axis % len(first.shape)
        return [pair for other in others for k, pair in enumerate(zip(first.shape, other.shape)) if k != along]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        parts = _tensors("concatenate", call.args[0].checked_type)
        along = self.axis % len(parts[0].shape)
        ends = np.cumsum([part.concrete_dim(along) for part in parts])[:-1]
        cuts = make("split", grad, indices_or_sections=tuple(int(end) for end in ends), axis=along)
        return [Tuple([cuts[k] for k in range(len(parts))])]


T = TypeVar("T")


def _tensors(op: str, data: Type) -> list[TensorType]:
    """The fields of a tuple, which are tensors of one type and rank."""
    fields: list[Any] = list(data.fields) if isinstance(data, TupleType) else [data]
    if not fields:
        raise TypeMismatch(f"{op}: there are no tensors")
    first = fields[0]
    for other in fields[1:]:
        if len(other.shape) != len(first.shape) or other.dtype != first.dtype:
            raise TypeMismatch(f"{op} is unable to show the following types match: {first} and {other}")
    return fields


def _listed(op: str, data: T) -> T | list[Expr]:
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError(f"relay.{op}: there are no tensors to join; give at least one")
        return list(data)
    return data


@calls("concatenate")
def concatenate(data: Expr | Sequence[Expr], axis: int = 0) -> Expr:
    """Tensors, a list of them or an expression that is a tuple, one after another along `axis`."""
    return make("concatenate", _listed("concatenate", data), axis=axis)


@register("stack", Kind.INJECTIVE)
class Stack(FromTopi):
    """Tensors of one type side by side along a new axis."""

    axis: int = 0

    def infer(self, data: TupleType) -> Type:
        tensors = _tensors("stack", data)
        for other in tensors[1:]:
            if not all([equal_dim(one, size) for one, size in zip(tensors[0].shape, other.shape, strict=True)]):
                raise TypeMismatch(f"stack is unable to show the following types match: {tensors[0]} and {other}")
        shape = list(tensors[0].shape)
        at = normal_axis("stack", self.axis, len(shape), extra=1)
        return TensorType([*shape[:at], len(tensors), *shape[at:]], str(tensors[0].dtype))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        parts = _tensors("stack", call.args[0].checked_type)
        along = self.axis % (len(parts[0].shape) + 1)
        cuts = make("split", grad, indices_or_sections=len(parts), axis=along)
        return [Tuple([make("squeeze", cuts[k], axis=(along,)) for k in range(len(parts))])]


@calls("stack")
def stack(data: Expr | Sequence[Expr], axis: int = 0) -> Expr:
    """Tensors, a list of them or an expression that is a tuple, side by side along a new axis."""
    return make("stack", _listed("stack", data), axis=axis)


@register("split", Kind.INJECTIVE)
class Split(FromTopi):
    """The parts of the data along `axis`: so many equal ones, or those between the cut points of a list."""

    indices_or_sections: int | Sequence[Dim]
    axis: int = 0

    def results(self) -> int:
        given = self.indices_or_sections
        return given if isinstance(given, int) else len(given) + 1

    def infer(self, data: TensorType) -> Type:
        along = normal_axis("split", self.axis, len(data.shape))
        total = data.shape[along]
        given = self.indices_or_sections
        if isinstance(given, int):
            if given < 1 or (isinstance(total, int) and total % given):
                raise TypeMismatch(f"split: {given} sections do not divide axis {along} of {data}")
            sizes: list[Dim] = [divide_exactly(total, given)] * given
        else:
            edges = [0, *map(as_dim, given), total]
            sizes = [minus(high, low) for low, high in pairwise(edges)]
            if not all([at_most(low, high) for low, high in pairwise(edges)]):
                raise TypeMismatch(f"split: cut points {given} of axis {along} of {data} do not go up")
        shape = data.shape
        parts = [TensorType([*shape[:along], size, *shape[along + 1 :]], str(data.dtype)) for size in sizes]
        return TupleType(tuple(parts))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("concatenate", grad, axis=self.axis)]


@register("tile", Kind.BROADCAST)
class Tile(FromTopi):
    """The data as many times along each axis as `reps` says."""

    reps: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@calls("tile")
def tile(data: Expr, reps: object) -> Expr:
    """The data as often as `reps` says: numbers, or an expression that is them when the program runs."""
    numbers = numbers_of(reps)
    return make("dyn.tile", data, reps) if numbers is None else make("tile", data, reps=numbers)


@register("dyn.tile", Kind.BROADCAST)
class DynTile(Operator):
    """The data as many times along each axis as a tensor says."""

    def infer(self, data: TensorType, reps: TensorType) -> Type:
        rank = max(len(data.shape), vector_length("dyn.tile", "reps", reps))
        return TensorType([AnyDim()] * rank, str(data.dtype))

    def compute(self, data: te.Tensor, reps: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.tile", "how often the data is repeated")

    def reference(self, data: np.ndarray, reps: np.ndarray) -> np.ndarray:
        return np.tile(data, tuple(int(count) for count in reps))


@register("repeat", Kind.BROADCAST)
class Repeat(FromTopi):
    """Each element `repeats` times, one after another along `axis`."""

    repeats: int
    axis: int

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("reverse", Kind.INJECTIVE)
class Reverse(FromTopi):
    """The data read from the end of `axis`."""

    topi_name = "flip"
    axis: int

    def infer(self, data: TensorType) -> Type:
        normal_axis("reverse", self.axis, len(data.shape))
        return data

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reverse", grad, axis=self.axis)]


@register("reverse_sequence", Kind.INJECTIVE)
class ReverseSequence(FromTopi):
    """The data with the first elements of each sequence turned round, as many as its length."""

    seq_axis: int = 1
    batch_axis: int = 0

    def infer(self, data: TensorType, seq_lengths: TensorType) -> Type:
        return self.type_of_compute(data, seq_lengths)


@register("meshgrid", Kind.INJECTIVE)
class Meshgrid(FromTopi):
    """For each vector a tensor of the grid that all of them span."""

    indexing: str = "ij"

    def infer(self, data: TupleType) -> Type:
        return self.type_of_compute(data)


@calls("meshgrid")
def meshgrid(data: Tuple | TupleWrapper | Sequence[Expr], indexing: str = "ij") -> TupleWrapper:
    """The grid that vectors, a list of them or a tuple, span: one tensor each."""
    listed = _listed("meshgrid", data)
    count = len(listed.fields) if isinstance(listed, Tuple) else len(listed)
    return TupleWrapper(make("meshgrid", listed, indexing=indexing), count)


@register("sliding_window", Kind.OPAQUE)
class SlidingWindow(FromTopi):
    """The windows over `axis` and all axes after it: where they stand, then what they hold."""

    axis: int
    window_shape: tuple[int, ...]
    strides: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("nn.depth_to_space", Kind.INJECTIVE)
class DepthToSpace(FromTopi):
    """Channels parallelised over blocks of pixels."""

    block_size: int
    layout: str = "NCHW"  # an attribute of calls; the class has one of its own
    mode: str = "DCR"

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("nn.space_to_depth", Kind.INJECTIVE)
class SpaceToDepth(FromTopi):
    """Each block of pixels put into channels."""

    block_size: int
    layout: str = "NCHW"  # an attribute of calls; the class has one of its own

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("nn.space_to_batch_nd", Kind.INJECTIVE)
class SpaceToBatchNd(FromTopi):
    """The padded data with the elements of each block parallelised over as many batches."""

    block_shape: tuple[int, ...]
    paddings: tuple[tuple[int, int], ...]
    pad_value: float = 0.0

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, *inputs: object) -> list[object]:
        before, after = ([pair[k] for pair in self.paddings] for k in range(2))
        return [*inputs, self.block_shape, before, after, self.pad_value]


@register("nn.batch_to_space_nd", Kind.INJECTIVE)
class BatchToSpaceNd(FromTopi):
    """Batches put back into blocks of space, which is then cut at both ends."""

    block_shape: tuple[int, ...]
    crops: tuple[tuple[int, int], ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, *inputs: object) -> list[object]:
        return [*inputs, self.block_shape, *([pair[k] for pair in self.crops] for k in range(2))]


@register("nn.fifo_buffer", Kind.OPAQUE)
class FifoBuffer(FromTopi):
    """The buffer with its oldest elements along `axis` dropped and the data put at its end."""

    axis: int = 0

    def infer(self, data: TensorType, buffer: TensorType) -> Type:
        return self.type_of_compute(data, buffer)
