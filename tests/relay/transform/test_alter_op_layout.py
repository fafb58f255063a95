"""AlterOpLayout and Legalize: what users register takes the place of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import (
    AlterOpLayout,
    FoldConstant,
    Legalize,
    register_alter_op_layout,
    register_legalize,
)
from loopwright.relay.transform.alter_op_layout import ALTERATIONS
from loopwright.relay.transform.legalize import LEGAL
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function, operators

RANDOM = np.random.default_rng(0)


def _const(*shape: int) -> relay.Constant:
    return relay.const(RANDOM.integers(-3, 4, shape).astype("float32"))


@pytest.fixture
def blocked() -> Iterator[None]:
    """Convolutions of 8 channels in blocks of 4."""

    @register_alter_op_layout("nn.conv2d")
    def alter(attrs: Any, inputs: Any, types: Any, out_type: Any) -> Any:
        if attrs.data_layout != "NCHW" or types[0].shape[1] % 4 or types[1].shape[0] % 4:
            return None
        data = relay.layout_transform(inputs[0], "NCHW", "NCHW4c")
        weight = relay.layout_transform(inputs[1], "OIHW", "OIHW4i4o")
        options = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o", "out_layout": "NCHW4c"}
        conv = relay.nn.contrib_conv2d_nchwc(data, weight, padding=attrs.padding, strides=attrs.strides, **options)
        return relay.layout_transform(conv, "NCHW4c", "NCHW")

    yield
    del ALTERATIONS["nn.conv2d"]


@pytest.mark.usefixtures("blocked")
def test_between_two_convolutions_nothing_is_moved():
    x = relay.var("x", shape=(1, 8, 6, 6))
    first = relay.nn.relu(relay.nn.conv2d(x, _const(8, 8, 3, 3), padding=(1, 1)) + _const(8, 1, 1))
    before = function(relay.nn.conv2d(first * relay.const(2.0), _const(4, 8, 1, 1)))
    found = apply([AlterOpLayout(), FoldConstant()], before)
    assert operators(found).count("layout_transform") == 2
    assert operators(found).count("nn.contrib_conv2d_nchwc") == 2
    assert_same_results(before, found)


@pytest.mark.usefixtures("blocked")
def test_those_that_are_not_altered_stay():
    x = relay.var("x", shape=(1, 3, 6, 6))
    assert_unchanged(AlterOpLayout(), relay.nn.conv2d(x, _const(8, 3, 3, 3)))


@pytest.mark.usefixtures("blocked")
def test_an_operand_along_another_axis_is_not_blocked():
    x = relay.var("x", shape=(1, 8, 6, 6))
    before = function(relay.nn.conv2d(x, _const(8, 8, 1, 1)) + _const(6))
    found = apply([AlterOpLayout(), FoldConstant()], before)
    assert_same_results(before, found)


def test_nothing_registered_changes_nothing():
    x = relay.var("x", shape=(1, 8, 6, 6))
    assert_unchanged(AlterOpLayout(), relay.nn.conv2d(x, _const(8, 8, 1, 1)))
    assert_unchanged(Legalize(), relay.nn.conv2d(x, _const(8, 8, 1, 1)))


def test_legalize():
    @register_legalize("nn.leaky_relu")
    def legalize(attrs: Any, inputs: Any, types: Any) -> Any:
        if attrs.alpha != 0.5:
            return None
        assert str(types[-1]) == "Tensor[(3), float32]"
        return relay.maximum(inputs[0], inputs[0] * relay.const(attrs.alpha))

    try:
        x = relay.var("x", shape=(3,))
        before = function(relay.nn.leaky_relu(x, 0.5))
        found = apply(Legalize(), before)
        assert operators(found) == ["maximum", "multiply"]
        assert_same_results(before, found)
        assert_unchanged(Legalize(), relay.nn.leaky_relu(x, 0.25))
    finally:
        del LEGAL["nn.leaky_relu"]
