"""Convolutions in numpy. Arrays of float64 (or of Python's integers) give a reference for any other type."""

from __future__ import annotations

import numpy as np

from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.testing.windows import numbers, windows_of
from loopwright.topi.types import DType, IntPadding, Ints


def conv_python(
    data: np.ndarray,
    weight: np.ndarray,
    stride: Ints = 1,
    padding: IntPadding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
) -> np.ndarray:
    """The convolution in any layout; `kernel_layout` is OI… where C stands before the spatial axes, else …IO."""
    spatial = "".join(letter for letter in data_layout if letter in "DHW")
    if not kernel_layout:
        channels_first = data_layout.index("C") < data_layout.index(spatial[0])
        kernel_layout = "OI" + spatial if channels_first else spatial + "IO"
    count = len(spatial)
    x = data.transpose([data_layout.index(letter) for letter in "NC" + spatial])
    w = weight.transpose([kernel_layout.index(letter) for letter in "OI" + spatial])
    kernel, steps, spread = w.shape[2:], numbers(stride, count), numbers(dilation, count)
    before, after = get_pad_tuple_generic(padding, [(k - 1) * d + 1 for k, d in zip(kernel, spread, strict=True)])
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    parts = windows_of(x, kernel, steps, spread)
    # n, group, channel, places…, taps… by group, feature, channel, taps…
    n, channels = x.shape[:2]
    locations = parts.shape[2 : 2 + count]
    parts = parts[:, None] if groups == 1 else parts.reshape(n, groups, channels // groups, *parts.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    p, t = "uvw"[:count], "xyz"[:count]
    if groups == 1 and data.dtype.kind == "f":
        # One product of matrices, which a BLAS computes.
        taps = tuple(range(2 + count, 2 + 2 * count))
        flat = np.tensordot(parts[:, 0], w[0], axes=((1, *taps), (1, *range(2, 2 + count))))
        out = np.moveaxis(flat, -1, 1)
    else:
        out = np.einsum(f"ngc{p}{t},gfc{t}->ngf{p}", parts, w)
    out = out.reshape(n, w.shape[0] * w.shape[1], *locations)
    return out.transpose([("NC" + spatial).index(letter) for letter in data_layout])


def conv1d_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints
) -> np.ndarray:
    """NCW by OIW."""
    return conv_python(a_np, w_np, stride, padding, dilation, 1, "NCW")


def conv2d_nchw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, groups: int = 1
) -> np.ndarray:
    """NCHW by OIHW."""
    return conv_python(a_np, w_np, stride, padding, 1, groups, "NCHW")


def conv2d_nhwc_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, groups: int = 1
) -> np.ndarray:
    """NHWC by HWIO."""
    return conv_python(a_np, w_np, stride, padding, 1, groups, "NHWC")


def conv2d_hwcn_python(a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding) -> np.ndarray:
    """HWCN by HWIO."""
    return conv_python(a_np, w_np, stride, padding, 1, 1, "HWCN", "HWIO")


def conv3d_ncdhw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, groups: int = 1
) -> np.ndarray:
    """NCDHW by OIDHW."""
    return conv_python(a_np, w_np, stride, padding, 1, groups, "NCDHW")


def conv3d_ndhwc_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, groups: int = 1
) -> np.ndarray:
    """NDHWC by DHWIO."""
    return conv_python(a_np, w_np, stride, padding, 1, groups, "NDHWC")


def depthwise_conv2d_python_nchw(
    input_np: np.ndarray, filter_np: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints = 1
) -> np.ndarray:
    """NCHW by a weight of shape (channels, multiplier, rows, columns)."""
    channels, multiplier, *kernel = filter_np.shape
    weight = filter_np.reshape(channels * multiplier, 1, *kernel)
    return conv_python(input_np, weight, stride, padding, dilation, channels, "NCHW")


def depthwise_conv2d_python_nhwc(
    input_np: np.ndarray, filter_np: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints = 1
) -> np.ndarray:
    """NHWC by a weight of shape (rows, columns, channels, multiplier)."""
    out = depthwise_conv2d_python_nchw(
        input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1), stride, padding, dilation
    )
    return out.transpose(0, 2, 3, 1)


def dilate_python(
    input_np: np.ndarray, strides: Ints, dilation_value: float = 0.0, out_dtype: DType | None = None
) -> np.ndarray:
    """The array with `dilation_value` between its cells."""
    steps = numbers(strides, input_np.ndim)
    shape = [(size - 1) * step + 1 if size else 0 for size, step in zip(input_np.shape, steps, strict=True)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, step) for step in steps)] = input_np
    return out


def conv_transpose_python(
    data: np.ndarray, weight: np.ndarray, stride: Ints, padding: IntPadding, output_padding: Ints = 0, groups: int = 1
) -> np.ndarray:
    """Every input cell adds its window: the definition, one window place at a time. NC… by IO…."""
    count = data.ndim - 2
    steps, extra, kernel = numbers(stride, count), numbers(output_padding, count), weight.shape[2:]
    before, after = get_pad_tuple_generic(padding, kernel)
    n, channels, *sizes = data.shape
    per_group = weight.shape[1]
    lines = zip(sizes, steps, kernel, extra, strict=True)
    full = np.zeros(
        (n, per_group * groups, *[(size - 1) * step + k + more for size, step, k, more in lines]),
        np.result_type(data, weight),
    )
    x = data.reshape(n, groups, channels // groups, *sizes)
    w = weight.reshape(groups, channels // groups, *weight.shape[1:])
    for tap in np.ndindex(*kernel):
        part = np.einsum("ngc...,gcf->ngf...", x, w[(slice(None), slice(None), slice(None), *tap)])
        spots = zip(tap, sizes, steps, strict=True)
        at = tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in spots)
        full[(slice(None), slice(None), *at)] += part.reshape(n, per_group * groups, *sizes)
    crop = zip(before, after, full.shape[2:], strict=True)
    return full[(slice(None), slice(None), *[slice(low, size - high) for low, high, size in crop])]


def conv1d_transpose_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, output_padding: Ints
) -> np.ndarray:
    """NCW by IOW."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, output_padding: Ints
) -> np.ndarray:
    """NCHW by IOHW."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding)


def conv3d_transpose_ncdhw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, output_padding: Ints
) -> np.ndarray:
    """NCDHW by IODHW."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding)
