"""A small network with a layer of most kinds: for tests that want a whole model and little time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import batch_norm, conv2d, dense, relu
from loopwright.relay.testing.workload import create_workload


def get_net(input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Expr:
    """The network as an expression of `data` and its parameters, all of one element type."""
    if wtype not in (None, dtype):
        raise ValueError(f"weights of {wtype} and data of {dtype} do not go together here")
    data: Expr = var("data", shape=input_shape, dtype=dtype)
    channels = input_shape[1]
    body = conv2d(data, "conv", channels, 3, 1, 1, groups=channels)
    body = relu(batch_norm(body, "bn"))
    body = make("add", body, conv2d(body, "conv2", channels, 1))
    body = make("nn.max_pool2d", body, pool_size=(2, 2), strides=(2, 2))
    return make("nn.softmax", dense(make("nn.batch_flatten", body), "dense", 10))


def get_workload(
    input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(input_shape, dtype, wtype), seed=seed)
