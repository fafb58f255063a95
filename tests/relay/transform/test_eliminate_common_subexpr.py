"""EliminateCommonSubexpr: equal calls are one call."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.transform import EliminateCommonSubexpr
from tests.relay.transform.graphs import apply, assert_becomes, assert_unchanged


def _x(*shape: int) -> relay.Var:
    return relay.var("x", shape=shape or (3, 4))


def test_the_same_call_twice():
    x = _x()
    shared = relay.exp(x)
    assert_becomes(EliminateCommonSubexpr(), relay.exp(x) + relay.exp(x), shared + shared)


def test_chains_of_the_same_calls():
    x = _x()
    shared = relay.nn.relu(relay.exp(x) + relay.const(1.0))
    other = relay.nn.relu(relay.exp(x) + relay.const(1.0))
    assert_becomes(EliminateCommonSubexpr(), shared * other, shared * shared)


def test_attributes_tell_calls_apart():
    x = _x()
    one, two = (relay.sum(x, axis=axis, keepdims=True) for axis in (0, 1))
    assert_unchanged(EliminateCommonSubexpr(), one + two)


def test_types_of_attributes_tell_calls_apart():
    x = _x()
    assert_unchanged(EliminateCommonSubexpr(), relay.clip(x, 0.0, 6.0) + relay.clip(x, 0.0, 5.0))


def test_large_constants_are_compared_by_object():
    x = _x()
    one, two = relay.const(np.ones(4)), relay.const(np.ones(4))
    assert_unchanged(EliminateCommonSubexpr(), (x + one) * (x + two))
    shared = x + one
    assert_becomes(EliminateCommonSubexpr(), (x + one) * (x + one), shared * shared)


def test_fields_and_tuples():
    x = _x(4, 4)
    one, two = relay.split(x, 2), relay.split(x, 2)
    shared = one[0]
    assert_becomes(EliminateCommonSubexpr(), one[0] + two[0], shared + shared)
    joined = relay.concatenate([x, x], 0)
    assert_becomes(EliminateCommonSubexpr(), joined + relay.concatenate([x, x], 0), joined + joined)


def test_those_to_skip():
    x = _x()
    skip = EliminateCommonSubexpr(lambda call: call.op.name == "exp")
    assert_unchanged(skip, relay.exp(x) + relay.exp(x))


def test_calls_without_arguments_stay():
    assert_unchanged(EliminateCommonSubexpr(), relay.zeros((3,), "float32") + relay.zeros((3,), "float32"))


def test_branches_share_with_what_comes_before_only():
    c, x = relay.var("c", "bool"), _x()
    before = relay.If(c, relay.exp(x), relay.exp(x) + relay.const(1.0))
    found = apply(EliminateCommonSubexpr(), before).body
    assert found.true_branch is not found.false_branch.args[0]


def test_functions_share_nothing():
    x, y = _x(), relay.var("y", shape=(3, 4))
    inner = relay.Function([y], relay.exp(y))
    found = apply(EliminateCommonSubexpr(), relay.Call(inner, [x]) + relay.exp(x))
    assert found.body.args[1].op.name == "exp"
