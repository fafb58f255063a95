"""ChooseLayouts: the same results, fewer moves than convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.expr import Call
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform.choose_layouts import ChooseLayouts
from loopwright.relay.transform.infer_type import InferType
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import operators


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def weights(out, into, size=1, seed=1):
    return relay.const(numbers(out, into, size, size, seed=seed))


def chosen(function):
    with PassContext(opt_level=3):
        return ChooseLayouts()(InferType()(relay.IRModule.from_expr(function)))["main"]


def layouts(function):
    return [
        (each.attrs.data_layout, each.attrs.out_layout or each.attrs.data_layout)
        for each in post_order(function.body)
        if isinstance(each, Call) and getattr(each.op, "name", "") == "nn.conv2d"
    ]


def same(function, *inputs):
    """The function after the pass; results are whole numbers, so they are equal to the last bit."""
    found = chosen(function)
    for one, other in zip(np.atleast_1d(evaluate(found, inputs)), np.atleast_1d(evaluate(function, inputs))):
        np.testing.assert_array_equal(one, other)
    return found


def test_between_convolutions_of_one_pixel_channels_stay_together():
    x = relay.var("x", shape=(1, 16, 14, 14))
    y = relay.nn.relu(relay.nn.conv2d(x, weights(32, 16)))
    y = relay.nn.conv2d(relay.nn.bias_add(y, relay.const(numbers(32))), weights(16, 32))
    found = same(relay.Function([x], relay.nn.global_avg_pool2d(y)), numbers(1, 16, 14, 14))
    assert layouts(found) == [("NCHW", "NHWC"), ("NHWC", "NHWC")]
    # What is left to move is the result of the pool, and weights, which are folded.
    assert operators(found).count("layout_transform") == 3


def test_one_convolution_whose_result_is_given_back_stays():
    x = relay.var("x", shape=(1, 16, 9, 9))
    found = chosen(relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, weights(16, 16)))))
    assert layouts(found) == [("NCHW", "NCHW")]


def test_residual_sums_and_pools_follow():
    x = relay.var("x", shape=(1, 3, 32, 32))
    y = relay.nn.relu(relay.nn.conv2d(x, weights(16, 3, 3), padding=(1, 1)))
    y = relay.nn.max_pool2d(y, (3, 3), (2, 2), padding=(1, 1))
    z = relay.nn.conv2d(relay.nn.relu(relay.nn.conv2d(y, weights(32, 16))), weights(16, 32, seed=3))
    z = relay.nn.relu(relay.add(y, z))
    out = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(z))
    found = same(relay.Function([x], out), numbers(1, 3, 32, 32))
    assert layouts(found)[0] == ("NCHW", "NHWC"), "three planes are read as they are"
    assert set(layouts(found)[1:]) == {("NHWC", "NHWC")}


def test_concatenations_splits_and_slices():
    x = relay.var("x", shape=(1, 16, 12, 12))
    one = relay.nn.conv2d(x, weights(16, 16))
    two = relay.nn.conv2d(x, weights(32, 16, seed=2))
    joined = relay.concatenate([one, two], axis=1)
    parts = relay.split(relay.nn.conv2d(joined, weights(48, 48)), 3, axis=1)
    body = relay.nn.conv2d(relay.multiply(parts[0], relay.nn.relu(parts[2])), weights(16, 16))
    body = relay.strided_slice(body, (0, 2, 0, 0), (1, 9, 12, 12))
    same(relay.Function([x], relay.nn.global_avg_pool2d(body)), numbers(1, 16, 12, 12))


def test_depthwise_and_grouped_convolutions():
    x = relay.var("x", shape=(1, 32, 14, 14))
    y = relay.nn.conv2d(x, weights(32, 1, 3), padding=(1, 1), groups=32)
    y = relay.nn.conv2d(y, weights(64, 32))
    y = relay.nn.conv2d(relay.nn.conv2d(y, weights(32, 64)), weights(64, 8, 3, seed=2), groups=4, strides=(2, 2))
    found = same(relay.Function([x], relay.nn.global_max_pool2d(y)), numbers(1, 32, 14, 14))
    assert [len(set(pair)) for pair in layouts(found)][::3] == [1, 1], "groups do not mix layouts"
    assert layouts(found)[1][1] == layouts(found)[2][0] == "NHWC"


def test_what_has_no_rule_reads_planes():
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = relay.nn.conv2d(x, weights(16, 16))
    y = relay.reshape(relay.transpose(relay.reshape(y, (1, 4, 4, 8, 8)), (0, 2, 1, 3, 4)), (1, 16, 8, 8))
    y = relay.nn.conv2d(y, weights(16, 16, seed=2))
    same(relay.Function([x], relay.Tuple([y, relay.nn.relu(y)])), numbers(1, 16, 8, 8))


@pytest.mark.parametrize("filters", [relay.AnyDim(), 0])
def test_channels_may_be_unknown_or_none(filters):
    x, w = relay.var("x", shape=(1, 16, 8, 8)), relay.var("w", shape=(filters, 16, 1, 1))
    given = numbers(0 if filters == 0 else 5, 16, 1, 1)
    same(relay.Function([x, w], relay.nn.conv2d(x, w)), numbers(1, 16, 8, 8), given)


def test_few_channels_stay_in_planes():
    x = relay.var("x", shape=(1, 2, 30, 30))
    y = relay.nn.conv2d(relay.nn.conv2d(x, weights(2, 2, 3)), weights(2, 2, 3))
    assert set(layouts(chosen(relay.Function([x], relay.nn.relu(y))))) == {("NCHW", "NCHW")}


@pytest.mark.parametrize("level", [0, 3])
def test_compiled_it_computes_the_same(level):
    x = relay.var("x", shape=(1, 16, 14, 14))
    y = relay.nn.max_pool2d(relay.nn.conv2d(x, weights(32, 16, 3)), (2, 2), (2, 2))
    function = relay.Function([x], relay.nn.global_avg_pool2d(relay.nn.conv2d(y, weights(16, 32))))
    with PassContext(opt_level=level):
        model = relay.build(relay.IRModule.from_expr(function))
    np.testing.assert_allclose(
        model(numbers(1, 16, 14, 14)), evaluate(function, [numbers(1, 16, 14, 14)]), rtol=1e-6, atol=1e-3
    )
