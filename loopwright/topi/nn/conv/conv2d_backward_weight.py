"""conv2d_backward_weight_nchw: the gradient of a convolution by its weight.

out[o, i, y, x] = Σ over n, p, q of grad[n, o, p, q] · data[n, i, p·stride + y·dilation, q·stride + x·dilation]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.nn.conv.convolution_samples import products_sample
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.windows import windows_of
from loopwright.topi.types import Dims, DType, IntPadding, Ints, Padding, Shape


def _reference(
    grad: np.ndarray,
    data: np.ndarray,
    kernel_size: tuple[int, int],
    stride: Ints,
    padding: IntPadding,
    dilation: Ints,
    groups: int = 1,
    out_dtype: DType | None = None,
) -> np.ndarray:
    steps, spread = ([one, one] if isinstance(one, int) else list(one) for one in (stride, dilation))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_size, spread, strict=True)]
    top, left, bottom, right = get_pad_tuple(padding, reach)
    padded = np.pad(data, [(0, 0), (0, 0), (top, bottom), (left, right)])
    seen = windows_of(padded, kernel_size, steps, spread)
    n, channels, outputs = data.shape[0], data.shape[1], grad.shape[1]
    seen = seen.reshape(n, groups, channels // groups, *seen.shape[2:])
    parts = grad.reshape(n, groups, outputs // groups, *grad.shape[2:])
    return np.einsum("ngcpqyx,ngopq->gocyx", seen, parts).reshape(outputs, channels // groups, *kernel_size)


def _samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 4, 5, 6)), whole_numbers((2, 3, 5, 6)), (3, 3), 1, 1, 1))
    yield Sample((whole_numbers((1, 4, 3, 3)), whole_numbers((1, 6, 7, 6)), (3, 2), 2, (0, 0, 0, 0), (1, 1), 2))
    yield Sample((whole_numbers((1, 2, 3, 3)), whole_numbers((1, 2, 5, 5)), (2, 2), 1, 0, 2))
    real = real_numbers((2, 3, 4, 4)), real_numbers((2, 2, 4, 4))
    yield products_sample(_reference, *real, 32, (3, 3), 1, 1, 1)


@operator(reference=_reference, samples=_samples, name="nn.conv2d_backward_weight_nchw")
def conv2d_backward_weight_nchw(
    grad: te.Tensor,
    data: te.Tensor,
    kernel_size: Shape,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    groups: int = 1,
    out_dtype: DType | None = None,
) -> te.Tensor:
    """The gradient by a weight of `kernel_size` in OIHW, from that of the result, `grad`, and the data, in NCHW."""
    op = "conv2d_backward_weight_nchw"
    check_rank(op, "gradient", grad, "NCHW", 4)
    check_rank(op, "data", data, "NCHW", 4)
    batch, outputs, high, wide = grad.shape
    channels = data.shape[1]
    for what, size in (("input", channels), ("output", outputs)):
        if groups < 1 or not multiple_of(size, groups):
            raise InvalidShapeError(op, f"{known(size)} {what} channels are not divisible into {groups} groups")
    window = window_over(op, data.shape[2:], kernel_size, stride, padding, dilation)
    for axis, have, want in zip("HW", (high, wide), window.places, strict=True):
        check_same(op, f"places along {axis} differ", ("the gradient", have), ("the convolution", want))
    check_same(op, "batches differ", ("the gradient", batch), ("the data", data.shape[0]))
    padded = pad_unless_zero(data, [0, 0, *window.before], [0, 0, *window.after])
    n = te.reduce_axis((0, batch), name="n")
    p, q = te.reduce_axis((0, high), name="p"), te.reduce_axis((0, wide), name="q")
    inner, per_group = simplify(channels // groups), simplify(outputs // groups)
    dtype = out_dtype or data.dtype

    def element(o: Expr, i: Expr, y: Expr, x: Expr) -> Expr:
        channel = i if groups == 1 else o // per_group * inner + i
        row = p.var * window.strides[0] + y * window.dilations[0]
        column = q.var * window.strides[1] + x * window.dilations[1]
        value = padded(n.var, channel, row, column).astype(dtype)
        total: Expr = te.sum(grad(n.var, o, p.var, q.var).astype(dtype) * value, axis=[n, p, q])
        return total

    out: te.Tensor = te.compute((outputs, inner, *kernel_size), element, name=op, tag=default_tag(op))
    return out
