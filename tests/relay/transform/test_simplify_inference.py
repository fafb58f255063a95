"""SimplifyInference: batch_norm as a product and a sum, dropout gone, quantized operators as plain ones."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.transform import SimplifyInference
from tests.relay.transform.graphs import (
    apply,
    assert_becomes,
    assert_same_results,
    assert_unchanged,
    function,
    operators,
)


def _var(name: str, *shape: int, dtype: str = "float64") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def _norm(axis: int, shape: tuple[int, ...], **options: object) -> relay.Expr:
    x = _var("x", *shape)
    size = shape[axis]
    gamma, beta, mean = (_var(name, size) for name in ("gamma", "beta", "mean"))
    var = relay.const(np.arange(1.0, size + 1), "float64")
    return relay.nn.batch_norm(x, gamma, beta, mean, var, axis=axis, **options)


def test_batch_norm_is_a_product_and_a_sum():
    before = function(_norm(1, (2, 3, 4, 5))[0])
    after = apply(SimplifyInference(), before)
    assert "nn.batch_norm" not in operators(after)
    assert isinstance(after.body, relay.Call) and after.body.op.name == "add"
    assert after.body.args[0].op.name == "multiply"
    assert_same_results(before, after, exact=False)


def test_batch_norm_along_other_axes():
    for axis, shape in [(-1, (2, 4, 3)), (0, (3, 2)), (1, (1, 1)), (2, (0, 2, 3))]:
        before = function(_norm(axis, shape)[0])
        assert_same_results(before, apply(SimplifyInference(), before), exact=False)


def test_batch_norm_without_scale_or_center():
    for options in ({"scale": False}, {"center": False}, {"scale": False, "center": False}):
        before = function(_norm(1, (2, 3, 4), **options)[0])
        assert_same_results(before, apply(SimplifyInference(), before), exact=False)


def test_all_results_of_batch_norm():
    before = function(relay.Tuple(list(_norm(1, (2, 3, 4)))))
    after = apply(SimplifyInference(), before)
    assert "nn.batch_norm" not in operators(after)
    assert_same_results(before, after, exact=False)


def test_dropout_is_nothing():
    x = _var("x", 3, 4)
    assert_becomes(SimplifyInference(), relay.exp(relay.nn.dropout(x, 0.3)), relay.exp(x))


def test_l2_normalize():
    x = _var("x", 3, 4)
    before = function(relay.nn.l2_normalize(x, eps=0.5, axis=[1]))
    after = apply(SimplifyInference(), before)
    assert "nn.l2_normalize" not in operators(after)
    assert_same_results(before, after, exact=False)


def test_inside_nested_functions_but_not_in_kernels():
    x, y = _var("x", 3), _var("y", 3)
    inner = relay.Function([y], relay.nn.dropout(y))
    assert operators(apply(SimplifyInference(), relay.Call(inner, [x]))) == []
    kernel = relay.Function([y], relay.nn.dropout(y), attrs={"Primitive": 1})
    assert_unchanged(SimplifyInference(), relay.Call(kernel, [x]))


def test_weights_without_a_type():
    """A variable whose type inference found keeps it."""
    x = _var("x", 2, 3, 4, dtype="float32")
    parameters = [relay.var(name) for name in ("gamma", "beta", "mean", "var")]
    after = apply(SimplifyInference(), relay.nn.batch_norm(x, *parameters)[0])
    assert [str(param.checked_type) for param in after.params][1:] == ["Tensor[(3), float32]"] * 4


def test_quantized_operators_become_plain_ones():
    x = _var("x", 2, 8, dtype="int8")
    w = _var("w", 4, 8, dtype="int8")
    half, zero = relay.const(0.5), relay.const(0)
    product = relay.qnn.op.dense(x, w, zero, zero, half, half, units=4)
    before = function(relay.qnn.op.requantize(product, relay.const(0.25), zero, relay.const(2.0), relay.const(3)))
    after = apply(SimplifyInference(), before)
    assert not any(name.startswith("qnn.") for name in operators(after))
    assert_same_results(before, after)
