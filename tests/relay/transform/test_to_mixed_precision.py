"""ToMixedPrecision: products narrow, delicate operators wide, the rest as what they are given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from loopwright import ir, relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import ToMixedPrecision, register_mixed_precision_conversion
from loopwright.relay.transform.to_mixed_precision import CONVERSIONS, NoPrecision
from tests.relay.transform.graphs import apply, assert_unchanged, function


def _x(*shape: int, name: str = "x") -> relay.Var:
    return relay.var(name, shape=shape or (3, 4))


def _half(value: Any) -> Any:
    return relay.cast(value, "float16")


def _becomes(before: Any, after: Any, **options: Any) -> relay.Function:
    found = apply(ToMixedPrecision(**options), before)
    ir.assert_structural_equal(found, function(after), map_free_vars=True)
    return found


def test_products_are_narrow():
    x, w = _x(), _x(5, 4, name="w")
    _becomes(relay.nn.dense(x, w), relay.nn.dense(_half(x), _half(w), out_dtype="float16"))


def test_what_follows_is_narrow_and_softmax_is_not():
    x, w, b = _x(), _x(5, 4, name="w"), _x(5, name="b")
    before = relay.nn.softmax(relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b, -1)))
    narrow = relay.nn.dense(_half(x), _half(w), out_dtype="float16")
    narrow = relay.nn.relu(relay.nn.bias_add(narrow, _half(b), -1))
    _becomes(before, relay.nn.softmax(relay.cast(narrow, "float32")))


def test_what_follows_nothing_narrow_stays():
    assert_unchanged(ToMixedPrecision(), relay.nn.relu(_x() + _x(name="y")))
    assert_unchanged(ToMixedPrecision(), relay.exp(_x()))


def test_a_value_is_converted_once():
    x, w = _x(4, 4), _x(4, 4, name="w")
    once = _half(x)
    narrow = relay.nn.dense(relay.nn.dense(once, _half(w), out_dtype="float16"), once, out_dtype="float16")
    _becomes(relay.nn.dense(relay.nn.dense(x, w), x), narrow)


def test_bfloat16():
    x, w = _x(), _x(5, 4, name="w")
    found = apply(ToMixedPrecision("bfloat16"), relay.nn.dense(x, w))
    assert str(found.body.checked_type.dtype) == "bfloat16"


def test_results_may_keep_their_types():
    x, w = _x(), _x(5, 4, name="w")
    with PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        found = apply(ToMixedPrecision(), relay.nn.dense(x, w))
    assert str(found.body.checked_type) == "Tensor[(3, 5), float32]"


def test_integers_stay():
    x, i = _x(), relay.var("i", shape=(3, 4), dtype="int32")
    assert_unchanged(ToMixedPrecision(), relay.Tuple([i + i, x]))
    table, w = _x(7, 4, name="t"), _x(5, 4, name="w")
    indices = relay.var("k", shape=(2,), dtype="int64")
    found = apply(ToMixedPrecision(), relay.take(relay.nn.dense(table, w), indices, axis=0))
    assert str(found.body.checked_type) == "Tensor[(2, 5), float16]"


def test_tuples_and_branches():
    x, w, c = _x(), _x(4, 4, name="w"), relay.var("c", "bool")
    narrow = relay.nn.dense(x, w)
    found = apply(ToMixedPrecision(), relay.concatenate([narrow, relay.nn.relu(narrow)], 0))
    assert str(found.body.checked_type.dtype) == "float16"
    found = apply(ToMixedPrecision(), relay.If(c, narrow, x))
    assert str(found.body.checked_type.dtype) == "float32"
    v = relay.var("v")
    found = apply(ToMixedPrecision(), relay.Let(v, narrow, relay.exp(v)))
    assert str(found.body.checked_type.dtype) == "float32"


def test_numbers_are_near():
    """A product of 4 terms in float16: 4 roundings of 2^-11 of what is summed."""
    x, w = _x(), _x(5, 4, name="w")
    before = function(relay.nn.dense(x, w))
    random = np.random.default_rng(0)
    data = [random.standard_normal(shape).astype("float32") for shape in ((3, 4), (5, 4))]
    found = evaluate(apply(ToMixedPrecision(), before), data)
    wanted = evaluate(before, data)
    room = (np.abs(data[0]) @ np.abs(data[1]).T) * 7 * 2.0**-11
    assert (np.abs(found.astype("float32") - wanted) <= room).all()


def test_operators_of_which_nothing_is_said():
    x = _x(5)
    body = relay.unique(x)[0]
    with pytest.raises(NoPrecision, match="nothing says in which type unique computes"):
        apply(ToMixedPrecision(missing_op_mode=0), body)
    with pytest.warns(UserWarning, match="unique"):
        apply(ToMixedPrecision(), body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply(ToMixedPrecision(missing_op_mode=2), body)
    with pytest.raises(ValueError, match="missing_op_mode is 0, 1 or 2, and not 3"):
        ToMixedPrecision(missing_op_mode=3)


def test_what_users_say():
    x, w = _x(), _x(5, 4, name="w")

    @register_mixed_precision_conversion("nn.dense")
    def dense(call: Any, narrow: str) -> list[Any]:
        return [0, "float32", narrow]

    try:
        wide = relay.nn.dense(_half(x), _half(w), out_dtype="float32")
        _becomes(relay.nn.dense(x, w), _half(wide))
    finally:
        del CONVERSIONS["nn.dense"]


def test_products_are_summed_up_in_a_wider_type():
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(5, 8))
    found = apply(ToMixedPrecision("bfloat16", accumulates="float32"), relay.nn.relu(relay.nn.dense(x, w)))
    narrow = found.body.args[0]
    assert str(found.body.checked_type.dtype) == "bfloat16"
    assert narrow.op.name == "cast" and narrow.args[0].attrs.out_dtype == "float32"
    assert [str(arg.checked_type.dtype) for arg in narrow.args[0].args] == ["bfloat16", "bfloat16"]
