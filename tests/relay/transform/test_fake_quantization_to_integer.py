"""FakeQuantizationToInteger: islands of real numbers become integers; results differ by one step at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import FakeQuantizationToInteger
from loopwright.relay.transform.fake_quantization_to_integer import NoIntegerRule
from tests.relay.transform.graphs import apply, assert_unchanged, function, operators

q = relay.qnn.op
RANDOM = np.random.default_rng(0)


def _x(*shape: int, dtype: str = "int8", name: str = "x") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def _real(x: Any, scale: float = 0.5, zero: int = 3) -> Any:
    return q.dequantize(x, relay.const(scale), relay.const(zero))


def _stored(y: Any, scale: float = 2.0, zero: int = -5, dtype: str = "int8") -> Any:
    return q.quantize(y, relay.const(scale), relay.const(zero), out_dtype=dtype)


def _weight(*shape: int) -> relay.Constant:
    return relay.const(RANDOM.integers(-7, 8, shape), "int8")


def _becomes_integer(before: Any, expected: str, steps: int = 1) -> relay.Function:
    """No real number is left; each stored integer is the one of real arithmetic, or its neighbour."""
    first = function(before)
    found = apply(FakeQuantizationToInteger(hard_fail=True), first)
    names = operators(found)
    assert "qnn.dequantize" not in names and "qnn.quantize" not in names
    assert expected in names
    arguments = []
    for param in first.params:
        of = param.checked_type
        low, high = (0, 256) if str(of.dtype) == "uint8" else (-128, 128)
        arguments.append(RANDOM.integers(low, high, of.concrete_shape).astype(of.dtype.numpy()))
    one, other = evaluate(first, arguments), evaluate(found, arguments)
    assert one.dtype == other.dtype and one.shape == other.shape
    assert np.abs(one.astype("int64") - other.astype("int64")).max() <= steps
    return found


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_convolution(dtype: str):
    x = _x(1, 4, 6, 6, dtype=dtype)
    conv = relay.nn.conv2d(_real(x), _real(_weight(8, 4, 3, 3), 0.25, 0), padding=(1, 1))
    found = _becomes_integer(_stored(relay.nn.relu(conv), dtype=dtype, zero=3), "qnn.conv2d")
    assert operators(found) == ["clip", "qnn.conv2d", "qnn.requantize"]


def test_a_convolution_with_a_scale_for_each_channel_and_a_bias():
    x = _x(1, 4, 6, 6)
    scales = relay.const(2.0 ** -np.arange(1, 9).astype("float32"))
    weight = q.dequantize(_weight(8, 4, 3, 3), scales, relay.const(0), axis=0)
    conv = relay.nn.conv2d(_real(x), weight)
    bias = q.dequantize(
        relay.const(RANDOM.integers(-500, 500, 8), "int32"), relay.const(scales.data * 0.5), relay.const(0), axis=0
    )
    found = _becomes_integer(_stored(relay.nn.bias_add(conv, bias)), "nn.bias_add")
    assert operators(found) == ["nn.bias_add", "qnn.conv2d", "qnn.requantize"]


def test_a_bias_of_real_numbers():
    x = _x(3, 8)
    dense = relay.nn.dense(_real(x), _real(_weight(5, 8), 0.25, 0))
    bias = relay.const(RANDOM.standard_normal(5).astype("float32"))
    assert operators(_becomes_integer(_stored(relay.nn.bias_add(dense, bias, -1)), "qnn.dense"))[0] == "nn.bias_add"
    assert operators(_becomes_integer(_stored(dense + bias), "qnn.dense"))[0] == "add"


def test_products_of_batches():
    x, y = _x(2, 3, 4), _x(2, 5, 4, name="y")
    _becomes_integer(_stored(relay.nn.batch_matmul(_real(x), _real(y, 0.25, 0)), 16.0), "qnn.batch_matmul")


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_two_tensors(name: str):
    x, y = _x(3, 4), _x(3, 4, name="y")
    result = getattr(relay, name)(_real(x), _real(y, 0.25, 1))
    scale = 64.0 if name == "multiply" else 1.0
    # Both operands of a sum are rounded to the scale of the result, and so is the result.
    _becomes_integer(_stored(result, scale), {"multiply": "qnn.mul"}.get(name, f"qnn.{name}"), steps=2)


def test_a_sum_and_relu():
    x, y = _x(3, 4), _x(3, 4, name="y")
    _becomes_integer(_stored(relay.nn.relu(_real(x) + _real(y))), "qnn.add", steps=2)


def test_numbers_that_are_moved():
    x = _x(2, 3, 4, 4)
    real = _real(x)
    for moved in (
        relay.reshape(real, (6, 16)),
        relay.transpose(real, (0, 2, 3, 1)),
        relay.nn.max_pool2d(real, (2, 2), (2, 2)),
        relay.strided_slice(real, (0, 0), (2, 2)),
        relay.clip(real, -3.0, 6.0),
        relay.nn.batch_flatten(real),
    ):
        _becomes_integer(_stored(moved), "qnn.requantize")


def test_the_same_scale_needs_no_requantize():
    x = _x(2, 6)
    found = apply(FakeQuantizationToInteger(), _stored(relay.reshape(_real(x, 0.5, 3), (3, 4)), 0.5, 3))
    assert operators(found) == ["reshape"]


def test_cells_around():
    x = _x(1, 2, 4, 4)
    padded = relay.nn.pad(_real(x), ((0, 0), (0, 0), (1, 1), (1, 1)))
    found = _becomes_integer(_stored(padded), "nn.pad")
    assert next(call for call in _calls(found) if call.op.name == "nn.pad").args[1].data == 3


def _calls(found: relay.Function) -> list[relay.Call]:
    from loopwright.relay.visitor import post_order

    return [each for each in post_order(found.body) if isinstance(each, relay.Call)]


def test_joins():
    x, y = _x(2, 3), _x(2, 3, name="y")
    _becomes_integer(_stored(relay.concatenate([_real(x), _real(y, 0.25, 1)], 1)), "concatenate")


def test_means():
    x = _x(1, 3, 4, 4)
    _becomes_integer(_stored(relay.nn.global_avg_pool2d(_real(x)), 0.5), "sum")
    _becomes_integer(_stored(relay.mean(_real(x), axis=(2, 3)), 0.5), "sum")
    _becomes_integer(_stored(relay.nn.avg_pool2d(_real(x), (2, 2), (2, 2)), 0.5), "qnn.avg_pool2d")


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "abs", "erf"])
def test_functions_of_one_tensor(name: str):
    _becomes_integer(_stored(getattr(relay, name)(_real(_x(3, 4), 0.03125)), 0.0078125, 0), f"qnn.{name}")


def test_several_islands():
    x = _x(1, 4, 6, 6)
    conv = relay.nn.conv2d(_real(x), _real(_weight(4, 4, 1, 1), 0.25, 0))
    middle = _stored(conv, 1.0, 0)
    again = relay.nn.conv2d(_real(middle, 1.0, 0), _real(_weight(4, 4, 1, 1), 0.25, 0))
    found = apply(FakeQuantizationToInteger(), _stored(again, 4.0, 1))
    assert operators(found).count("qnn.conv2d") == 2 and "qnn.dequantize" not in operators(found)


def test_an_operator_without_a_rule():
    island = _stored(relay.cos(_real(_x(3))))
    assert_unchanged(FakeQuantizationToInteger(), island)
    with pytest.raises(NoIntegerRule, match="cos stands between dequantize and quantize"):
        apply(FakeQuantizationToInteger(hard_fail=True), island)


def test_a_rule_of_the_users():
    from loopwright.relay.transform import register_fake_quantization_to_integer
    from loopwright.relay.transform.fake_quantization.affine import Quantized
    from loopwright.relay.transform.fake_quantization.rules import RULES

    @register_fake_quantization_to_integer("negative")
    def negative(call: Any, args: Any, wanted: Any) -> Any:
        return Quantized(relay.negative(args[0].expr), args[0].affine) if args[0].affine.has_no_zero_point else None

    try:
        found = apply(FakeQuantizationToInteger(), _stored(relay.negative(_real(_x(3), 0.5, 0)), 0.5, 0))
        assert operators(found) == ["negative"]
    finally:
        del RULES["negative"]


def test_the_end_of_a_graph():
    x = _x(1, 4, 6, 6)
    conv = relay.nn.conv2d(_real(x), _real(_weight(4, 4, 3, 3), 0.25, 0))
    assert_unchanged(FakeQuantizationToInteger(), conv)
    before = function(conv)
    found = apply(FakeQuantizationToInteger(use_qat=True), before)
    assert operators(found) == ["qnn.conv2d", "qnn.dequantize"]
    data = RANDOM.integers(-128, 128, (1, 4, 6, 6)).astype("int8")
    np.testing.assert_array_equal(evaluate(before, [data]), evaluate(found, [data]))  # scales are powers of 2
