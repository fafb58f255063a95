"""Depthwise convolutions: each channel by windows of its own, without a sum over channels.

    out[n, c·m + k, y, x] = Σ over i, j of data[n, c, y·stride + i, x·stride + j] · weight[c, k, i, j]

The multiplier m says how many output channels come from each input channel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.nn.conv.convolution_samples import products_sample
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.sizes import check_rank, check_same, known, simplify, tap_indices
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.convolution import depthwise_conv2d_python_nchw, depthwise_conv2d_python_nhwc
from loopwright.topi.types import Dim, Dims, DType, IntPadding, Ints, Padding


def _depthwise_nchw(
    x: np.ndarray, w: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints, out_dtype: DType | None = None
) -> np.ndarray:
    return depthwise_conv2d_python_nchw(x.astype(out_dtype or x.dtype), w.astype(out_dtype or w.dtype),
                                        stride, padding, dilation)  # fmt: skip


def _nchw_samples() -> Iterator[Sample]:
    for dtype in ("float32", "float64", "int32"):
        yield Sample((whole_numbers((2, 3, 5, 6), dtype), whole_numbers((3, 1, 3, 3), dtype), 1, 1, 1))
    yield Sample((whole_numbers((1, 3, 7, 6)), whole_numbers((3, 2, 3, 2)), (2, 1), (0, 1, 2, 1), (1, 2)))
    yield Sample((whole_numbers((1, 3, 4, 4), "int8"), whole_numbers((3, 1, 3, 3), "int8"), 1, "SAME", 1, "int32"))
    yield Sample((whole_numbers((0, 3, 4, 4)), whole_numbers((3, 1, 3, 3)), 1, 1, 1))
    yield products_sample(_depthwise_nchw, real_numbers((1, 3, 5, 5)), real_numbers((3, 1, 3, 3)), 9, 1, 1, 1)


@operator(reference=_depthwise_nchw, samples=_nchw_samples, name="nn.depthwise_conv2d_nchw")
def depthwise_conv2d_nchw(
    Input: te.Tensor, Filter: te.Tensor, stride: Dims, padding: Padding, dilation: Dims, out_dtype: DType | None = None
) -> te.Tensor:
    """Of data in NCHW by a weight of shape (channels, multiplier, rows, columns)."""
    op = "depthwise_conv2d_nchw"
    check_rank(op, "data", Input, "NCHW", 4)
    check_rank(op, "weight", Filter, "OIHW", 4)
    batch, channels, height, width = Input.shape
    filter_channels, multiplier, *kernel = Filter.shape
    check_same(op, "channels differ", ("the data", channels), ("the weight", filter_channels))
    window = window_over(op, (height, width), kernel, stride, padding, dilation)
    padded = pad_unless_zero(Input, [0, 0, *window.before], [0, 0, *window.after])
    dtype = out_dtype or Input.dtype
    taps = [te.reduce_axis((0, size), name=name) for size, name in zip(kernel, ("di", "dj"), strict=True)]

    def element(b: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        y, x = tap_indices((i, j), window.strides, taps, window.dilations)
        own, which = _split_channel(c, multiplier)
        value: Expr = te.sum(
            padded(b, own, y, x).astype(dtype) * Filter(own, which, taps[0].var, taps[1].var).astype(dtype), axis=taps
        )
        return value

    shape = (batch, simplify(channels * multiplier), *window.places)
    out: te.Tensor = te.compute(shape, element, name="DepthwiseConv2d", tag=default_tag(op))
    return out


def _depthwise_nhwc(
    x: np.ndarray, w: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints, kernel_layout: str = "HWOI"
) -> np.ndarray:
    weight = w.transpose(0, 1, 3, 2) if kernel_layout == "HWIO" else w
    return depthwise_conv2d_python_nhwc(x, weight, stride, padding, dilation)


def _nhwc_samples() -> Iterator[Sample]:
    for dtype in ("float32", "int32"):
        yield Sample((whole_numbers((2, 5, 6, 3), dtype), whole_numbers((3, 3, 3, 1), dtype), 1, 1, 1))
    yield Sample((whole_numbers((1, 7, 6, 3)), whole_numbers((3, 2, 3, 2)), (2, 1), (0, 1, 2, 1), (1, 2)))
    yield Sample((whole_numbers((1, 5, 5, 3)), whole_numbers((3, 3, 2, 3)), 1, 0, 1, "HWIO"))
    yield products_sample(_depthwise_nhwc, real_numbers((1, 5, 5, 3)), real_numbers((3, 3, 3, 1)), 9, 1, 1, 1)


@operator(reference=_depthwise_nhwc, samples=_nhwc_samples, name="nn.depthwise_conv2d_nhwc")
def depthwise_conv2d_nhwc(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    kernel_layout: str = "HWOI",
    out_dtype: DType | None = None,
) -> te.Tensor:
    """Of data in NHWC by a weight in HWOI (rows, columns, channels, multiplier) or HWIO (the last two exchanged)."""
    op = "depthwise_conv2d_nhwc"
    if kernel_layout not in ("HWOI", "HWIO"):
        raise UnsupportedLayout(op, kernel_layout, "the layouts of the weight are HWOI and HWIO")
    check_rank(op, "data", Input, "NHWC", 4)
    check_rank(op, "weight", Filter, kernel_layout, 4)
    batch, height, width, channels = Input.shape
    *kernel, filter_channels, multiplier = Filter.shape
    if kernel_layout == "HWIO":
        filter_channels, multiplier = multiplier, filter_channels
    check_same(op, "channels differ", ("the data", channels), ("the weight", filter_channels))
    window = window_over(op, (height, width), kernel, stride, padding, dilation)
    padded = pad_unless_zero(Input, [0, *window.before, 0], [0, *window.after, 0])
    dtype = out_dtype or Input.dtype
    taps = [te.reduce_axis((0, size), name=name) for size, name in zip(kernel, ("di", "dj"), strict=True)]

    def element(b: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
        y, x = tap_indices((i, j), window.strides, taps, window.dilations)
        own, which = _split_channel(c, multiplier)
        last = (own, which) if kernel_layout == "HWOI" else (which, own)
        weight = Filter(taps[0].var, taps[1].var, *last).astype(dtype)
        value: Expr = te.sum(padded(b, y, x, own).astype(dtype) * weight, axis=taps)
        return value

    shape = (batch, *window.places, simplify(channels * multiplier))
    out: te.Tensor = te.compute(shape, element, name="DepthwiseConv2d", tag=default_tag(op))
    return out


def _depthwise_blocked(x: np.ndarray, w: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints) -> np.ndarray:
    plain = x.transpose(0, 1, 4, 2, 3).reshape(x.shape[0], -1, *x.shape[2:4])
    weight = w.transpose(0, 5, 1, 4, 2, 3).reshape(plain.shape[1], -1, *w.shape[2:4])
    out = depthwise_conv2d_python_nchw(plain, weight, stride, padding, dilation)
    block = w.shape[5]
    return out.reshape(out.shape[0], -1, block, *out.shape[2:]).transpose(0, 1, 3, 4, 2)


def _blocked_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 2, 5, 5, 4)), whole_numbers((2, 1, 3, 3, 1, 4)), 1, 1, 1))
    yield Sample((whole_numbers((1, 3, 5, 6, 2)), whole_numbers((3, 1, 3, 2, 1, 4)), 2, 1, 1))
    yield products_sample(
        _depthwise_blocked, real_numbers((1, 1, 4, 4, 8)), real_numbers((1, 1, 3, 3, 1, 8)), 9, 1, 1, 1
    )


@operator(reference=_depthwise_blocked, samples=_blocked_samples, name="nn.depthwise_conv2d_NCHWc")
def depthwise_conv2d_NCHWc(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: DType | None = None,
) -> te.Tensor:
    """Of blocked data (N, C // b, H, W, b) by a weight (O // o, 1, rows, columns, 1, o); the result has blocks of o."""
    op = "depthwise_conv2d_NCHWc"
    check_rank(op, "data", Input, "NCHWc", 5)
    check_rank(op, "weight", Filter, "OIHWio", 6)
    batch, chunks, height, width, block = Input.shape
    out_chunks, one, *kernel, inner_one, out_block = Filter.shape
    check_same(op, "a depthwise weight has no input channels", ("the weight", one * inner_one), ("one channel", 1))
    channels, features = known(chunks * block), known(out_chunks * out_block)
    differ = "output channels are no multiple of the input channels"
    multiplier = 1
    if channels and features is not None:
        multiplier, rest = divmod(features, channels)
        if rest:
            raise InvalidShapeError(op, f"{differ}: {features} in the weight, {channels} in the data")
    check_same(op, differ, ("the weight", out_chunks * out_block), ("the data", chunks * block * multiplier))
    window = window_over(op, (height, width), kernel, stride, padding, dilation)
    padded = pad_unless_zero(Input, [0, 0, *window.before, 0], [0, 0, *window.after, 0])
    dtype = out_dtype or Input.dtype
    taps = [te.reduce_axis((0, size), name=name) for size, name in zip(kernel, ("kh", "kw"), strict=True)]
    same_blocks = multiplier == 1 and known(block - out_block) == 0

    def element(b: Expr, oco: Expr, i: Expr, j: Expr, oci: Expr) -> Expr:
        y, x = tap_indices((i, j), window.strides, taps, window.dilations)
        channel = (oco * out_block + oci) // multiplier
        chunk, part = (oco, oci) if same_blocks else (channel // block, channel % block)
        weight = Filter(oco, 0, taps[0].var, taps[1].var, 0, oci).astype(dtype)
        value: Expr = te.sum(padded(b, chunk, y, x, part).astype(dtype) * weight, axis=taps)
        return value

    shape = (batch, out_chunks, *window.places, out_block)
    out: te.Tensor = te.compute(shape, element, name="DepthwiseConv2d", tag=default_tag(op))
    return out


def _split_channel(channel: Expr, multiplier: Expr) -> tuple[Expr, Dim]:
    """The input channel of an output channel, and which of its windows it is."""
    return (channel, 0) if known(multiplier) == 1 else (channel // multiplier, channel % multiplier)
