"""FoldScaleAxis: factors of channels go into weights, where that is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import (
    BackwardFoldScaleAxis,
    FoldConstant,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    SimplifyInference,
)
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function, operators

RANDOM = np.random.default_rng(3)


def _x(*shape: int) -> relay.Var:
    return relay.var("x", shape=shape)


def _weight(*shape: int) -> relay.Constant:
    return relay.const(RANDOM.integers(-3, 4, shape).astype("float32"))


def _scale(size: int, after: int, sign: int = 1) -> relay.Constant:
    """Powers of two: products with them are exact."""
    values = sign * 2.0 ** (np.arange(size) % 3 - 1)
    return relay.const(values.astype("float32").reshape(-1, *[1] * after))


def _folds(pass_: Any, before: Any, products: int = 0) -> relay.Function:
    first = function(before)
    found = apply(pass_, first)
    assert operators(found).count("multiply") == products
    assert_same_results(first, found)
    return found


CONVOLUTIONS = [
    ("NCHW", "OIHW", (1, 4, 5, 6), (8, 4, 3, 3), 1),
    ("NHWC", "HWIO", (1, 5, 6, 4), (3, 3, 4, 8), 1),
    ("NCHW", "OIHW", (1, 4, 5, 6), (8, 2, 3, 3), 2),
    ("NCHW", "OIHW", (1, 4, 5, 6), (4, 1, 3, 3), 4),
    ("NCHW", "OIHW", (1, 4, 5, 6), (4, 2, 3, 3), 4),
    ("NHWC", "HWOI", (1, 5, 6, 4), (3, 3, 4, 1), 4),
]


def _conv(data: Any, layout: str, kernel: str, weight: tuple[int, ...], groups: int) -> tuple[Any, int, int]:
    """A convolution, how many channels it gives, and how many dimensions follow them."""
    options = {"padding": (1, 1), "data_layout": layout, "kernel_layout": kernel, "groups": groups}
    conv = relay.nn.conv2d(data, _weight(*weight), **options)
    of = function(conv).body.checked_type
    at = layout.index("C")
    return conv, of.shape[at], 3 - at


@pytest.mark.parametrize(("layout", "kernel", "shape", "weight", "groups"), CONVOLUTIONS)
def test_backward_into_a_convolution(layout: str, kernel: str, shape: Any, weight: Any, groups: int):
    conv, channels, after = _conv(_x(*shape), layout, kernel, weight, groups)
    found = _folds(BackwardFoldScaleAxis(), conv * _scale(channels, after))
    assert found.body.op.name == "nn.conv2d"


@pytest.mark.parametrize(("layout", "kernel", "shape", "weight", "groups"), CONVOLUTIONS)
def test_forward_into_a_convolution(layout: str, kernel: str, shape: Any, weight: Any, groups: int):
    at = layout.index("C")
    scaled = _x(*shape) * _scale(shape[at], 3 - at)
    conv, _, _ = _conv(scaled, layout, kernel, weight, groups)
    grouped = groups not in (1, shape[at])
    _folds(ForwardFoldScaleAxis(), conv, products=int(grouped))


def test_through_sums_and_relu():
    x = _x(1, 4, 5, 5)
    conv = relay.nn.conv2d(x, _weight(8, 4, 3, 3))
    bias = relay.const(np.arange(8, dtype="float32").reshape(8, 1, 1))
    body = relay.nn.relu(conv + bias) * _scale(8, 2)
    assert operators(_folds(FoldScaleAxis(), body)) == ["add", "nn.conv2d", "nn.relu"]
    body = relay.nn.leaky_relu(relay.nn.bias_add(conv, relay.const(np.arange(8, dtype="float32"))), 0.5) * _scale(8, 2)
    assert operators(_folds(FoldScaleAxis(), body)) == ["nn.bias_add", "nn.conv2d", "nn.leaky_relu"]
    _folds(FoldScaleAxis(), (bias - conv) * _scale(8, 2))


def test_a_negative_factor_does_not_pass_relu():
    conv = relay.nn.conv2d(_x(1, 4, 5, 5), _weight(8, 4, 3, 3))
    _folds(FoldScaleAxis(), relay.nn.relu(conv) * _scale(8, 2, sign=-1), products=1)
    _folds(FoldScaleAxis(), conv * _scale(8, 2, sign=-1))


def test_through_pools():
    conv = relay.nn.conv2d(_x(1, 4, 6, 6), _weight(8, 4, 3, 3))
    pooled = relay.nn.max_pool2d(conv, (2, 2), (2, 2)) * _scale(8, 2)
    assert operators(_folds(FoldScaleAxis(), pooled)) == ["nn.conv2d", "nn.max_pool2d"]
    _folds(FoldScaleAxis(), relay.nn.max_pool2d(conv, (2, 2), (2, 2)) * _scale(8, 2, sign=-1), products=1)
    _folds(FoldScaleAxis(), relay.nn.avg_pool2d(conv, (2, 2), (2, 2)) * _scale(8, 2, sign=-1))


def test_what_others_use_stays():
    conv = relay.nn.conv2d(_x(1, 4, 5, 5), _weight(8, 4, 3, 3))
    assert_unchanged(FoldScaleAxis(), relay.Tuple([conv, conv * _scale(8, 2)]))


def test_a_factor_along_another_axis_stays():
    conv = relay.nn.conv2d(_x(1, 4, 8, 8), _weight(8, 4, 1, 1))
    assert_unchanged(FoldScaleAxis(), conv * _scale(8, 0))


def test_a_residual_sum_stays():
    x = _x(1, 4, 5, 5)
    conv = relay.nn.conv2d(x, _weight(4, 4, 1, 1))
    assert_unchanged(FoldScaleAxis(), (conv + x) * _scale(4, 2))


def test_dense_layers():
    x = _x(2, 6)
    dense = relay.nn.dense(x, _weight(8, 6)) + relay.const(np.arange(8, dtype="float32"))
    _folds(BackwardFoldScaleAxis(), dense * _scale(8, 0))
    _folds(ForwardFoldScaleAxis(), relay.nn.dense(x * _scale(6, 0), _weight(8, 6)))
    _folds(BackwardFoldScaleAxis(), relay.nn.matmul(x, _weight(6, 8)) * _scale(8, 0))


def test_weights_that_are_inputs():
    """Smaller than the data: the factor costs less there; larger: it stays."""
    x, w = _x(1, 4, 9, 9), relay.var("w", shape=(8, 4, 3, 3))
    s = relay.var("s", shape=(8, 1, 1))
    found = _folds(BackwardFoldScaleAxis(), relay.nn.conv2d(x, w) * s, products=1)
    assert found.body.op.name == "nn.conv2d"
    assert_unchanged(BackwardFoldScaleAxis(), relay.nn.dense(_x(1, 6), relay.var("w", shape=(8, 6))) * _scale(8, 0))


def test_batch_norm_after_a_convolution():
    x = relay.var("x", shape=(1, 4, 6, 6), dtype="float64")
    weight = relay.const(RANDOM.standard_normal((8, 4, 3, 3)), "float64")
    conv = relay.nn.conv2d(x, weight, padding=(1, 1))
    statistics = [relay.const(RANDOM.uniform(0.5, 1.5, 8), "float64") for _ in range(4)]
    before = function(relay.nn.relu(relay.nn.batch_norm(conv, *statistics)[0]))
    found = apply([SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldConstant()], before)
    assert operators(found) == ["add", "nn.conv2d", "nn.relu"]
    assert_same_results(before, found, exact=False)


def test_long_chains():
    body = x = _x(1, 2, 4, 4)
    weight = _weight(2, 2, 1, 1)
    for _ in range(300):
        body = relay.nn.conv2d(body, weight) * _scale(2, 2)
    assert operators(apply(FoldScaleAxis(), relay.Function([x], body))) == ["nn.conv2d"] * 300
