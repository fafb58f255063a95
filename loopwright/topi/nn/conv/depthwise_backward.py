"""The gradients of the depthwise convolution of data in NHWC: by its input, and by its weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi.nn.conv.convolution_samples import products_sample
from loopwright.topi.nn.conv.dilate import dilate
from loopwright.topi.nn.padding import pad, pad_unless_zero
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import check_rank, check_same, each, places, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Dim, Dims, IntPadding, Ints, Padding, Shape


def _input_gradient(
    weight: np.ndarray,
    grad: np.ndarray,
    oshape: Sequence[int],
    ishape: Sequence[int],
    stride: Ints,
    padding: IntPadding,
) -> np.ndarray:
    rows, columns, channels, multiplier = weight.shape
    top, left, bottom, right = get_pad_tuple(padding, (rows, columns))
    batch, height, width = ishape[:3]
    out = np.zeros((batch, height + top + bottom, width + left + right, channels))
    steps = stride if isinstance(stride, (list, tuple)) else (stride, stride)
    parts = grad.reshape(*grad.shape[:3], channels, multiplier)
    for y, x in np.ndindex(*grad.shape[1:3]):
        at = slice(y * steps[0], y * steps[0] + rows), slice(x * steps[1], x * steps[1] + columns)
        out[:, at[0], at[1]] += np.einsum("ncm,ijcm->nijc", parts[:, y, x], weight)
    return out[:, top : top + height, left : left + width]


def _input_samples() -> Iterator[Sample]:
    weight = whole_numbers((3, 3, 2, 2))
    yield Sample((weight, whole_numbers((2, 5, 4, 4)), (2, 5, 4, 4), (2, 5, 4, 2), 1, 1))
    yield Sample((weight, whole_numbers((1, 3, 2, 4)), (1, 3, 2, 4), (1, 6, 5, 2), 2, (1, 0, 1, 0)))
    real = real_numbers((3, 2, 3, 1)), real_numbers((1, 3, 4, 3))
    yield products_sample(_input_gradient, *real, 6, (1, 3, 4, 3), (1, 5, 5, 3), 1, 0)


@operator(reference=_input_gradient, samples=_input_samples, name="nn.depthwise_conv2d_backward_input_nhwc")
def depthwise_conv2d_backward_input_nhwc(
    Filter: te.Tensor, Out_grad: te.Tensor, oshape: Shape, ishape: Shape, stride: Dims, padding: Padding
) -> te.Tensor:
    """The gradient by the input, of shape `ishape`; the weight is (rows, columns, channels, multiplier)."""
    op = "depthwise_conv2d_backward_input_nhwc"
    rows, columns, channels, multiplier = _shapes(op, Filter, Out_grad, oshape, ishape)
    batch, height, width, _ = ishape
    steps = each(op, "stride", stride, 2)
    top, left, _, _ = get_pad_tuple(padding, (rows, columns))
    spread = dilate(Out_grad, [1, *steps, 1], name="dilated_out_grad")
    # Each input cell sees the window that lies before it, so the gradient begins a window earlier, less the padding.
    before: list[Dim] = [0, simplify(rows - 1 - top), simplify(columns - 1 - left), 0]
    sizes = zip((height, width), (rows, columns), before[1:3], spread.shape[1:3], strict=True)
    after: list[Dim] = [0, *[simplify(size + taps - 1 - low - have) for size, taps, low, have in sizes], 0]
    padded = pad(spread, before, after, name="padded_out_grad")
    dh, dw = te.reduce_axis((0, rows), name="dh"), te.reduce_axis((0, columns), name="dw")
    dc = te.reduce_axis((0, multiplier), name="dc")

    def element(b: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
        value = padded(b, h + dh.var, w + dw.var, c * multiplier + dc.var)
        total: Expr = te.sum(value * Filter(rows - 1 - dh.var, columns - 1 - dw.var, c, dc.var), axis=[dh, dw, dc])
        return total

    out: te.Tensor = te.compute((batch, height, width, channels), element, name=op, tag=default_tag(op))
    return out


def _weight_gradient(
    data: np.ndarray, grad: np.ndarray, oshape: Sequence[int], fshape: Sequence[int], stride: Ints, padding: IntPadding
) -> np.ndarray:
    rows, columns, channels, multiplier = fshape
    top, left, bottom, right = get_pad_tuple(padding, (rows, columns))
    steps = stride if isinstance(stride, (list, tuple)) else (stride, stride)
    padded = np.pad(data, [(0, 0), (top, bottom), (left, right), (0, 0)])
    parts = grad.reshape(*grad.shape[:3], channels, multiplier)
    out = np.zeros(tuple(fshape))
    for i, j in np.ndindex(rows, columns):
        high, wide = ((size - 1) * step + 1 for size, step in zip(grad.shape[1:3], steps, strict=True))
        seen = padded[:, i : i + high : steps[0], j : j + wide : steps[1]]
        out[i, j] = np.einsum("nyxc,nyxcm->cm", seen, parts)
    return out


def _weight_samples() -> Iterator[Sample]:
    grad = whole_numbers((2, 5, 4, 4))
    yield Sample((whole_numbers((2, 5, 4, 2)), grad, (2, 5, 4, 4), (3, 3, 2, 2), 1, 1))
    small = whole_numbers((1, 3, 2, 4))
    yield Sample((whole_numbers((1, 6, 5, 2)), small, (1, 3, 2, 4), (3, 3, 2, 2), 2, (1, 0, 1, 0)))
    real = real_numbers((1, 5, 5, 3)), real_numbers((1, 3, 4, 3))
    yield products_sample(_weight_gradient, *real, 12, (1, 3, 4, 3), (3, 2, 3, 1), 1, 0)


@operator(reference=_weight_gradient, samples=_weight_samples, name="nn.depthwise_conv2d_backward_weight_nhwc")
def depthwise_conv2d_backward_weight_nhwc(
    Input: te.Tensor, Out_grad: te.Tensor, oshape: Shape, fshape: Shape, stride: Dims, padding: Padding
) -> te.Tensor:
    """The gradient by the weight, of shape `fshape`: (rows, columns, channels, multiplier)."""
    op = "depthwise_conv2d_backward_weight_nhwc"
    check_rank(op, "data", Input, "NHWC", 4)
    check_rank(op, "gradient", Out_grad, "NHWC", 4)
    rows, columns, channels, multiplier = fshape
    check_same(op, "channels differ", ("the data", Input.shape[3]), ("the weight", channels))
    for axis, size in enumerate(oshape):
        check_same(op, f"axis {axis} differs", ("the gradient", Out_grad.shape[axis]), ("oshape", size))
    batch, out_height, out_width, _ = Out_grad.shape
    check_same(op, "batches differ", ("the gradient", batch), ("the data", Input.shape[0]))
    check_same(op, "channels differ", ("the gradient", Out_grad.shape[3]), ("the weight", channels * multiplier))
    steps = each(op, "stride", stride, 2)
    top, left, bottom, right = get_pad_tuple(padding, (rows, columns))
    windows = zip(Input.shape[1:3], (rows, columns), steps, (top + bottom, left + right), strict=True)
    for have, (size, taps, step, pads) in zip((out_height, out_width), windows, strict=True):
        want = places(op, size, taps, step, 1, pads)
        check_same(op, "places differ", ("the gradient", have), ("the convolution", want))
    padded = pad_unless_zero(Input, [0, top, left, 0], [0, bottom, right, 0])
    b = te.reduce_axis((0, batch), name="b")
    y, x = te.reduce_axis((0, out_height), name="y"), te.reduce_axis((0, out_width), name="x")

    def element(dh: Expr, dw: Expr, c: Expr, m: Expr) -> Expr:
        grad = Out_grad(b.var, y.var, x.var, c * multiplier + m)
        total: Expr = te.sum(grad * padded(b.var, y.var * steps[0] + dh, x.var * steps[1] + dw, c), axis=[b, y, x])
        return total

    out: te.Tensor = te.compute(tuple(fshape), element, name=op, tag=default_tag(op))
    return out


def _shapes(op: str, weight: te.Tensor, grad: te.Tensor, oshape: Shape, ishape: Shape) -> Sequence[Expr]:
    check_rank(op, "weight", weight, "HWCM", 4)
    check_rank(op, "gradient", grad, "NHWC", 4)
    for axis, size in enumerate(oshape):
        check_same(op, f"axis {axis} differs", ("the gradient", grad.shape[axis]), ("oshape", size))
    check_same(op, "channels differ", ("the weight", weight.shape[2]), ("ishape", ishape[3]))
    check_same(op, "batches differ", ("the gradient", grad.shape[0]), ("ishape", ishape[0]))
    channels = ("the weight", weight.shape[2] * weight.shape[3])
    check_same(op, "channels of the result differ", ("the gradient", grad.shape[3]), channels)
    shape: Sequence[Expr] = weight.shape
    return shape
