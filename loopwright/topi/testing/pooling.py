"""Pooling in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.topi.testing.windows import windows_of


def pool_python(
    data: np.ndarray,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> np.ndarray:
    """Pooling along the last axes, in the type of `data`; means of integers are truncated."""
    lead = [(0, 0)] * (data.ndim - len(kernel))
    beyond = [step - 1 if ceil_mode else 0 for step in strides]
    pads = [(0, 0, 0)] * len(lead) + list(zip(padding_before, padding_after, beyond, strict=True))
    around = [(low, high + more) for low, high, more in pads]
    if pool_type == "max":
        kind = np.finfo if np.issubdtype(data.dtype, np.floating) else np.iinfo
        padded = np.pad(data, around, constant_values=kind(data.dtype).min)
        return windows_of(padded, kernel, strides, dilation).max(axis=tuple(range(-len(kernel), 0)))
    taps = tuple(range(-len(kernel), 0))
    total = windows_of(np.pad(data, around), kernel, strides, dilation).sum(axis=taps, dtype=data.dtype)
    ones = np.ones(data.shape, np.int64)
    if count_include_pad:
        ones = np.pad(ones, [(low, high) for low, high, _ in pads], constant_values=1)
        ones = np.pad(ones, [(0, more) for _, _, more in pads])
    else:
        ones = np.pad(ones, around)
    count = np.maximum(windows_of(ones, kernel, strides, dilation).sum(axis=taps), 1)
    if np.issubdtype(data.dtype, np.integer):
        return (np.sign(total) * (np.abs(total) // count)).astype(data.dtype)
    return (total / count).astype(data.dtype)


def pool_in_layout(
    np_data: np.ndarray,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> np.ndarray:
    """Pooling of an array in `layout`, computed in `dtype`."""
    spatial = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
    order = [axis for axis in range(np_data.ndim) if axis not in spatial] + spatial
    moved = np_data.astype(dtype).transpose(order)
    out = pool_python(
        moved, kernel, strides, dilation, padding_before, padding_after, pool_type, count_include_pad, ceil_mode
    )
    return out.transpose(np.argsort(order))


def poolnd_python(
    np_data: np.ndarray,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> np.ndarray:
    """The same; but where a window has no cell of the array, its maximum is 0 (and not the least number there is)."""
    args = kernel, strides, dilation, padding_before, padding_after, pool_type, count_include_pad, ceil_mode
    result = pool_in_layout(np_data, *args, dtype, layout)
    if pool_type == "max":
        inside = pool_in_layout(np.ones(np_data.shape), *args, "float32", layout)
        result = np.where(inside == 1, result, np.zeros((), result.dtype))
    return result
