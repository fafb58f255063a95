"""ResNet (the first form: normalization after each convolution), of 18 to 152 layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import batch_norm, conv2d, conv_bn_relu, dense, relu
from loopwright.relay.testing.workload import create_workload

# Layers → units in each of the four stages, and whether a unit is a bottleneck of three convolutions.
_DEPTHS: Final = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}


def _unit(data: Expr, name: str, channels: int, stride: int, bottleneck: bool, widen: bool) -> Expr:
    if bottleneck:
        body = conv_bn_relu(data, f"{name}_conv1", channels // 4, 1)
        body = conv_bn_relu(body, f"{name}_conv2", channels // 4, 3, stride, 1)
        body = batch_norm(conv2d(body, f"{name}_conv3", channels, 1), f"{name}_conv3_bn")
    else:
        body = conv_bn_relu(data, f"{name}_conv1", channels, 3, stride, 1)
        body = batch_norm(conv2d(body, f"{name}_conv2", channels, 3, 1, 1), f"{name}_conv2_bn")
    shortcut = batch_norm(conv2d(data, f"{name}_sc", channels, 1, stride), f"{name}_sc_bn") if widen else data
    return relu(make("add", body, shortcut))


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    if num_layers not in _DEPTHS:
        raise ValueError(f"there is no ResNet of {num_layers} layers here; there are {', '.join(map(str, _DEPTHS))}")
    units, bottleneck = _DEPTHS[num_layers]
    widths = (256, 512, 1024, 2048) if bottleneck else (64, 128, 256, 512)
    data: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = conv_bn_relu(data, "conv0", 64, 7, 2, 3)
    body = make("nn.max_pool2d", body, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for stage, (count, channels) in enumerate(zip(units, widths, strict=True), 1):
        for unit in range(1, count + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            widen = unit == 1 and (bottleneck or stage > 1)
            body = _unit(body, f"stage{stage}_unit{unit}", channels, stride, bottleneck, widen)
    pooled = make("nn.batch_flatten", make("nn.global_avg_pool2d", body))
    return make("nn.softmax", dense(pooled, "fc1", num_classes))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, dtype), seed=seed)
