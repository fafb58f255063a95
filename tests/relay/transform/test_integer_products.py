"""IntegerProducts: products are sums of integers, what follows has the scale of the quantize; no rounding is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import IntegerProducts
from loopwright.relay.transform.pipeline import optimize
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import apply, assert_unchanged, function, operators

q = relay.qnn.op
RANDOM = np.random.default_rng(0)


def _real(x: Any, scale: Any = 0.5, zero: int = 0, axis: int = -1) -> Any:
    return q.dequantize(x, relay.const(np.asarray(scale, "float32")), relay.const(zero), axis=axis)


def _stored(y: Any, scale: float = 2.0, zero: int = 0, dtype: str = "uint8") -> Any:
    return q.quantize(y, relay.const(scale), relay.const(zero), out_dtype=dtype, rounding="TONEAREST_EVEN")


def _layer(x: Any, filters: int, channels: int, size: int = 3) -> Any:
    weight = relay.const(RANDOM.integers(-7, 8, (filters, channels, size, size)), "int8")
    scales = RANDOM.uniform(0.1, 0.3, filters)
    return relay.nn.conv2d(x, _real(weight, scales, axis=0), padding=(size // 2, size // 2))


def _x(*shape: int, dtype: str = "uint8", name: str = "x") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def _same(before: Any) -> relay.Function:
    """The integers are those of real arithmetic but for ties that another rounding decides: one step at most."""
    first = function(before)
    found = apply(IntegerProducts(), first)
    arguments = []
    for param in first.params:
        of = param.checked_type
        low, high = (0, 256) if str(of.dtype) == "uint8" else (-128, 128)
        arguments.append(RANDOM.integers(low, high, of.concrete_shape).astype(of.dtype.numpy()))
    one, other = evaluate(first, arguments), evaluate(found, arguments)
    assert one.dtype == other.dtype and one.shape == other.shape
    off = np.abs(one.astype("float64") - other.astype("float64"))
    if one.dtype.kind == "f":
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-4)
    else:
        assert off.max() <= 1 and (off > 0).mean() < 0.01
        assert len(np.unique(one)) > 5  # not all of it at the limits
    return found


def _bias(channels: int) -> Any:
    return relay.const(RANDOM.uniform(-1, 1, (channels, 1, 1)).astype("float32"))


def test_a_convolution_with_bias_and_relu_divides_no_element():
    found = _same(_stored(relay.nn.relu(_layer(_real(_x(1, 4, 6, 6)), 8, 4) + _bias(8)), 3.0))
    names = operators(found)
    assert names == ["add", "cast", "cast", "clip", "multiply", "qnn.conv2d", "rint"]


@pytest.mark.parametrize("zero", [0, 7])
def test_a_residual_sum_and_zero_points(zero: int):
    x, y = _x(1, 4, 5, 5, dtype="int8"), _x(1, 8, 5, 5, name="y")
    total = relay.nn.relu(_layer(_real(x, 0.5, zero), 8, 4) + _bias(8) + _real(y, 0.25, 3))
    found = _same(_stored(total, 0.4, zero, "uint8"))
    assert not {"qnn.quantize", "divide"} & {*operators(found)}


def test_a_quantize_moves_before_a_pool_and_a_join():
    x = _x(1, 4, 8, 8)
    one = relay.nn.relu(_layer(_real(x), 8, 4))
    pooled = relay.nn.max_pool2d(one, (2, 2), (2, 2))
    found = _same(_stored(pooled))
    pools = [each for each in post_order(found.body) if isinstance(each, relay.Call) and "pool" in each.op.name]
    assert [str(each.checked_type.dtype) for each in pools] == ["uint8"]
    joined = relay.concatenate([relay.nn.relu(_layer(_real(x), 8, 4)), _real(x, 0.25)], axis=1)
    found = _same(_stored(joined))
    assert str(found.body.args[0].fields[0].checked_type.dtype) == "uint8"


def test_any_operator_may_stand_between():
    x = _x(1, 4, 5, 5)
    found = _same(_stored(relay.sigmoid(_layer(_real(x, 0.01), 8, 4)) * relay.const(100.0), 0.5))
    assert "qnn.conv2d" in operators(found)
    clipped = relay.clip(_layer(_real(x), 8, 4) * relay.const(0.5), -20.0, 50.0) - _real(_x(1, 8, 5, 5, name="y"))
    assert "divide" not in operators(_same(_stored(clipped, 1.0, 100)))


def test_zero_points_of_channels_beside_one_scale():
    x = _x(1, 4, 5, 5)
    zeros = relay.const(np.array([1, 2, 3, 4], "int32"))
    shifted = q.dequantize(x, relay.const(0.5), zeros, axis=1)
    assert "qnn.dequantize" not in operators(_same(_stored(shifted + _real(_x(1, 4, 5, 5, name="y")))))


def test_a_product_that_nobody_quantizes_is_scaled():
    x = _x(3, 16)
    weight = relay.const(RANDOM.integers(-7, 8, (5, 16)), "int8")
    assert operators(_same(relay.nn.dense(_real(x), _real(weight)))) == ["qnn.dense", "qnn.dequantize"]


def test_a_value_with_other_uses_is_computed_once():
    x = _x(1, 4, 5, 5)
    both = relay.nn.relu(_layer(_real(x), 8, 4))
    first = function(relay.Tuple([_stored(both), both]))
    found = apply(IntegerProducts(), first)
    assert operators(found).count("qnn.conv2d") == 1


def test_what_it_leaves_alone():
    x = relay.var("x", shape=(1, 4, 5, 5))
    assert_unchanged(IntegerProducts(), _stored(x))
    assert_unchanged(IntegerProducts(), relay.nn.relu(x))
    assert_unchanged(IntegerProducts(), _stored(relay.nn.max_pool2d(_real(_x(1, 4, 6, 6)), (2, 2))))


def test_a_residual_block_is_one_kernel_a_convolution_and_runs_as_it_should():
    x = _x(1, 8, 7, 7)
    one = _real(_stored(relay.nn.relu(_layer(_real(x), 16, 8) + _bias(16)), 3.0), 3.0)
    two = _stored(relay.nn.relu(_layer(one, 8, 16, 1) + _real(x)), 4.0)
    mod = relay.IRModule.from_expr(relay.Function([x], two))
    lib = relay.build(mod, target="llvm")
    assert len(lib.program.launches()) == 2
    given = RANDOM.integers(0, 256, (1, 8, 7, 7)).astype("uint8")
    fused = optimize(relay.transform.InferType()(mod))
    np.testing.assert_array_equal(lib.run([given])[0], evaluate(fused["main"], [given], fused))
