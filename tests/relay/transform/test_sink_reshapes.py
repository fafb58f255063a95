"""SinkReshapes: what follows a product element by element comes before the reshape of it."""

from __future__ import annotations

from loopwright import relay
from loopwright.relay.transform import SinkReshapes
from tests.relay.transform.graphs import assert_becomes, assert_unchanged

X, W = relay.var("x", shape=(6, 4)), relay.var("w", shape=(5, 4))
BIAS, REST = relay.var("bias", shape=(1, 5)), relay.var("rest", shape=(2, 3, 5))


def reshaped(x, *shape):
    return relay.reshape(x, shape, allowzero=True)


def product():
    return reshaped(relay.nn.dense(X, W), 2, 3, 5)


def test_bias_activation_and_residual_follow_the_product():
    sum_ = relay.add(product(), BIAS)
    before = relay.add(REST, relay.multiply(sum_, relay.tanh(sum_)))
    flat = relay.add(relay.nn.dense(X, W), reshaped(BIAS, 5))
    after = relay.add(reshaped(REST, 6, 5), relay.multiply(flat, relay.tanh(flat)))
    found = relay.Function([X, W, BIAS, REST], before)
    assert_becomes(SinkReshapes(), found, reshaped(after, 2, 3, 5))


def test_what_is_repeated_along_a_parted_axis_stays():
    assert_unchanged(SinkReshapes(), relay.add(product(), relay.var("row", shape=(3, 1))))


def test_other_reshapes_and_operators_with_axes_stay():
    assert_unchanged(SinkReshapes(), relay.tanh(reshaped(X, 2, 3, 4)))
    assert_unchanged(SinkReshapes(), relay.nn.bias_add(product(), relay.var("b", shape=(3,)), axis=1))
    assert_unchanged(SinkReshapes(), relay.add(relay.var("more", shape=(4, 2, 3, 5)), product()))
