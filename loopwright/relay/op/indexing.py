"""Operators that find elements by their places: slices, takes, gathers, scatters, masks and one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as Anything

import numpy as np

from loopwright import te
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.from_topi import FromTopi, numbers_of, only_interpreted
from loopwright.relay.op.registry import FUNCTIONS, Kind, Operator, calls, make, register
from loopwright.relay.op.reshaping import vector_length
from loopwright.relay.op.sizes import broadcast, normal_axes, same_dtype
from loopwright.relay.types import Any, TensorType
from loopwright.runtime.errors import NotBuilt
from loopwright.topi.moving import moved
from loopwright.topi.slicing import read_bounds, slice_at


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

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
        return (*inputs, self.axis, self.batch_dims, self.mode)

    def gradient(self, call: Anything, grad: Expr) -> list[Expr]:
        """Each row of the gradient is added to the row it was taken from; the axis comes first for that, and back."""
        data, indices = call.args
        shape = sizes_of("take", data)
        if self.batch_dims:
            raise NotBuilt("the gradient of take with batch dimensions", "take from one batch at a time")
        axis = 0 if self.axis is None else self.axis % len(shape)
        of = make("reshape", data, newshape=(-1,)) if self.axis is None else data
        rows = shape if self.axis is not None else (int(np.prod(shape)),)
        order = (axis, *[k for k in range(len(rows)) if k != axis])
        width = len(indices.checked_type.shape)
        around = [k for k in range(len(rows) - 1 + width) if not axis <= k < axis + width]
        to_front = (*range(axis, axis + width), *around)
        front = make("transpose", grad, axes=to_front) if to_front else grad
        places = make("reshape", make("cast", indices, dtype="int64"), newshape=(1, -1))
        if self.mode == "wrap":
            places = make("floor_mod", places, const(rows[axis], "int64"))
        elif self.mode == "clip":
            places = make("clip", places, a_min=0, a_max=rows[axis] - 1)
        empty = make("transpose", make("zeros_like", of), axes=order)
        updates = make("reshape", front, newshape=(-1, *[rows[k] for k in order[1:]]))
        added = make("scatter_nd", empty, places, updates, mode="add")
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

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
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

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
        return (*inputs, self.batch_dims)

    def gradient(self, call: Anything, grad: Expr) -> list[Expr]:
        data, indices = call.args
        return [make("scatter_nd", make("zeros_like", data), indices, grad, mode="add"), make("zeros_like", indices)]


@register("strided_slice", Kind.INJECTIVE)
class StridedSlice(FromTopi):
    """`data[begin:end:strides]` as Python's slices mean it; with `slice_mode="size"`, `end` holds lengths."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
        return (*inputs, self.begin, self.end, self.strides, self.axes, self.slice_mode)

    def gradient(self, call: Anything, grad: Expr) -> list[Expr]:
        """The gradient set into zeros, where the slice was."""
        (data,) = call.args
        shape = sizes_of("strided_slice", data)
        bounds = [(0, size, 1) for size in shape]
        for k, axis in enumerate(range(len(self.begin)) if self.axes is None else self.axes):
            size, low, high = shape[axis], self.begin[k], self.end[k] if k < len(self.end) else shape[axis]
            step = self.strides[k] if self.strides is not None and k < len(self.strides) else 1
            if self.slice_mode == "size":
                low = low + size if low < 0 else low
                step, high = 1, size if high == -1 else low + high
            first, last, step = slice(low, high, step).indices(size)
            bounds[axis] = (first, last if last >= 0 else -size - 1, step)  # before the first element, not the last one
        begin, end, strides = (const(list(column), "int32") for column in zip(*bounds, strict=True))
        return [make("strided_set", make("zeros_like", data), grad, begin, end, strides)]


@calls("strided_slice")
def strided_slice(
    data: Expr,
    begin: Anything,
    end: Anything,
    strides: Anything = None,
    axes: Anything = None,
    slice_mode: str = "end",
) -> Expr:
    """A slice of the data: bounds are numbers, or expressions that are vectors when the program runs."""
    bounds = [numbers_of(bound) for bound in (begin, end, (1,) if strides is None else strides)]
    if any(bound is None for bound in bounds):
        if axes is not None:
            raise ValueError("relay.strided_slice: axes go with bounds that are numbers; give bounds by position")
        given = [
            bound if isinstance(bound, Expr) else const(np.array(numbers, "int64"))
            for bound, numbers in zip((begin, end, strides), bounds, strict=True)
        ]
        if strides is None:
            given[2] = make("ones_like", begin if isinstance(begin, Expr) else end)
        return make("dyn.strided_slice", data, *given, slice_mode=slice_mode)
    return make(
        "strided_slice",
        data,
        begin=bounds[0],
        end=bounds[1],
        strides=None if strides is None else bounds[2],
        slice_mode=slice_mode,
        axes=None if axes is None else numbers_of(axes),
    )


@register("dyn.strided_slice", Kind.OPAQUE)
class DynStridedSlice(Operator):
    """A slice whose bounds are tensors; negative ones count from the end, and bounds outside are moved to the ends."""

    slice_mode: str = "end"
    data_dependent = True

    def infer(self, data: TensorType, begin: TensorType, end: TensorType, strides: TensorType) -> Type:
        count = vector_length("dyn.strided_slice", "begin", begin)
        if count > len(data.shape) or vector_length("dyn.strided_slice", "end", end) != count:
            raise TypeMismatch(f"dyn.strided_slice: bounds {begin} and {end} do not go with {data}")
        return TensorType([*[Any()] * count, *data.shape[count:]], str(data.dtype))

    def compute(self, data: Anything, begin: Anything, end: Anything, strides: Anything) -> Anything:
        """The slice in a corner of a tensor as large as the data, and its sizes."""
        op = "dyn.strided_slice"
        starts, steps, counts = [], [], []
        lows, highs = (read_bounds(op, bound, data.ndim) for bound in (begin, end))
        every = read_bounds(op, strides, data.ndim)
        for k, (low, high) in enumerate(zip(lows, highs, strict=True)):
            size = data.shape[k].astype("int64")
            low, high = low.astype("int64"), high.astype("int64")
            step = every[k].astype("int64") if k < len(every) and self.slice_mode == "end" else te.const(1, "int64")
            back = select(step < 0, te.const(-1, "int64"), te.const(0, "int64"))
            first = select(low < 0, low + size, low)
            if self.slice_mode == "size":
                last = select(high < 0, size, first + high)
            else:
                last = select(high < 0, high + size, high)
            first, last = (maximum(minimum(bound, size + back), back) for bound in (first, last))
            gap = select(step < 0, first - last, last - first)
            stride = select(step < 0, -step, step)
            starts.append(first)
            steps.append(step)
            counts.append(maximum((gap + stride - 1) // stride, te.const(0, "int64")))
        rest = data.ndim - len(starts)

        def cell(*at: Anything) -> Anything:
            places = [
                maximum(minimum(index * step + start, size - 1), 0)  # past the slice nothing is asked for
                for index, step, start, size in zip(at, steps, starts, data.shape, strict=False)
            ]
            return data(*places, *at[len(at) - rest :])

        def count_of(axis: Anything) -> Anything:
            value = counts[-1]
            for k in range(len(counts) - 2, -1, -1):
                value = select(axis == k, counts[k], value)
            return value

        return [moved(data.shape, cell, "T_dynamic_strided_slice"), moved((len(counts),), count_of, "sizes")]

    def reference(self, data: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> np.ndarray:
        bounds = [[int(number) for number in bound] for bound in (begin, end, strides)]
        attrs = StridedSlice(begin=bounds[0], end=bounds[1], strides=bounds[2], slice_mode=self.slice_mode)
        return attrs.reference(data)


@register("strided_set", Kind.INJECTIVE)
class StridedSet(FromTopi):
    """The data with the part that the bounds name replaced by `v`."""

    def infer(
        self, data: TensorType, v: TensorType, begin: TensorType, end: TensorType, strides: TensorType
    ) -> Type:
        return self.type_of_compute(data, v, begin, end, strides)


@calls("strided_set")
def strided_set(data: Expr, v: Expr, begin: Anything, end: Anything, strides: Anything = None) -> Expr:
    """The data with a slice of it replaced by `v`; bounds are numbers, or expressions that are vectors of int32."""
    low, high = (bound if isinstance(bound, Expr) else const(list(bound), "int32") for bound in (begin, end))
    if strides is None:
        step = make("ones_like", low)
    else:
        step = strides if isinstance(strides, Expr) else const(list(strides), "int32")
    return make("strided_set", data, v, low, high, step)


@register("slice_like", Kind.INJECTIVE)
class SliceLike(Operator):
    """The first elements of the data along `axes` (all of them by default), as many as `shape_like` has."""

    axes: tuple[int, ...] | None = None

    def infer(self, data: TensorType, shape_like: TensorType) -> Type:
        shape = list(data.shape)
        named = self.axes if self.axes else range(len(shape))
        for axis in normal_axes("slice_like", list(named), len(shape)):
            if axis >= len(shape_like.shape):
                raise TypeMismatch(f"slice_like: {shape_like} has no axis {axis}, along which {data} is cut")
            shape[axis] = shape_like.shape[axis]
        if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in zip(shape, data.shape, strict=True)):
            raise TypeMismatch(f"slice_like: {data} is smaller than {shape_like}, whose sizes it is cut to")
        return TensorType(shape, str(data.dtype))

    def compute(self, data: Anything, shape_like: Anything) -> Anything:
        shape = list(data.shape)
        for axis in normal_axes("slice_like", list(self.axes or range(data.ndim)), data.ndim):
            shape[axis] = shape_like.shape[axis]
        return slice_at(data, [0] * data.ndim, [1] * data.ndim, shape, "T_strided_slice")

    def reference(self, data: np.ndarray, shape_like: np.ndarray) -> np.ndarray:
        cuts = [slice(None)] * data.ndim
        for axis in normal_axes("slice_like", list(self.axes or range(data.ndim)), data.ndim):
            cuts[axis] = slice(shape_like.shape[axis])
        return data[tuple(cuts)]


@register("where", Kind.BROADCAST)
class Where(FromTopi):
    """`x` where the condition is not 0, else `y`; all three are repeated to one shape."""

    def infer(self, condition: TensorType, x: TensorType, y: TensorType) -> Type:
        same_dtype("where", x, y)
        shape = broadcast("where", broadcast("where", condition.shape, x.shape), y.shape)
        return TensorType(shape, str(x.dtype))

    def gradient(self, call: Anything, grad: Expr) -> list[Expr]:
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

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
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

    k: Anything = 0
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
def trilu(data: Expr, k: Anything, upper: bool = True) -> Expr:
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

    def gradient(self, call: Anything, grad: Expr) -> list[Expr]:
        return [make("zeros_like", arg) for arg in call.args]


@calls("one_hot")
def one_hot(
    indices: Expr, on_value: Anything, off_value: Anything, depth: Anything, axis: int, dtype: str
) -> Expr:
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
        return TensorType([*indices.shape[:at], Any(), *indices.shape[at:]], self.dtype)

    def compute(self, *inputs: Anything) -> Anything:
        raise only_interpreted("dyn.one_hot", "the depth")

    def reference(self, *inputs: np.ndarray) -> np.ndarray:
        *values, depth = inputs
        found: np.ndarray = OneHot(depth=int(depth.reshape(())), axis=self.axis, dtype=self.dtype).reference(*values)
        return found


@register("sparse_to_dense", Kind.OPAQUE)
class SparseToDense(FromTopi):
    """The tensor of `output_shape` with the values at the indices, and `default_value` elsewhere."""

    output_shape: tuple[int, ...]

    def infer(self, sparse_indices: TensorType, sparse_values: TensorType, default_value: TensorType) -> Type:
        return self.type_of_compute(sparse_indices, sparse_values, default_value)

    def arguments(self, *inputs: Anything) -> Sequence[Anything]:
        indices, values, default = inputs
        return indices, self.output_shape, values, default


@calls("sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Expr, output_shape: Anything, sparse_values: Expr, default_value: Anything = 0
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
        return TensorType([Any()] * rank, str(sparse_values.dtype))

    def compute(self, *inputs: Anything) -> Anything:
        raise only_interpreted("dyn.sparse_to_dense", "the shape")

    def reference(self, *inputs: np.ndarray) -> np.ndarray:
        *values, shape = inputs
        found: np.ndarray = SparseToDense(output_shape=tuple(int(size) for size in shape)).reference(*values)
        return found


@calls("segment_sum")
def segment_sum(data: Expr, segment_ids: Expr, num_segments: int | None = None) -> Expr:
    """The rows of the data summed by the segment each belongs to; without a number, up to the last one there is."""
    from loopwright.relay.infer_type import infer

    of = infer(data)
    if not isinstance(of, TensorType) or any(not isinstance(size, int) for size in of.shape[1:]):
        raise TypeMismatch(f"segment_sum: the sizes of a row of {of} are not known")
    rows = of.shape[1:]
    if num_segments is None:
        last = make("max", make("cast", segment_ids, dtype="int64"))
        count = make("add", last, const(np.array(1, "int64"), "int64"))
        shape: Anything = make(
            "concatenate",
            [make("reshape", count, newshape=(1,)), const(np.array(rows, "int64").reshape(-1), "int64")],
            axis=0,
        )
    else:
        shape = (num_segments, *rows)
    empty = FUNCTIONS["zeros"](shape, str(of.dtype))
    return make("scatter_nd", empty, make("expand_dims", segment_ids, axis=0), data, mode="add")

