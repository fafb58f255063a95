"""The network of deep Q-learning (Mnih et al., 2015): three convolutions and two products, from frames to actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import conv2d, dense, relu
from loopwright.relay.testing.workload import create_workload


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    body: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    axis = layout.index("C")
    for number, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        name = f"conv{number}"
        body = conv2d(body, name, channels, kernel, stride, data_layout=layout, kernel_layout=kernel_layout)
        body = relu(make("nn.bias_add", body, var(f"{name}_bias"), axis=axis))
    body = relu(dense(make("nn.batch_flatten", body), "dense1", 512))
    return dense(body, "dense2", num_actions)


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout), seed=seed)
