"""References of operators under the names that scripts for TVM call, with their arguments in the order used there.

    topi.testing.depth_to_space_python(data, 2, mode="CRD")

What an operator means is said beside it (`registry.py`); here it only gets another name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.topi.registry import reference_of
from loopwright.topi.testing.convolution import (
    conv_python,
    conv_transpose_python,
    depthwise_conv2d_python_nchw,
)
from loopwright.topi.types import IntPadding, Ints


def strided_slice_python(
    data: np.ndarray,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None,
    slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> np.ndarray:
    """`data[begin:end:strides]` along `axes`; with slice_mode "size", `end` are sizes."""
    return reference_of("strided_slice", data, begin, end, strides, axes, slice_mode)


def strided_set_python(
    data: np.ndarray, v: np.ndarray, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> np.ndarray:
    """`data` with `data[begin:end:strides] = v`."""
    return reference_of("strided_set", data, v, begin, end, strides)


def gather_python(data: np.ndarray, axis: int, indices: np.ndarray) -> np.ndarray:
    """As numpy's take_along_axis."""
    return reference_of("gather", data, axis, indices)


def gather_nd_python(a_np: np.ndarray, indices_np: np.ndarray) -> np.ndarray:
    """The elements at tuples of indices, which run along the first axis."""
    return reference_of("gather_nd", a_np, indices_np)


def one_hot(indices: np.ndarray, on_value: float, off_value: float, depth: int, axis: int, dtype: str) -> np.ndarray:
    """`on_value` where the index along `axis` is the given one, else `off_value`."""
    return reference_of("one_hot", indices, on_value, off_value, depth, axis, dtype)


def sequence_mask(data: np.ndarray, valid_length: np.ndarray, mask_value: float, axis: int) -> np.ndarray:
    """`mask_value` behind the valid length of each sequence."""
    return reference_of("sequence_mask", data, valid_length, mask_value, axis)


def searchsorted_ref(sorted_sequence: np.ndarray, values: np.ndarray, right: bool, out_dtype: str) -> np.ndarray:
    """Where the values belong in sorted rows; a single row serves every row of values."""
    return reference_of("searchsorted", sorted_sequence, values, right, out_dtype).astype(out_dtype)


def stft_python(
    data: np.ndarray,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: np.ndarray,
    normalized: bool,
    onesided: bool,
) -> np.ndarray:
    """The Fourier transform of windows, real and imaginary parts along the last axis."""
    shape = (data.shape[0], n_fft // 2 + 1 if onesided else n_fft, (data.shape[1] - n_fft) // hop_length + 1, 2)
    return reference_of("stft", data, n_fft, hop_length, win_length, window, normalized, onesided, shape)


def slice_axis_python(data: np.ndarray, axis: int, begin: int, end: int | None = None) -> np.ndarray:
    """`data[begin:end]` along one axis."""
    return data[(slice(None),) * (axis % data.ndim) + (slice(begin, end),)].copy()


def matrix_set_diag(input_np: np.ndarray, diagonal: np.ndarray, k: Ints = 0, align: str = "RIGHT_LEFT") -> np.ndarray:
    """`input_np` with diagonals replaced."""
    return reference_of("matrix_set_diag", input_np, diagonal, k, align)


def depth_to_space_python(data: np.ndarray, block_size: int, mode: str = "DCR") -> np.ndarray:
    """NCHW."""
    return reference_of("nn.depth_to_space", data, block_size, "NCHW", mode)


def space_to_depth_python(data: np.ndarray, block_size: int) -> np.ndarray:
    """NCHW."""
    return reference_of("nn.space_to_depth", data, block_size, "NCHW")


def space_to_batch_nd_python(
    data: np.ndarray,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0,
) -> np.ndarray:
    """Blocks of space become batches."""
    return reference_of("nn.space_to_batch_nd", data, block_shape, pad_before, pad_after, pad_value)


def batch_to_space_nd_python(
    data: np.ndarray, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> np.ndarray:
    """Batches become blocks of space."""
    return reference_of("nn.batch_to_space_nd", data, block_shape, crop_begin_list, crop_end_list)


def pool_grad_nchw(
    a_np: np.ndarray,
    out_grad_np: np.ndarray,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> np.ndarray:
    """The gradient of pooling."""
    return reference_of(
        "nn.pool_grad", out_grad_np, a_np, pool_size, strides, padding, pool_type, ceil_mode, "NCHW", count_include_pad
    )


# --- pictures ---------------------------------------------------------------------------------------------------------


def _resized(data: np.ndarray, scale: Sequence[float], layout: str, method: str, mode: str) -> np.ndarray:
    axes = [layout.index(letter) for letter in "DHW" if letter in layout]
    size = [round(data.shape[axis] * factor) for axis, factor in zip(axes, scale, strict=True)]
    kind = "linear" if method in ("bilinear", "trilinear") else method
    return reference_of(f"image.resize{len(axes)}d", data, [0.0] * (2 * len(axes)), size, layout, kind, mode)


def resize1d_python(
    data: np.ndarray,
    scale: Sequence[float],
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "align_corners",
) -> np.ndarray:
    """Every size times its factor, rounded."""
    return _resized(data, scale, layout, method, coordinate_transformation_mode)


def resize2d_python(
    data: np.ndarray,
    scale: Sequence[float],
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "align_corners",
) -> np.ndarray:
    """Every size times its factor, rounded."""
    return _resized(data, scale, layout, method, coordinate_transformation_mode)


def resize3d_python(
    data: np.ndarray,
    scale: Sequence[float],
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "align_corners",
) -> np.ndarray:
    """Every size times its factor, rounded."""
    return _resized(data, scale, layout, method, coordinate_transformation_mode)


def crop_and_resize_python(
    image: np.ndarray,
    boxes: np.ndarray,
    box_indices: np.ndarray,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> np.ndarray:
    """Boxes of pictures, each resized."""
    return reference_of(
        "image.crop_and_resize", image, boxes, box_indices, crop_size, layout, method, extrapolation_value
    )


def affine_grid_python(data: np.ndarray, target_shape: Sequence[int]) -> np.ndarray:
    """Where each pixel comes from, by affine maps."""
    return reference_of("image.affine_grid", data, target_shape)


def grid_sample_python(
    data: np.ndarray,
    grid: np.ndarray,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> np.ndarray:
    """Pictures sampled at the places of a grid."""
    return reference_of("image.grid_sample", data, grid, method, layout, padding_mode, align_corners)


def roi_align_nchw_python(
    a_np: np.ndarray,
    rois_np: np.ndarray,
    pooled_size: Ints,
    spatial_scale: float,
    sample_ratio: int,
    mode: str | bytes = b"avg",
) -> np.ndarray:
    """Regions of NCHW pictures, each resampled."""
    return reference_of("vision.roi_align_nchw", a_np, rois_np, pooled_size, spatial_scale, mode, sample_ratio)


def roi_align_nhwc_python(
    a_np: np.ndarray,
    rois_np: np.ndarray,
    pooled_size: Ints,
    spatial_scale: float,
    sample_ratio: int,
    mode: str | bytes = b"avg",
) -> np.ndarray:
    """Regions of NHWC pictures, each resampled."""
    return reference_of("vision.roi_align_nhwc", a_np, rois_np, pooled_size, spatial_scale, mode, sample_ratio)


def roi_pool_nchw_python(a_np: np.ndarray, rois_np: np.ndarray, pooled_size: Ints, spatial_scale: float) -> np.ndarray:
    """The largest numbers of the cells of regions."""
    return reference_of("vision.roi_pool_nchw", a_np, rois_np, pooled_size, spatial_scale)


def reorg_python(a_np: np.ndarray, stride: int) -> np.ndarray:
    """YOLO's reorganisation of pixels into channels."""
    return reference_of("vision.reorg", a_np, stride)


# --- convolutions -----------------------------------------------------------------------------------------------------


def group_conv1d_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, dilation: Ints, groups: int
) -> np.ndarray:
    """NCW by OIW."""
    return conv_python(a_np, w_np, stride, padding, dilation, groups, "NCW")


def group_conv1d_transpose_ncw_python(
    a_np: np.ndarray, w_np: np.ndarray, stride: Ints, padding: IntPadding, output_padding: Ints, groups: int = 1
) -> np.ndarray:
    """NCW by IOW."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding, groups)


def depthwise_conv2d_python_nchwc(
    input_np: np.ndarray, filter_np: np.ndarray, stride: Ints, padding: IntPadding
) -> np.ndarray:
    """NCHWc by OIHWio, a filter for every channel."""
    batch, blocks, height, width, lanes = input_np.shape
    data = input_np.transpose(0, 1, 4, 2, 3).reshape(batch, blocks * lanes, height, width)
    outer, multiplier, rows, columns, inner, out_lanes = filter_np.shape
    kernel = filter_np.transpose(0, 5, 1, 4, 2, 3).reshape(outer * out_lanes, multiplier * inner, rows, columns)
    result = depthwise_conv2d_python_nchw(data, kernel, stride, padding)
    _, channels, height, width = result.shape
    return result.reshape(batch, channels // lanes, lanes, height, width).transpose(0, 1, 3, 4, 2)


def conv2d_backward_weight_python(
    dy_np: np.ndarray,
    x_np: np.ndarray,
    kernel_size: tuple[int, int],
    stride: Ints,
    padding: IntPadding,
    groups: int = 1,
    channels: int | None = None,
) -> np.ndarray:
    """The gradient by a weight OIHW, from that of the result and the data, NCHW."""
    return reference_of("nn.conv2d_backward_weight_nchw", dy_np, x_np, kernel_size, stride, padding, (1, 1), groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: np.ndarray,
    weight: np.ndarray,
    weight_format: str,
    stride: Ints,
    padding: IntPadding,
    output_padding: Ints = (0, 0),
) -> np.ndarray:
    """NHWC; the letters of `weight_format` say how the weights lie."""
    kernel = weight.transpose([weight_format.index(letter) for letter in "IOHW"])
    result = conv_transpose_python(a_nhwc.transpose(0, 3, 1, 2), kernel, stride, padding, output_padding)
    return result.transpose(0, 2, 3, 1)
