"""Inception v3 (Szegedy et al., 2016): blocks of parallel convolutions, put together along the channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import batch_norm, dense, relu
from loopwright.relay.testing.workload import create_workload

_Size = int | tuple[int, int]
_Step = tuple[int, _Size, int, _Size]  # channels, window, stride, padding


def _pair(size: _Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def _conv(data: Expr, name: str, step: _Step) -> Expr:
    channels, kernel, stride, padding = step
    weight = var(f"{name}_conv2d_weight")
    options = {"kernel_size": _pair(kernel), "strides": (stride, stride), "padding": _pair(padding)}
    body = make("nn.conv2d", data, weight, channels=channels, **options)
    return relu(batch_norm(body, f"{name}_batchnorm", epsilon=2e-5, scale=False))


def _tower(data: Expr, name: str, *steps: _Step) -> Expr:
    for number, step in enumerate(steps):
        data = _conv(data, f"{name}_conv_{number}", step)
    return data


def _pooled(data: Expr, kind: str, stride: int = 1) -> Expr:
    padding = (1, 1) if stride == 1 else (0, 0)
    options = {"pool_size": (3, 3), "strides": (stride, stride), "padding": padding}
    if kind == "avg":
        options["count_include_pad"] = True  # type: ignore[assignment]
    return make(f"nn.{kind}_pool2d", data, **options)


def _together(*parts: Expr) -> Expr:
    return make("concatenate", parts, axis=1)


def _block_a(data: Expr, name: str, projected: int) -> Expr:
    return _together(
        _tower(data, f"{name}_1x1", (64, 1, 1, 0)),
        _tower(data, f"{name}_5x5", (48, 1, 1, 0), (64, 5, 1, 2)),
        _tower(data, f"{name}_3x3", (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)),
        _tower(_pooled(data, "avg"), f"{name}_pool", (projected, 1, 1, 0)),
    )


def _block_b(data: Expr, name: str) -> Expr:
    return _together(
        _tower(data, f"{name}_3x3", (384, 3, 2, 0)),
        _tower(data, f"{name}_double", (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)),
        _pooled(data, "max", 2),
    )


def _block_c(data: Expr, name: str, width: int) -> Expr:
    wide: _Step = (width, (1, 7), 1, (0, 3))
    tall: _Step = (width, (7, 1), 1, (3, 0))
    return _together(
        _tower(data, f"{name}_1x1", (192, 1, 1, 0)),
        _tower(data, f"{name}_7x7", (width, 1, 1, 0), wide, (192, (7, 1), 1, (3, 0))),
        _tower(data, f"{name}_double", (width, 1, 1, 0), tall, wide, tall, (192, (1, 7), 1, (0, 3))),
        _tower(_pooled(data, "avg"), f"{name}_pool", (192, 1, 1, 0)),
    )


def _block_d(data: Expr, name: str) -> Expr:
    return _together(
        _tower(data, f"{name}_3x3", (192, 1, 1, 0), (320, 3, 2, 0)),
        _tower(
            data, f"{name}_7x7", (192, 1, 1, 0), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, 3, 2, 0)
        ),
        _pooled(data, "max", 2),
    )


def _block_e(data: Expr, name: str, pool: str) -> Expr:
    three = _tower(data, f"{name}_3x3", (384, 1, 1, 0))
    double = _tower(data, f"{name}_double", (448, 1, 1, 0), (384, 3, 1, 1))
    wide: _Step = (384, (1, 3), 1, (0, 1))
    tall: _Step = (384, (3, 1), 1, (1, 0))
    return _together(
        _tower(data, f"{name}_1x1", (320, 1, 1, 0)),
        _conv(three, f"{name}_3x3_a", wide),
        _conv(three, f"{name}_3x3_b", tall),
        _conv(double, f"{name}_double_a", wide),
        _conv(double, f"{name}_double_b", tall),
        _tower(_pooled(data, pool), f"{name}_pool", (192, 1, 1, 0)),
    )


def get_net(batch_size: int, num_classes: int, image_shape: Sequence[int], dtype: str) -> Expr:
    """The network as an expression of `data` and its parameters."""
    body: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _tower(body, "stem", (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1))
    body = _pooled(body, "max", 2)
    body = _pooled(_tower(body, "stem2", (80, 1, 1, 0), (192, 3, 1, 0)), "max", 2)
    for number, projected in enumerate((32, 64, 64)):
        body = _block_a(body, f"mixed_{number}", projected)
    body = _block_b(body, "mixed_3")
    for number, width in enumerate((128, 160, 160, 192), 4):
        body = _block_c(body, f"mixed_{number}", width)
    body = _block_d(body, "mixed_8")
    body = _block_e(_block_e(body, "mixed_9", "avg"), "mixed_10", "max")
    body = make("nn.avg_pool2d", body, pool_size=(8, 8), strides=(1, 1), count_include_pad=True)
    return make("nn.softmax", dense(make("nn.batch_flatten", body), "fc1", num_classes))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 299, 299),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype), seed=seed)
