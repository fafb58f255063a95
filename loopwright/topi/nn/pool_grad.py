"""pool_grad: the gradient of pooling; what each cell of the data added to the result.

A mean hands its gradient to all cells that it counts, in equal parts; a maximum to the first cell that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, min_value, minimum
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.math.reduction import place_reducer
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.nn.pooling import Counted, check_type, counted_cells, spatial_axes
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.parts.sizes import each, one_size, places, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Dim, Dims, Padding


def _pool_grad(
    grads: np.ndarray,
    data: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> np.ndarray:
    order = [layout.index(letter) for letter in "NCHW"]
    out_grads, x = grads.transpose(order), data.transpose(order)
    (top, left, bottom, right), (height, width) = padding, x.shape[2:]
    result = np.zeros(x.shape)
    for oh, ow in np.ndindex(*out_grads.shape[2:]):
        rows, columns = [
            np.arange(at * step - first, at * step - first + k)
            for at, step, first, k in zip((oh, ow), stride, (top, left), kernel, strict=True)
        ]
        own = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
        around = (rows < height + bottom).sum() * (columns < width + right).sum()
        inside = np.ix_(*[range(size) for size in x.shape[:2]], rows[own[0]], columns[own[1]])
        grad = out_grads[:, :, oh, ow]
        if pool_type == "avg":
            count = around if count_include_pad else own[0].sum() * own[1].sum()
            result[inside] += (grad / max(count, 1))[:, :, None, None]
        elif own[0].any() and own[1].any():  # else the window has no cell of the data
            flat = x[inside].reshape(*x.shape[:2], own[0].sum() * own[1].sum())
            first_max = flat == flat.max(axis=-1, keepdims=True)
            first_max &= np.cumsum(first_max, axis=-1) == 1
            result[inside] += (first_max * grad[:, :, None]).reshape(x[inside].shape)
    return result.transpose(np.argsort(order))


def _samples() -> Iterator[Sample]:
    data = whole_numbers((2, 3, 6, 7))
    for kind in ("max", "avg"):
        yield Sample((whole_numbers((2, 3, 3, 3)), data, (2, 2), (2, 2), (0, 0, 0, 0), kind))
        yield Sample((whole_numbers((2, 3, 6, 7)), data, (2, 4), (1, 1), (0, 1, 1, 2), kind))
        yield Sample((whole_numbers((2, 3, 4, 3)), data, (2, 2), (2, 3), (1, 0, 1, 0), kind, True))
    transposed = whole_numbers((1, 4, 2, 2), "float64"), whole_numbers((1, 5, 4, 2), "float64")
    yield Sample((*transposed, (2, 2), (1, 2), (0, 0, 0, 0), "max", False, "NHWC"))
    eps = float(np.finfo("float32").eps)
    # At most six windows meet in a cell; each part was divided.
    yield Sample(
        (real_numbers((2, 3, 6, 7)), data, (2, 3), (1, 1), (0, 1, 1, 1), "avg", False, "NCHW", False),
        bound=lambda args, exact: 7 * eps * _pool_grad(np.abs(args[0]), *args[1:]),
    )
    nothing = np.zeros((0, 3, 3, 3), "float32"), np.zeros((0, 3, 6, 6), "float32")
    yield Sample((*nothing, (2, 2), (2, 2), (0, 0, 0, 0), "max"))


@operator(reference=_pool_grad, samples=_samples, name="nn.pool_grad")
def pool_grad(
    grads: te.Tensor,
    data: te.Tensor,
    kernel: Dims,
    stride: Dims,
    padding: Padding,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """The gradient of `pool2d` with these arguments at `data`, for the gradient `grads` of its result."""
    op = "pool_grad"
    axes = spatial_axes(op, layout, "HW", data)
    check_type(op, pool_type)
    window, strides = each(op, "kernel", kernel, 2), each(op, "stride", stride, 2)
    before, after = get_pad_tuple_generic(padding, window)
    beyond = [step - 1 if ceil_mode else 0 for step in strides]
    shape = list(data.shape)
    for axis, k, step, first, last, more in zip(axes, window, strides, before, after, beyond, strict=True):
        shape[axis] = places(op, data.shape[axis], k, step, 1, first + last + more)
    if grads.ndim != data.ndim or not all(
        [one_size(one, other) for one, other in zip(grads.shape, shape, strict=True)]
    ):
        raise InvalidShapeError(
            op,
            f"{grads.name} has shape {tuple(grads.shape)}, and the pooled data {tuple(shape)}",
            "give the gradient of each result of the pooling",
        )
    # So many windows reach a cell along each axis: the one that begins last, and those before it.
    reach = [te.reduce_axis((0, -(-k // step)), name=name) for k, step, name in zip(window, strides, "hw", strict=True)]

    def of_window(at: Sequence[Expr]) -> tuple[list[Expr], Expr]:
        """The window of this tap that may hold the cell `at`, and whether there is one and it does."""
        index: list[Expr] = list(at)
        tests: list[Expr] = []
        for axis, k, step, first, tap in zip(axes, window, strides, before, reach, strict=True):
            cell = at[axis] + first
            which = simplify(cell // step) - tap.var
            tests += [which >= 0, which < shape[axis], cell - which * step < k]
            # What is not there is not read either: a window in reach stands in for it.
            index[axis] = maximum(minimum(which, shape[axis] - 1), 0)
        return index, all_of(*tests)

    zero = const(0, data.dtype)
    if pool_type == "avg":
        lines = zip(axes, window, strides, before, after, strict=True)
        windows = [Counted(axis, data.shape[axis], k, step, 1, low, high) for axis, k, step, low, high in lines]

        def part(*at: Expr) -> Expr:
            index, is_there = of_window(at)
            count = counted_cells(windows, count_include_pad, any(beyond), index).astype(data.dtype)
            total: Expr = te.sum(if_then_else(is_there, te.div(grads(*index), count), zero), axis=reach)
            return total

        mean: te.Tensor = te.compute(data.shape, part, name="pool_grad_avg", tag=default_tag("pool_grad_avg"))
        return mean

    low: list[Dim] = [0] * data.ndim
    high: list[Dim] = [0] * data.ndim
    for axis, first, last, more in zip(axes, before, after, beyond, strict=True):
        low[axis], high[axis] = first, last + more
    padded = pad_unless_zero(data, low, high, min_value(data.dtype))
    width = padded.shape[axes[1]]
    taps = [te.reduce_axis((0, k), name=name) for k, name in zip(window, ("ry", "rx"), strict=True)]

    def first_greatest(*at: Expr) -> Expr:
        read: list[Expr] = list(at)
        for axis, step, tap in zip(axes, strides, taps, strict=True):
            read[axis] = at[axis] * step + tap.var
        return place_reducer("argmax")((read[axes[0]] * width + read[axes[1]], padded(*read)), axis=taps)

    where, _ = te.compute(shape, first_greatest, name="maxpool_grad_argmax", tag=default_tag("pool_grad_argmax"))

    def routed(*at: Expr) -> Expr:
        index, is_there = of_window(at)
        own = (at[axes[0]] + before[0]) * width + (at[axes[1]] + before[1])
        used = all_of(is_there, where(*index).equal(own))
        total: Expr = te.sum(if_then_else(used, grads(*index), zero), axis=reach)
        return total

    largest: te.Tensor = te.compute(data.shape, routed, name="pool_grad_max", tag=default_tag("pool_grad_max"))
    return largest
