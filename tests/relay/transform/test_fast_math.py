"""FastMath: shorter formulas, for float32 alone."""

from __future__ import annotations

from loopwright import ir, relay
from loopwright.relay.transform import FastMath
from tests.relay.transform.graphs import apply, assert_unchanged, function


def test_functions_by_shorter_formulas():
    x = relay.var("x", shape=(3, 4))
    before = relay.nn.softmax(relay.erf(relay.tanh(relay.exp(x))), axis=0)
    after = relay.nn.fast_softmax(relay.fast_erf(relay.fast_tanh(relay.fast_exp(x))), axis=0)
    ir.assert_structural_equal(apply(FastMath(), before), function(after), map_free_vars=True)


def test_other_types_stay():
    x = relay.var("x", shape=(3, 4), dtype="float64")
    assert_unchanged(FastMath(), relay.exp(x))
