"""DenseNet (Huang et al., 2017): every layer of a block reads what all layers before it made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import batch_norm, conv2d, dense, relu
from loopwright.relay.testing.workload import create_workload

# Layers → channels of the first convolution, channels that a layer adds, layers of each block.
_PLANS = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


def _normed(data: Expr, name: str) -> Expr:
    return relu(batch_norm(data, name, epsilon=1e-5))


def get_net(
    densenet_size: int,
    classes: int,
    batch_size: int,
    image_shape: Sequence[int],
    dtype: str = "float32",
    bn_size: int = 4,
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    if densenet_size not in _PLANS:
        raise ValueError(f"there is no DenseNet of {densenet_size} layers; there are {', '.join(map(str, _PLANS))}")
    channels, growth, blocks = _PLANS[densenet_size]
    body: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _normed(conv2d(body, "conv1", channels, 7, 2, 3), "batch1")
    body = make("nn.max_pool2d", body, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for block, layers in enumerate(blocks):
        for layer in range(layers):
            name = f"dense{block}_{layer}"
            more = conv2d(_normed(body, f"{name}_norm1"), f"{name}_conv1", bn_size * growth, 1)
            more = conv2d(_normed(more, f"{name}_norm2"), f"{name}_conv2", growth, 3, 1, 1)
            body = make("concatenate", (body, more), axis=1)
        channels += layers * growth
        if block + 1 < len(blocks):
            channels //= 2
            body = conv2d(_normed(body, f"transition{block}_norm"), f"transition{block}_conv", channels, 1)
            body = make("nn.avg_pool2d", body, pool_size=(2, 2), strides=(2, 2))
    body = make("nn.avg_pool2d", _normed(body, "batch5"), pool_size=(7, 7))
    return dense(make("nn.batch_flatten", body), "dense", classes)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype), seed=seed)
