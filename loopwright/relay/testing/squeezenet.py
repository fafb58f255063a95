"""SqueezeNet (Iandola et al., 2016), versions 1.0 and 1.1: modules that squeeze channels and expand them again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import conv2d, relu
from loopwright.relay.testing.workload import create_workload

# Per version: the first convolution, and then channels of modules, None being a pool.
_PLANS = {
    "1.0": ((96, 7), (16, 16, 32, None, 32, 48, 48, 64, None, 64)),
    "1.1": ((64, 3), (16, 16, None, 32, 32, None, 48, 48, 64, 64)),
}


def _conv(data: Expr, name: str, channels: int, kernel: int, stride: int = 1, padding: int = 0) -> Expr:
    return relu(make("nn.bias_add", conv2d(data, name, channels, kernel, stride, padding), var(f"{name}_bias")))


def _pool(data: Expr) -> Expr:
    return make("nn.max_pool2d", data, pool_size=(3, 3), strides=(2, 2))


def get_net(
    batch_size: int, image_shape: Sequence[int], num_classes: int, version: str, dtype: str = "float32"
) -> Expr:
    """The network as an expression of `data` and its parameters."""
    if version not in _PLANS:
        raise ValueError(f"there is no SqueezeNet {version!r}; there are {', '.join(_PLANS)}")
    (channels, kernel), plan = _PLANS[version]
    body: Expr = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _pool(_conv(body, "conv1", channels, kernel, 2))
    for number, squeeze in enumerate(plan, 2):
        if squeeze is None:
            body = _pool(body)
            continue
        body = _conv(body, f"fire{number}_squeeze", squeeze, 1)
        one = _conv(body, f"fire{number}_expand1", squeeze * 4, 1)
        three = _conv(body, f"fire{number}_expand3", squeeze * 4, 3, 1, 1)
        body = make("concatenate", (one, three), axis=1)
    body = _conv(make("nn.dropout", body, rate=0.5)[0], "final", num_classes, 1)
    return make("nn.softmax", make("nn.batch_flatten", make("nn.global_avg_pool2d", body)))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype), seed=seed)
