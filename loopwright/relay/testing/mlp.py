"""A multilayer perceptron: three products with activations in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import dense, relu
from loopwright.relay.testing.workload import create_workload


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32"
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    data = make("nn.batch_flatten", var("data", shape=(batch_size, *image_shape), dtype=dtype))
    hidden = relu(dense(relu(dense(data, "fc1", 128)), "fc2", 64))
    return make("nn.softmax", dense(hidden, "fc3", num_classes))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 10,
    image_shape: Sequence[int] = (1, 28, 28),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype), seed=seed)
