"""VGG: stages of 3×3 convolutions with bias, then three large products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import conv2d, dense, relu
from loopwright.relay.testing.workload import create_workload

# Layers → convolutions in each stage.
_DEPTHS: Final = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS: Final = (64, 128, 256, 512, 512)


def get_net(
    batch_size: int,
    image_shape: Sequence[int] = (3, 224, 224),
    num_classes: int = 1000,
    dtype: str = "float32",
    num_layers: int = 11,
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    if num_layers not in _DEPTHS:
        raise ValueError(f"there is no VGG of {num_layers} layers here; there are {', '.join(map(str, _DEPTHS))}")
    body: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for stage, (count, channels) in enumerate(zip(_DEPTHS[num_layers], _WIDTHS, strict=True), 1):
        for layer in range(1, count + 1):
            name = f"conv{stage}_{layer}"
            body = relu(make("nn.bias_add", conv2d(body, name, channels, 3, 1, 1), var(f"{name}_bias")))
        body = make("nn.max_pool2d", body, pool_size=(2, 2), strides=(2, 2))
    hidden = relu(dense(make("nn.batch_flatten", body), "fc6", 4096))
    return make("nn.softmax", dense(relu(dense(hidden, "fc7", 4096)), "fc8", num_classes))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers), seed=seed)
