"""Workloads that searches are tried on, as tensor expressions: `create_te_workload("GMM", 0)`.

The names are those that papers on tensor compilers use: C1D, C2D, C3D (convolutions), CAP (capsules), DEP (depthwise),
DIL (dilated), GRP (grouped), T2D (transposed), GMM (batched GEMM), NRM (norm), SFM (softmax), CBR (convolution, batch
normalisation, ReLU), TBG (transposed batched GEMM).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright.ir import PrimFunc
from loopwright.meta_schedule.testing.convolutions import (
    capsule_conv2d,
    conv1d_nlc,
    conv2d_nhwc,
    conv2d_nhwc_bn_relu,
    conv2d_transpose_nhwc,
    conv3d_ndhwc,
    depthwise_conv2d_nhwc,
)
from loopwright.meta_schedule.testing.matmuls import (
    batch_matmul_nkkm,
    matmul,
    matmul_fp16,
    matmul_relu,
    norm_bmn,
    softmax_mn,
    transpose_batch_matmul,
)
from loopwright.te import create_prim_func

__all__ = [
    "CONFIGS",
    "batch_matmul_nkkm",
    "capsule_conv2d",
    "conv1d_nlc",
    "conv2d_nhwc",
    "conv2d_nhwc_bn_relu",
    "conv2d_transpose_nhwc",
    "conv3d_ndhwc",
    "create_te_workload",
    "depthwise_conv2d_nhwc",
    "matmul",
    "matmul_fp16",
    "matmul_relu",
    "norm_bmn",
    "softmax_mn",
    "transpose_batch_matmul",
]

CONFIGS: dict[str, tuple[Callable[..., tuple[Any, ...]], list[tuple[int, ...]]]] = {
    "C1D": (conv1d_nlc, [(1, 256, 64, 128, 3, 2, 1)]),
    "C2D": (conv2d_nhwc, [(1, 224, 224, 3, 64, 7, 2, 3)]),
    "C3D": (conv3d_ndhwc, [(1, 16, 224, 224, 3, 64, 7, 2, 3)]),
    "CAP": (capsule_conv2d, [(1, 16, 16, 32, 32, 3, 2, 1)]),
    "DEP": (depthwise_conv2d_nhwc, [(1, 112, 112, 32, 3, 1, 1)]),
    "DIL": (conv2d_nhwc, [(1, 224, 224, 3, 64, 7, 2, 3, 2)]),
    "GMM": (batch_matmul_nkkm, [(1, 128, 128, 128)]),
    "GRP": (conv2d_nhwc, [(1, 56, 56, 64, 128, 3, 2, 1, 1, 4)]),
    "T2D": (conv2d_transpose_nhwc, [(1, 4, 4, 512, 256, 4, 2, 1)]),
    "NRM": (norm_bmn, [(1, 256, 256)]),
    "SFM": (softmax_mn, [(256, 256)]),
    "CBR": (conv2d_nhwc_bn_relu, [(1, 224, 224, 3, 64, 7, 2, 3)]),
    "TBG": (transpose_batch_matmul, [(1, 128, 12, 64)]),
}


def create_te_workload(name: str, idx: int) -> PrimFunc:
    """The program of a workload, in one of its sizes."""
    make, sizes = CONFIGS[name]
    return create_prim_func(list(make(*sizes[idx])))
