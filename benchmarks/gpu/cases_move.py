"""Data movement and windows: transposes, joins, picks, pooling, depthwise convolutions, resizing."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from case import Case

from loopwright import te, topi

Shape = tuple[int, ...]
Input = Shape | tuple[Shape, str]


def _case(
    family: str,
    name: str,
    make: Callable[..., te.Tensor],
    reference: Callable[..., torch.Tensor],
    out: Shape,
    *inputs: Input,
) -> Case:
    """`make` takes the placeholders; inputs are of float32 where they say nothing."""
    given = tuple(one if isinstance(one[-1], str) else (one, "float32") for one in inputs)

    def program() -> list[te.Tensor]:
        tensors = [te.placeholder(shape, dtype, name=f"x{k}") for k, (shape, dtype) in enumerate(given)]
        return [*tensors, make(*tensors)]

    return Case(family, name, program, reference, given, out)  # type: ignore[arg-type]


def _transpose(shape: Shape, axes: Shape, dtype: str = "float32") -> Case:
    name = f"{'×'.join(map(str, shape))} to {axes}" + ("" if dtype == "float32" else f" {dtype}")
    out = tuple(shape[axis] for axis in axes)
    return _case(
        "transpose",
        name,
        lambda x: topi.transpose(x, axes),
        lambda x: x.permute(axes).contiguous(),
        out,
        (shape, dtype),
    )


def _scaled(x: te.Tensor, c: te.Tensor) -> te.Tensor:
    n, m = x.shape
    return te.compute((m, n), lambda i, j: x[j, i] * 2 + c[j], name="out")


def _five_points(x: te.Tensor) -> te.Tensor:
    def at(i: te.Expr, j: te.Expr) -> te.Expr:
        return (x[i + 1, j + 1] + x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]) * 0.2

    return te.compute((8190, 8190), at, name="out")


def _five_points_of_torch(x: torch.Tensor) -> torch.Tensor:
    return (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.2


def _pool(family: str, shape: Shape, size: int, stride: int, pad: int, kind: str) -> Case:
    """Averages count zeros of the padding, as both libraries do unless asked."""
    n, c, h, w = shape
    out = (n, c, (h + 2 * pad - size) // stride + 1, (w + 2 * pad - size) // stride + 1)

    def reference(x: torch.Tensor) -> torch.Tensor:
        if kind == "max":
            return F.max_pool2d(x, size, stride, pad)
        return F.avg_pool2d(x, size, stride, pad)

    def make(x: te.Tensor) -> te.Tensor:
        return topi.nn.pool2d(x, (size, size), (stride, stride), (1, 1), (pad, pad, pad, pad), kind)

    return _case(family, f"{kind} {size}×{size}/{stride} of {'×'.join(map(str, shape))}", make, reference, out, shape)


def _mean_of_those_inside(x: te.Tensor) -> te.Tensor:
    return topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "avg", count_include_pad=False)


def _depthwise(shape: Shape, stride: int, dtype: str = "float32") -> Case:
    """Sums are of float32 whatever the type, as torch's are."""
    n, c, h, w = shape
    out = (n, c, (h - 1) // stride + 1, (w - 1) // stride + 1)

    def make(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        if dtype == "float32":
            return topi.nn.depthwise_conv2d_nchw(x, w, (stride, stride), (1, 1), (1, 1))
        wide = topi.nn.depthwise_conv2d_nchw(x, w, (stride, stride), (1, 1), (1, 1), out_dtype="float32")
        return topi.cast(wide, dtype)

    return _case(
        "depthwise",
        f"3×3/{stride} of {'×'.join(map(str, shape))}" + ("" if dtype == "float32" else f" {dtype}"),
        make,
        lambda x, w: F.conv2d(x, w, stride=stride, padding=1, groups=c),
        out,
        (shape, dtype),
        ((c, 1, 3, 3), dtype),
    )


def _depthwise_of_channels_last(shape: Shape) -> Case:
    c = shape[-1]

    def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        result = F.conv2d(x.permute(0, 3, 1, 2), w.permute(2, 3, 0, 1), padding=1, groups=c)
        return result.permute(0, 2, 3, 1).contiguous()

    return _case(
        "depthwise",
        f"3×3/1 of {'×'.join(map(str, shape))}, channels last",
        lambda x, w: topi.nn.depthwise_conv2d_nhwc(x, w, (1, 1), (1, 1), (1, 1)),
        reference,
        shape,
        shape,
        (3, 3, c, 1),
    )


def _bilinear(shape: Shape) -> Case:
    n, c, h, w = shape
    return _case(
        "resize",
        f"bilinear by 2 of {'×'.join(map(str, shape))}",
        lambda x: topi.image.resize2d(x, [0.0] * 4, (2 * h, 2 * w), "NCHW", "linear"),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
        (n, c, 2 * h, 2 * w),
        shape,
    )


CASES: list[Case] = [
    _transpose((8192, 8192), (1, 0)),
    _transpose((8192, 8192), (1, 0), "float16"),
    _transpose((8192, 8192), (1, 0), "float64"),
    _transpose((4097, 3001), (1, 0)),
    _transpose((4097, 3001), (1, 0), "float16"),
    _transpose((1024, 1024), (1, 0)),
    _transpose((16_384, 16_384), (1, 0)),
    _transpose((16_381, 16_411), (1, 0)),
    _transpose((256, 1000, 1024), (0, 2, 1)),
    _transpose((64, 1000, 512), (0, 2, 1)),
    _transpose((64, 1000, 512), (0, 2, 1), "float16"),
    _transpose((64, 1000, 512), (2, 0, 1)),
    _transpose((64, 1000, 512), (1, 0, 2)),
    _transpose((32, 256, 56, 56), (0, 2, 3, 1)),
    _transpose((32, 256, 56, 56), (0, 2, 3, 1), "float16"),
    _transpose((32, 56, 56, 256), (0, 3, 1, 2)),
    _transpose((64, 3, 224, 224), (0, 2, 3, 1)),
    _transpose((64, 224, 224, 3), (0, 3, 1, 2)),
    _case("transpose", "scaled", _scaled, lambda x, c: x.T * 2 + c, (8192, 8192), (8192, 8192), (8192,)),
    _case(
        "join",
        "concat of columns",
        lambda x, y: topi.concatenate([x, y], 1),
        lambda x, y: torch.cat([x, y], 1),
        (16384, 4096),
        (16384, 2000),
        (16384, 2096),
    ),
    _case(
        "join",
        "stack of columns",
        lambda x, y: topi.stack([x, y], -1),
        lambda x, y: torch.stack([x, y], -1),
        (8192, 4096, 2),
        (8192, 4096),
        (8192, 4096),
    ),
    _case(
        "join",
        "stack of four float16",
        lambda *x: topi.stack(x, -1),
        lambda *x: torch.stack(x, -1),
        (8192, 2048, 4),
        *[((8192, 2048), "float16")] * 4,
    ),
    _case(
        "slice",
        "each second column",
        lambda x: topi.strided_slice(x, [0, 0], [16384, 8192], [1, 2]),
        lambda x: x[:, ::2].contiguous(),
        (16384, 4096),
        (16384, 8192),
    ),
    _case(
        "pad",
        "images by one",
        lambda x: topi.nn.pad(x, (0, 0, 1, 1), (0, 0, 1, 1)),
        lambda x: F.pad(x, (1, 1, 1, 1)),
        (64, 64, 114, 114),
        (64, 64, 112, 112),
    ),
    _case(
        "pick",
        "embedding rows",
        lambda x, i: topi.take(x, i, axis=0),
        lambda x, i: F.embedding(i, x),
        (65536, 1024),
        (50000, 1024),
        ((65536,), "int64"),
    ),
    _case(
        "pick",
        "embedding rows float16",
        lambda x, i: topi.take(x, i, axis=0),
        lambda x, i: F.embedding(i, x),
        (65536, 1024),
        ((50000, 1024), "float16"),
        ((65536,), "int64"),
    ),
    _case("cast", "to float16", lambda x: topi.cast(x, "float16"), lambda x: x.half(), (1 << 26,), (1 << 26,)),
    _case(
        "cast",
        "to float32",
        lambda x: topi.cast(x, "float32"),
        lambda x: x.float(),
        (1 << 26,),
        ((1 << 26,), "float16"),
    ),
    _pool("pool", (32, 64, 112, 112), 2, 2, 0, "max"),
    _pool("pool", (32, 64, 112, 112), 3, 2, 1, "max"),
    _pool("pool", (32, 256, 56, 56), 3, 1, 1, "avg"),
    _case(
        "pool",
        "avg 3×3/1 of cells inside",
        _mean_of_those_inside,
        lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        (32, 256, 56, 56),
        (32, 256, 56, 56),
    ),
    _case(
        "pool",
        "mean of 7×7",
        lambda x: topi.nn.global_pool(x, "avg"),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        (256, 2048, 1, 1),
        (256, 2048, 7, 7),
    ),
    _depthwise((64, 144, 56, 56), 1),
    _depthwise((64, 144, 56, 56), 2),
    _depthwise((64, 144, 56, 56), 1, "float16"),
    _depthwise_of_channels_last((64, 56, 56, 144)),
    _case("stencil", "5 points of 8192²", _five_points, _five_points_of_torch, (8190, 8190), (8192, 8192)),
    _case(
        "resize",
        "nearest by 2",
        lambda x: topi.nn.upsampling(x, 2, 2),
        lambda x: F.interpolate(x, scale_factor=2),
        (32, 64, 112, 112),
        (32, 64, 56, 56),
    ),
    _bilinear((32, 64, 56, 56)),
]
SMALL = [
    *[case for case in CASES if case.input_bytes <= 1 << 22],
    _pool("pool", (2, 3, 9, 8), 3, 1, 1, "avg"),
    _pool("pool", (2, 3, 9, 8), 3, 2, 1, "max"),
    _depthwise((2, 3, 8, 8), 1),
    _depthwise((2, 3, 8, 8), 2, "float16"),
    _depthwise_of_channels_last((2, 9, 8, 12)),
    _bilinear((2, 3, 8, 9)),
    _case(
        "pool",
        "mean of 7×7",
        lambda x: topi.nn.global_pool(x, "avg"),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        (300, 64, 1, 1),
        (300, 64, 7, 7),
    ),
    _case(
        "pool",
        "avg 3×3/1 of cells inside",
        _mean_of_those_inside,
        lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        (2, 3, 9, 8),
        (2, 3, 9, 8),
    ),
    _case(
        "join",
        "stack of columns",
        lambda x, y: topi.stack([x, y], -1),
        lambda x, y: torch.stack([x, y], -1),
        (65, 128, 2),
        (65, 128),
        (65, 128),
    ),
]
