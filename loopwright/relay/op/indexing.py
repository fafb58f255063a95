"""Operators that find elements by their places: takes, gathers, scatters, masks and one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import te
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import FromTopi, numbers_of, only_interpreted
from loopwright.relay.op.index_ranges import IndexRange
from loopwright.relay.op.registry import FUNCTIONS, Kind, Operator, calls, make, register
from loopwright.relay.op.reshaping import vector_length
from loopwright.relay.op.sizes import broadcast, normal_axis, same_dtype, tensor_type_of
from loopwright.relay.types import AnyDim, TensorType, is_any, same_dim
from loopwright.runtime.errors import NotBuilt


@register("take", Kind.INJECTIVE)
class Take(FromTopi):
    """The elements of the data at `indices` along `axis`, or of all elements in their order.

    Places outside are moved to the nearest end ("clip"), counted round ("wrap") or trusted not to be there ("fast").
    """

    batch_dims: int = 0
    axis: int | None = None
    mode: str = "clip"

    def infer(self, data: TensorType, indices: TensorType) -> Type:
        return self.type_of_compute(data, indices)

    def index_ranges(self, data: TensorType, indices: TensorType) -> list[IndexRange]:
        if self.mode != "fast":
            return []
        return [IndexRange(1, 0, None if self.axis is None else normal_axis("take", self.axis, len(data.shape)))]

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.axis, self.batch_dims, self.mode)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        """Each row of the gradient is added to the row it was taken from; the axis comes first for that, and back."""
        data, indices = call.args
        shape = sizes_of("take", data)
        if self.batch_dims:
            raise NotBuilt("the gradient of take with batch dimensions", "take from one batch at a time")
        axis = 0 if self.axis is None else self.axis % len(shape)
        of = make("reshape", data, newshape=(-1,)) if self.axis is None else data
        rows = shape if self.axis is not None else (int(np.prod(shape)),)
        order = (axis, *[k for k in range(len(rows)) if k != axis])
        width = len(tensor_type_of(indices).shape)
        around = [k for k in range(len(rows) - 1 + width) if not axis <= k < axis + width]
        to_front = (*range(axis, axis + width), *around)
        front = make("transpose", grad, axes=to_front) if to_front else grad
        locations = make("reshape", make("cast", indices, dtype="int64"), newshape=(1, -1))
        if self.mode == "wrap":
            locations = make("floor_mod", locations, const(rows[axis], "int64"))
        elif self.mode == "clip":
            locations = make("clip", locations, a_min=0, a_max=rows[axis] - 1)
        empty = make("transpose", make("zeros_like", of), axes=order)
        updates = make("reshape", front, newshape=(-1, *[rows[k] for k in order[1:]]))
        added = make("scatter_nd", empty, locations, updates, mode="add")
        back = make("transpose", added, axes=tuple(order.index(k) for k in range(len(order))))
        return [make("reshape_like", back, data), make("zeros_like", indices)]


def sizes_of(op: str, data: Expr) -> tuple[int, ...]:
    """The shape of an expression whose type is inferred, as numbers."""
    of = data.checked_type
    if not isinstance(of, TensorType) or not all(isinstance(size, int) for size in of.shape):
        raise TypeMismatch(f"the gradient of {op} needs a shape of numbers, and the data is {of}")
    return of.concrete_shape


@calls("take")
def take(data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Expr:
    """The elements of the data at `indices` along `axis`."""
    return make("take", data, indices, batch_dims=batch_dims, axis=axis, mode=mode)


@register("gather", Kind.INJECTIVE)
class Gather(FromTopi):
    """The tensor shaped like `indices` whose every element says where along `axis` its value is."""

    axis: int

    def infer(self, data: TensorType, indices: TensorType) -> Type:
        return self.type_of_compute(data, indices)

    def index_ranges(self, data: TensorType, indices: TensorType) -> list[IndexRange]:
        return [IndexRange(1, 0, normal_axis("gather", self.axis, len(data.shape)))]

    def arguments(self, *inputs: object) -> Sequence[object]:
        data, indices = inputs
        return data, self.axis, indices


@calls("gather")
def gather(data: Expr, axis: int, indices: Expr) -> Expr:
    """The tensor shaped like `indices` whose every element says where along `axis` its value is."""
    return make("gather", data, indices, axis=axis)


@register("gather_nd", Kind.INJECTIVE)
class GatherNd(FromTopi):
    """The elements, or rows, of the data whose first indices are the columns of `indices`."""

    batch_dims: int = 0
    index_rank: int | None = None

    def infer(self, data: TensorType, indices: TensorType) -> Type:
        count = indices.shape[0] if indices.shape else None
        if isinstance(count, int):
            return self.type_of_compute(data, indices)
        if self.index_rank is None:
            raise TypeMismatch(
                f"gather_nd: how many axes of {data} are indexed by {indices} is not known", hint="give index_rank"
            )
        rest = data.shape[self.batch_dims + self.index_rank :]
        return TensorType([*indices.shape[1:], *rest], str(data.dtype))

    def index_ranges(self, data: TensorType, indices: TensorType) -> list[IndexRange]:
        count = indices.shape[0]
        assert isinstance(count, int)  # of what is compiled
        return [IndexRange(1, 0, self.batch_dims + k, along=0, entry=k) for k in range(count)]

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.batch_dims)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data, indices = call.args
        return [make("scatter_nd", make("zeros_like", data), indices, grad, mode="add"), make("zeros_like", indices)]


@register("where", Kind.BROADCAST)
class Where(FromTopi):
    """`x` where the condition is not 0, else `y`; all three are repeated to one shape."""

    def infer(self, condition: TensorType, x: TensorType, y: TensorType) -> Type:
        same_dtype("where", x, y)
        shape = broadcast("where", broadcast("where", condition.shape, x.shape), y.shape)
        return TensorType(shape, str(x.dtype))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        condition, x, y = call.args
        zero = make("zeros_like", grad)
        sides = make("where", condition, grad, zero), make("where", condition, zero, grad)
        return [
            make("zeros_like", condition),
            *[make("collapse_sum_like", side, of) for side, of in zip(sides, (x, y), strict=True)],
        ]


@register("scatter_elements", Kind.OPAQUE)
class ScatterElements(FromTopi):
    """The data with each update put where `indices` says along `axis`; `reduction` says how it joins what is there."""

    axis: int = 0
    reduction: str = "update"

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> Type:
        return self.type_of_compute(data, indices, updates)


@register("scatter_nd", Kind.OPAQUE)
class ScatterNd(FromTopi):
    """The data with each update, an element or a slice, put where a column of `indices` says."""

    mode: str = "update"

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> Type:
        return self.type_of_compute(data, indices, updates)


@register("adv_index", Kind.INJECTIVE)
class AdvIndex(FromTopi):
    """Numpy's indexing by tensors: the first of `inputs` is the data, the others index its first axes."""

    def infer(self, inputs: TupleType) -> Type:
        return self.type_of_compute(inputs)

    def index_ranges(self, inputs: TupleType) -> list[IndexRange]:
        return [IndexRange((0, k + 1), (0, 0), k, from_end=True) for k in range(len(inputs.fields) - 1)]

    def arguments(self, *inputs: Sequence[object]) -> Sequence[object]:
        data, *indices = inputs[0]
        return data, indices


@register("sequence_mask", Kind.INJECTIVE)
class SequenceMask(FromTopi):
    """The data with `mask_value` past the end of each sequence; time is `axis`, 0 or 1, the other one the batch."""

    mask_value: float = 0.0
    axis: int = 0

    def infer(self, data: TensorType, valid_length: TensorType) -> Type:
        return self.type_of_compute(data, valid_length)


@register("unravel_index", Kind.INJECTIVE)
class UnravelIndex(FromTopi):
    """The indices, one row an axis, of elements given by their places in a tensor of `shape`."""

    def infer(self, data: TensorType, shape: TensorType) -> Type:
        return self.type_of_compute(data, shape)


@register("invert_permutation", Kind.INJECTIVE)
class InvertPermutation(FromTopi):
    """The permutation that undoes the data."""

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("matrix_set_diag", Kind.INJECTIVE)
class MatrixSetDiag(FromTopi):
    """Matrices whose diagonals `k`, one or from the lowest to the highest, are replaced."""

    k: object = 0
    align: str = "RIGHT_LEFT"

    def infer(self, data: TensorType, diagonal: TensorType) -> Type:
        return self.type_of_compute(data, diagonal)


@register("trilu", Kind.ELEMWISE)
class Trilu(FromTopi):
    """The data with zeros below (`upper`) or above diagonal `k` of its last two axes."""

    upper: bool = True

    def infer(self, data: TensorType, k: TensorType) -> Type:
        if len(data.shape) < 2:
            raise TypeMismatch(f"trilu: {data} has no matrix")
        return data


@calls("trilu")
def trilu(data: Expr, k: Expr | int, upper: bool = True) -> Expr:
    """The data with zeros below or above diagonal `k`, a number or an expression that is one."""
    return make("trilu", data, k if isinstance(k, Expr) else const(int(k), "int32"), upper=upper)


@register("one_hot", Kind.OUT_FUSABLE)
class OneHot(FromTopi):
    """`on_value` at each index along a new axis of size `depth`, `off_value` elsewhere; axis -1 comes last."""

    depth: int
    axis: int
    dtype: str

    def infer(self, indices: TensorType, on_value: TensorType, off_value: TensorType) -> Type:
        return self.type_of_compute(indices, on_value, off_value)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", arg) for arg in call.args]


@calls("one_hot")
def one_hot(indices: Expr, on_value: object, off_value: object, depth: object, axis: int, dtype: str) -> Expr:
    """One-hot vectors along a new axis; `depth` is a number, or an expression that is one when the program runs."""
    on, off = (value if isinstance(value, Expr) else const(value, dtype) for value in (on_value, off_value))
    numbers = numbers_of(depth)
    if numbers is None:
        return make("dyn.one_hot", indices, on, off, depth, axis=axis, dtype=dtype)
    return make("one_hot", indices, on, off, depth=numbers[0], axis=axis, dtype=dtype)


@register("dyn.one_hot", Kind.OUT_FUSABLE)
class DynOneHot(Operator):
    """`one_hot` whose depth is a tensor of rank 0."""

    axis: int
    dtype: str

    def infer(self, indices: TensorType, on_value: TensorType, off_value: TensorType, depth: TensorType) -> Type:
        at = len(indices.shape) if self.axis == -1 else self.axis
        return TensorType([*indices.shape[:at], AnyDim(), *indices.shape[at:]], self.dtype)

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.one_hot", "the depth")

    def reference(self, *inputs: np.ndarray) -> np.ndarray:
        *values, depth = inputs
        result: np.ndarray = OneHot(depth=int(depth.reshape(())), axis=self.axis, dtype=self.dtype).reference(*values)
        return result


@register("sparse_to_dense", Kind.OPAQUE)
class SparseToDense(FromTopi):
    """The tensor of `output_shape` with the values at the indices, and `default_value` elsewhere."""

    output_shape: tuple[int, ...]

    def infer(self, sparse_indices: TensorType, sparse_values: TensorType, default_value: TensorType) -> Type:
        return self.type_of_compute(sparse_indices, sparse_values, default_value)

    def arguments(self, *inputs: object) -> Sequence[object]:
        indices, values, default = inputs
        return indices, self.output_shape, values, default


@calls("sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Expr, output_shape: object, sparse_values: Expr, default_value: object = 0
) -> Expr:
    """A tensor of one value, but for a list of elements; its shape may be an expression."""
    default = default_value if isinstance(default_value, Expr) else const(default_value)
    numbers = numbers_of(output_shape)
    if numbers is None:
        return make("dyn.sparse_to_dense", sparse_indices, sparse_values, default, output_shape)
    return make("sparse_to_dense", sparse_indices, sparse_values, default, output_shape=numbers)


@register("dyn.sparse_to_dense", Kind.OPAQUE)
class DynSparseToDense(Operator):
    """`sparse_to_dense` whose shape is a tensor."""

    def infer(
        self,
        sparse_indices: TensorType,
        sparse_values: TensorType,
        default_value: TensorType,
        output_shape: TensorType,
    ) -> Type:
        rank = vector_length("dyn.sparse_to_dense", "output_shape", output_shape)
        return TensorType([AnyDim()] * rank, str(sparse_values.dtype))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.sparse_to_dense", "the shape")

    def reference(self, *inputs: np.ndarray) -> np.ndarray:
        *values, shape = inputs
        result: np.ndarray = SparseToDense(output_shape=tuple(int(size) for size in shape)).reference(*values)
        return result


@calls("segment_sum")
def segment_sum(data: Expr, segment_ids: Expr, num_segments: int | None = None) -> Expr:
    """The rows of the data summed by the segment each belongs to; without a number, up to the last one there is."""
    from loopwright.relay.infer_type import infer

    of, labels = infer(data), infer(segment_ids)
    if not isinstance(of, TensorType) or not isinstance(labels, TensorType):
        raise TypeMismatch(f"segment_sum: {of} and {labels} are no tensors")
    rows = of.shape[1:]
    known = all([isinstance(size, int) for size in rows])
    if num_segments is None or not known:
        if num_segments is None:
            last = make("max", make("cast", segment_ids, dtype="int64"))
            count: Expr = make("reshape", make("add", last, const(np.array(1, "int64"), "int64")), newshape=(1,))
        else:
            count = const(np.array([num_segments], "int64"), "int64")
        sizes: Expr = (
            const(np.array(rows, "int64").reshape(-1), "int64")
            if known
            else make("strided_slice", make("shape_of", data, dtype="int64"), begin=(1,), end=(len(of.shape),))
        )
        shape: object = make("concatenate", [count, sizes], axis=0) if rows else count
    else:
        shape = (num_segments, *rows)
    if not same_dim(of.shape[0], labels.shape[0]):  # rows past the last label belong nowhere
        if isinstance(labels.shape[0], int):
            data = make("strided_slice", data, begin=(0,), end=(labels.shape[0],), axes=(0,))
        elif not is_any(of.shape[0]):
            raise TypeMismatch(f"segment_sum: {of} has {of.shape[0]} rows, and {labels} labels them")
    empty = FUNCTIONS["zeros"](shape, str(of.dtype))
    return make("scatter_nd", empty, make("expand_dims", segment_ids, axis=0), data, mode="add")
