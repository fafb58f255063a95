"""The generator of DCGAN (Radford et al., 2015): from a vector to an image, by transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.layers import batch_norm, relu
from loopwright.relay.testing.workload import create_workload


def _larger(data: Expr, name: str, channels: int, layout: str) -> Expr:
    """Twice as high and as wide, of `channels`."""
    return make(
        "nn.conv2d_transpose",
        data,
        var(f"{name}_weight"),
        channels=channels,
        kernel_size=(4, 4),
        strides=(2, 2),
        padding=(1, 1),
        data_layout=layout,
        kernel_layout="IOHW" if layout == "NCHW" else "HWOI",
    )


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    code: object = None,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Expr:
    """The network as an expression of `data` and its parameters; `oshape` is one image, 64 × 64."""
    if tuple(oshape[-2:]) != (64, 64):
        raise ValueError(f"this generator makes images of 64 × 64, and not of {tuple(oshape)}")
    data: Expr = code if isinstance(code, Expr) else var("data", shape=(batch_size, random_len), dtype=dtype)
    body = relu(make("nn.dense", data, var("dense_weight"), units=4 * 4 * ngf * 8))
    body = make("reshape", body, newshape=(-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8))
    for number, channels in enumerate((ngf * 4, ngf * 2, ngf), 2):
        body = _larger(body, f"g{number}", channels, layout)
        body = relu(batch_norm(body, f"g{number}_batch_norm", axis=layout.index("C"), epsilon=1e-5))
    return make("tanh", _larger(body, "g5", oshape[0], layout))


def get_workload(
    batch_size: int,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, None, dtype, layout), seed=seed)
