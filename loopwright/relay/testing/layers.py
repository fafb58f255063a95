"""Layers of networks as graphs: a name gives a layer its parameters, whose types inference finds."""

from __future__ import annotations

from loopwright.relay.expr import Expr, var
from loopwright.relay.op.registry import make


def conv2d(
    data: Expr, name: str, channels: int, kernel: int, stride: int = 1, padding: int = 0, **options: object
) -> Expr:
    """A convolution without bias whose weight is `name`_weight."""
    return make(
        "nn.conv2d",
        data,
        var(f"{name}_weight"),
        strides=(stride, stride),
        padding=(padding, padding),
        channels=channels,
        kernel_size=(kernel, kernel),
        **options,
    )


def batch_norm(data: Expr, name: str, **options: object) -> Expr:
    """A normalization with the four parameters of `name`."""
    parameters = [var(f"{name}_{what}") for what in ("gamma", "beta", "moving_mean", "moving_var")]
    return make("nn.batch_norm", data, *parameters, **options)[0]


def relu(data: Expr) -> Expr:
    return make("nn.relu", data)


def dense(data: Expr, name: str, units: int) -> Expr:
    """A product with the weight of `name`, and its bias."""
    product = make("nn.dense", data, var(f"{name}_weight"), units=units)
    return make("nn.bias_add", product, var(f"{name}_bias"), axis=-1)


def conv_bn_relu(
    data: Expr, name: str, channels: int, kernel: int, stride: int = 1, padding: int = 0, **options: object
) -> Expr:
    """The three that stand together nearly everywhere."""
    return relu(batch_norm(conv2d(data, name, channels, kernel, stride, padding, **options), f"{name}_bn"))
