"""Parts of tensors with regular places: strided_slice, what is set there, slice_like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

import numpy as np

from loopwright import te
from loopwright.ir import Buffer, Stmt
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import create
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import FromTopi, numbers_of
from loopwright.relay.op.indexing import sizes_of
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.reshaping import vector_length
from loopwright.relay.op.sizes import at_most, normal_axes
from loopwright.relay.types import AnyDim, TensorType
from loopwright.topi.movement.moving import moved
from loopwright.topi.movement.slicing import read_bounds, slice_at


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

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.begin, self.end, self.strides, self.axes, self.slice_mode)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
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
    begin: object,
    end: object,
    strides: object = None,
    axes: int | Sequence[int] | None = None,
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
        return TensorType([*[AnyDim()] * count, *data.shape[count:]], str(data.dtype))

    def compute(self, data: te.Tensor, begin: te.Tensor, end: te.Tensor, strides: te.Tensor) -> list[te.Tensor]:
        """The slice in a corner of a tensor as large as the data, and its sizes."""
        op = "dyn.strided_slice"
        starts, steps, counts = [], [], []
        lows, highs = (read_bounds(op, bound, data.ndim) for bound in (begin, end))
        every = read_bounds(op, strides, data.ndim)
        for k, (low, high) in enumerate(zip(lows, highs, strict=True)):
            size = data.shape[k].astype("int64")
            low, high = low.astype("int64"), high.astype("int64")
            step = every[k].astype("int64") if k < len(every) and self.slice_mode == "end" else te.const(1, "int64")
            whole = maximum(size, te.const(1, "int64"))
            step = maximum(minimum(step, whole), -whole)  # longer ones take the same, and sums with them wrap around
            back = select(step < 0, te.const(-1, "int64"), te.const(0, "int64"))
            first = select(low < 0, low + size, low)
            if self.slice_mode == "size":
                last = select(high < 0, size, first + high)
            else:
                last = select(high < 0, high + size, high)
            first, last = (maximum(minimum(bound, size + back), back) for bound in (first, last))
            gap = select(step < 0, first - last, last - first)
            stride = maximum(select(step < 0, -step, step), te.const(1, "int64"))  # data may say 0
            starts.append(first)
            steps.append(step)
            counts.append(maximum((gap + stride - 1) // stride, te.const(0, "int64")))
        rest = data.ndim - len(starts)

        def cell(*at: PrimExpr) -> PrimExpr:
            locations = [
                maximum(minimum(index * step + start, size - 1), 0)  # past the slice nothing is asked for
                for index, step, start, size in zip(at, steps, starts, data.shape, strict=False)
            ]
            return data(*locations, *at[len(at) - rest :])

        def count_of(axis: PrimExpr) -> PrimExpr:
            value = counts[-1]
            for k in range(len(counts) - 2, -1, -1):
                value = select(axis == k, counts[k], value)
            return value

        if len(starts) == 1:
            return [_rows_cut(data, starts[0], steps[0], counts[0]), moved((1,), count_of, "sizes")]
        return [moved(data.shape, cell, "T_dynamic_strided_slice"), moved((len(counts),), count_of, "sizes")]

    def reference(self, data: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> np.ndarray:
        bounds = [[int(number) for number in bound] for bound in (begin, end, strides)]
        attrs = StridedSlice(begin=bounds[0], end=bounds[1], strides=bounds[2], slice_mode=self.slice_mode)
        return attrs.reference(data)


def _rows_cut(data: te.Tensor, start: PrimExpr, step: PrimExpr, count: PrimExpr) -> te.Tensor:
    """`count` rows from `start` on in steps, as the first of as many as the data has: no others are read or written."""
    numbers = moved((3,), lambda k: select(k == 0, start, select(k == 1, step, count)), "bounds")
    size, *rest = data.shape

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, bounds, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])

        def copy(rows: PrimExpr, row: Callable[[PrimExpr], PrimExpr]) -> None:
            with ib.for_range(0, rows, "i", dtype=size.dtype) as i, ExitStack() as loops:
                at = [loops.enter_context(ib.for_range(0, extent, "j")) for extent in rest]
                out[(i, *at)] = source[(row(i), *at)]

        def inside(value: PrimExpr, most: PrimExpr) -> PrimExpr:
            """It is there already, which the values do not say."""
            return maximum(minimum(value, most.astype("int64")), te.const(0, "int64")).astype(size.dtype)

        with ib.if_scope(bounds[1].equal(1)):
            begin = ib.let("begin", inside(bounds[0], size))
            copy(ib.let("rows", inside(bounds[2], size - begin)), lambda i: begin + i)
        with ib.else_scope():
            copy(
                ib.let("rows", inside(bounds[2], size)),
                lambda i: inside(bounds[0] + i.astype("int64") * bounds[1], size - 1),
            )
        return ib.get()

    name = "T_dynamic_strided_slice"
    result: te.Tensor = te.extern(data.shape, [data, numbers], body, name=name, dtype=str(data.dtype))
    return result


@register("strided_set", Kind.INJECTIVE)
class StridedSet(FromTopi):
    """The data with the part that the bounds name replaced by `v`."""

    def infer(self, data: TensorType, v: TensorType, begin: TensorType, end: TensorType, strides: TensorType) -> Type:
        return self.type_of_compute(data, v, begin, end, strides)


Bounds = Expr | Iterable[int]


@calls("strided_set")
def strided_set(data: Expr, v: Expr, begin: Bounds, end: Bounds, strides: Bounds | None = None) -> Expr:
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
        if not all([at_most(size, own) for size, own in zip(shape, data.shape, strict=True)]):
            raise TypeMismatch(f"slice_like: {data} is smaller than {shape_like}, whose sizes it is cut to")
        return TensorType(shape, str(data.dtype))

    def compute(self, data: te.Tensor, shape_like: te.Tensor) -> te.Tensor:
        shape = list(data.shape)
        for axis in normal_axes("slice_like", list(self.axes or range(data.ndim)), data.ndim):
            shape[axis] = shape_like.shape[axis]
        return slice_at(data, [0] * data.ndim, [1] * data.ndim, shape, "T_strided_slice")

    def reference(self, data: np.ndarray, shape_like: np.ndarray) -> np.ndarray:
        cuts = [slice(None)] * data.ndim
        for axis in normal_axes("slice_like", list(self.axes or range(data.ndim)), data.ndim):
            cuts[axis] = slice(shape_like.shape[axis])
        return data[tuple(cuts)]
