"""FoldExplicitPadding: convolutions and pools pad for themselves."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import FoldExplicitPadding
from tests.relay.transform.graphs import assert_becomes, assert_unchanged

FOLD = FoldExplicitPadding()
AROUND = ((0, 0), (0, 0), (1, 2), (0, 3))


def _x(dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=(1, 2, 6, 7), dtype=dtype)


def test_convolutions():
    x, w = _x(), relay.var("w", shape=(3, 2, 3, 3))
    after = relay.nn.conv2d(x, w, padding=(1, 0, 2, 3))
    assert_becomes(FOLD, relay.nn.conv2d(relay.nn.pad(x, AROUND), w), after)
    before = relay.nn.conv2d(relay.nn.pad(x, AROUND), w, padding=(1, 1), strides=(2, 2))
    assert_becomes(FOLD, before, relay.nn.conv2d(x, w, padding=(2, 1, 3, 4), strides=(2, 2)))


def test_other_layouts_and_dimensions():
    x, w = relay.var("x", shape=(1, 6, 7, 2)), relay.var("w", shape=(3, 3, 2, 3))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    padded = relay.nn.pad(x, ((0, 0), (1, 1), (0, 2), (0, 0)))
    assert_becomes(FOLD, relay.nn.conv2d(padded, w, **layouts), relay.nn.conv2d(x, w, padding=(1, 0, 1, 2), **layouts))
    x, w = relay.var("x", shape=(1, 2, 9)), relay.var("w", shape=(3, 2, 3))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (2, 1)))
    assert_becomes(FOLD, relay.nn.conv1d(padded, w), relay.nn.conv1d(x, w, padding=(2, 1)))


def test_what_is_not_its_own_padding_stays():
    x, w = _x(), relay.var("w", shape=(3, 2, 3, 3))
    assert_unchanged(FOLD, relay.nn.conv2d(relay.nn.pad(x, AROUND, 1.0), w))
    assert_unchanged(FOLD, relay.nn.conv2d(relay.nn.pad(x, AROUND, pad_mode="edge"), w))
    channels = relay.nn.pad(x, ((0, 0), (0, 1), (1, 1), (1, 1)))
    assert_unchanged(FOLD, relay.nn.conv2d(channels, relay.var("w", shape=(3, 3, 3, 3))))
    assert_unchanged(FOLD, relay.nn.conv2d(relay.nn.pad(x, AROUND, relay.var("v", shape=())), w))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_maximum(dtype: str):
    x = _x(dtype)
    widths = ((0, 0), (0, 0), (1, 2), (0, 1))
    for least in (-np.inf, np.finfo(dtype).min) if dtype == "float32" else (-128,):
        padded = relay.nn.pad(x, widths, relay.const(least, dtype))
        after = relay.nn.max_pool2d(x, (3, 3), padding=(1, 0, 2, 1))
        assert_becomes(FOLD, relay.nn.max_pool2d(padded, (3, 3)), after)
    assert_unchanged(FOLD, relay.nn.max_pool2d(relay.nn.pad(x, widths, relay.const(0, dtype)), (3, 3)))


def test_a_maximum_of_the_border_alone():
    assert_unchanged(FOLD, relay.nn.max_pool2d(relay.nn.pad(_x(), AROUND, relay.const(-np.inf, "float32")), (2, 2)))


def test_a_mean():
    x = _x()
    after = relay.nn.avg_pool2d(x, (2, 2), padding=(1, 0, 2, 3), count_include_pad=True)
    assert_becomes(FOLD, relay.nn.avg_pool2d(relay.nn.pad(x, AROUND), (2, 2)), after)
    counted = relay.nn.avg_pool2d(relay.nn.pad(x, AROUND), (2, 2), padding=(1, 1), count_include_pad=True)
    after = relay.nn.avg_pool2d(x, (2, 2), padding=(2, 1, 3, 4), count_include_pad=True)
    assert_becomes(FOLD, counted, after)
    assert_unchanged(FOLD, relay.nn.avg_pool2d(relay.nn.pad(x, AROUND), (2, 2), padding=(1, 1)))


def test_a_quantized_convolution():
    x, w = _x("uint8"), relay.var("w", shape=(3, 2, 3, 3), dtype="int8")
    zero, none, scale = relay.const(3), relay.const(0), relay.const(0.5)
    options = {"kernel_size": (3, 3), "channels": 3}
    padded = relay.nn.pad(x, AROUND, relay.const(3, "uint8"))
    before = relay.qnn.op.conv2d(padded, w, zero, none, scale, scale, **options)
    assert_becomes(FOLD, before, relay.qnn.op.conv2d(x, w, zero, none, scale, scale, padding=(1, 0, 2, 3), **options))
    padded = relay.nn.pad(x, AROUND, relay.const(0, "uint8"))
    assert_unchanged(FOLD, relay.qnn.op.conv2d(padded, w, zero, none, scale, scale, **options))
