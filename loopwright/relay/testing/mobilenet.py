"""MobileNet: pairs of a depthwise and a pointwise convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import conv_bn_relu, dense
from loopwright.relay.testing.workload import create_workload

# Channels after each pair, and the stride of its depthwise convolution.
_PAIRS: Final = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def get_net(
    batch_size: int, num_classes: int = 1000, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32"
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    body = conv_bn_relu(var("data", shape=(batch_size, *image_shape), dtype=dtype), "conv1", 32, 3, 2, 1)
    channels = 32
    for number, (wider, stride) in enumerate(_PAIRS, 2):
        name = f"separable{number}"
        body = conv_bn_relu(body, f"{name}_depthwise", channels, 3, stride, 1, groups=channels)
        body = conv_bn_relu(body, f"{name}_pointwise", wider, 1)
        channels = wider
    pooled = make("nn.batch_flatten", make("nn.global_avg_pool2d", body))
    return make("nn.softmax", dense(pooled, "fc", num_classes))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype), seed=seed)
