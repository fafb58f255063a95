"""Operators and schedules under the names that packages for one kind of processor have: `topi.x86.dense_nopack`.

One definition of an operator serves every processor; what differs is the schedule, and that is made by rule. So
`topi.x86.conv2d_nchw` is `topi.nn.conv2d_nchw`, and a name for one way of computing it (`dense_mkl`,
`conv2d_nchw_spatial_pack`) is the operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Final

from loopwright import te
from loopwright.topi import nn
from loopwright.topi.rule_schedules import FAMILIES, gpu_schedule_function, named_schedule

_OPERATORS: Final = (
    "batch_matmul binarize_pack binary_dense bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense conv1d_ncw "
    "conv1d_nwc conv1d_transpose_ncw conv2d_NCHWc conv2d_NCHWc_int8 conv2d_hwcn conv2d_nchw conv2d_nhwc "
    "conv2d_transpose_nchw conv2d_winograd_nchw conv2d_winograd_nhwc conv3d_ncdhw conv3d_ndhwc conv3d_transpose_ncdhw "
    "correlation_nchw deformable_conv2d_nchw deformable_conv2d_nhwc dense depthwise_conv2d_NCHWc depthwise_conv2d_nchw "
    "depthwise_conv2d_nhwc group_conv1d_ncw group_conv1d_nwc group_conv1d_transpose_ncw group_conv2d_nchw "
    "group_conv2d_nhwc group_conv2d_transpose_nchw group_conv3d_transpose_ncdhw matmul sparse_conv2d sparse_dense"
).split()

# A way of computing an operator → the operator.
_WAYS: Final[dict[str, str]] = {
    **{f"dense_{way}": "dense" for way in ("nopack", "cblas", "mkl", "dnnl", "vnni", "int8", "dynamic")},
    **{f"matmul_{way}": "matmul" for way in ("cblas", "mkl", "dnnl")},
    **{f"batch_matmul_{way}": "batch_matmul" for way in ("cblas", "mkl", "vnni")},
    "conv2d_nchw_spatial_pack": "conv2d_nchw",
    "conv2d_nhwc_spatial_pack": "conv2d_nhwc",
    "conv2d_nchw_winograd": "conv2d_nchw",
    "conv2d_nchw_int8": "conv2d_nchw",
    "conv2d_int8": "conv2d_nchw",
    "compute_depthwise_conv2d_nhwc": "depthwise_conv2d_nhwc",
    "depthwise_conv2d_nchw_spatial_pack": "depthwise_conv2d_nchw",
}


# Ways of computing that GPUs have: what follows an operator's name, or that of its schedule.
_GPU_WAYS: Final = (
    "_winograd_tensorcore _winograd_direct _winograd _tensorcore _small_batch _large_batch _int8 _shuffle _expand"
).split()
# Operators of which packages for GPUs have a version of their own.
_ALSO_FOR_GPUS: Final = (
    "argsort argwhere cumprod cumsum dft scatter_elements scatter_nd searchsorted sort stft topk unique"
).split()


def named(module: str, name: str) -> Callable[..., object]:
    """What a package for one kind of processor has under `name`: a schedule by rule, or an operator."""
    if name == "dense_pack":
        return _dense_pack
    operator = name if name in _OPERATORS else _WAYS.get(name)
    if operator is not None:
        result: Callable[..., object] = getattr(nn, operator)
        return result
    return named_schedule(module, name)


def named_for_gpu(module: str, name: str) -> Callable[..., object]:
    """What a package for GPUs has under `name`."""
    way = next((way for way in _GPU_WAYS if name.endswith(way)), "")
    plain = name.removesuffix(way)
    family = plain.removeprefix("schedule_")
    if plain != family and (family in FAMILIES or family in _ALSO_FOR_GPUS):
        return gpu_schedule_function(name)
    if plain in _ALSO_FOR_GPUS:
        result: Callable[..., object] = getattr(importlib.import_module("loopwright.topi"), plain)
        return result
    return named(module, plain if plain in _OPERATORS else name)


def _dense_pack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """dense with a weight that is packed already, or is still (units, columns)."""
    return (nn.dense if len(weight.shape) == 2 else nn.dense_pack)(data, weight, bias, out_dtype)


NAMES: Final = sorted([*(f"schedule_{family}" for family in FAMILIES), *_OPERATORS, *_WAYS, "dense_pack"])

__all__ = ["NAMES", "named", "named_for_gpu"]
