"""Operators on quantized tensors: against real arithmetic on the numbers that the integers stand for."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op.qnn.requantize import fraction_and_shift
from loopwright.relay.op.registry import Op, list_op_names

qnn = relay.qnn.op
HAS = set(list_op_names())


def typed(expression, *params):
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(list(params), expression)))


def run(expression, values):
    """The value by reference; and again after the operators were taken apart, which must be the same."""
    module = typed(expression, *values)
    whole = evaluate(module["main"], list(values.values()))
    parts = relay.transform.InferType()(relay.qnn.transform.CanonicalizeOps()(module))
    again = evaluate(parts["main"], list(values.values()))
    assert np.array_equal(whole, again)
    return whole


def var(name, shape, dtype):
    return relay.var(name, shape=shape, dtype=dtype)


def scale(value):
    return relay.const(np.asarray(value, "float32"), "float32")


def zero(value):
    return relay.const(np.asarray(value, "int32"), "int32")


def test_quantize():
    x = var("x", (8,), "float32")
    a = np.array([-100, -0.26, -0.25, 0, 0.2, 0.25, 0.74, 100], "float32")
    made = run(qnn.quantize(x, scale(0.5), zero(3), out_dtype="uint8"), {x: a})
    assert made.dtype == "uint8" and made.tolist() == [0, 2, 2, 3, 3, 4, 4, 203]
    made = run(qnn.quantize(x, scale(0.5), zero(0)), {x: a})
    assert made.tolist() == [-128, -1, -1, 0, 0, 1, 1, 127]
    assert run(qnn.quantize(x, scale(1e-9), zero(0), out_dtype="int32"), {x: a})[-1] == 2**31 - 128


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_along_an_axis_and_back(axis):
    x = var("x", (3, 3), "float32")
    a = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)
    scales, zeros = np.array([0.1, 0.01, 0.5], "float32"), np.array([0, 3, -7])
    wide = np.expand_dims(scales, 1 - axis % 2), np.expand_dims(zeros, 1 - axis % 2)
    q = run(qnn.quantize(x, scale(scales), zero(zeros), axis=axis), {x: a})
    rounded = np.trunc(a / wide[0] + np.copysign(0.5, a))
    assert np.array_equal(q, np.clip(rounded + wide[1], -128, 127))
    y = var("y", (3, 3), "int8")
    real = run(qnn.dequantize(y, scale(scales), zero(zeros), axis=axis), {y: q})
    np.testing.assert_array_equal(real, ((q.astype("int32") - wide[1]) * wide[0]).astype("float32"))


def test_the_fraction_of_a_scale():
    for ratio in (0.5, 1.0, 1 / 3, 0.999999999999, 2.0**-20, 77.5):
        fraction, shift = fraction_and_shift(ratio)
        assert 2**30 <= fraction < 2**31
        assert abs(fraction / 2.0**shift / ratio - 1) <= 2.0**-31


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("compute_dtype", ["int64", "float64"])
def test_requantize_rounds_halves(rounding, compute_dtype):
    x = var("x", (7,), "int32")
    a = np.array([-6, -5, -3, -1, 1, 3, 5], "int32")
    call = qnn.requantize(
        x, scale(0.5), zero(0), scale(1.0), zero(0), rounding=rounding, compute_dtype=compute_dtype, out_dtype="int32"
    )
    expected = [-3, -2, -1, 0, 1, 2, 3] if rounding == "UPWARD" else [-3, -3, -2, -1, 1, 2, 3]
    assert run(call, {x: a}).tolist() == expected


def test_requantize_config():
    x = var("x", (2,), "int32")
    args = (x, scale(0.5), zero(0), scale(1.0), zero(0))
    assert qnn.requantize(*args).attrs.rounding == "UPWARD"
    with qnn.requantize_config(rounding="TONEAREST"):
        assert qnn.requantize(*args).attrs.rounding == "TONEAREST"
        assert qnn.requantize(*args, rounding="UPWARD").attrs.rounding == "UPWARD"
    assert qnn.requantize(*args).attrs.rounding == "UPWARD"
    with pytest.raises(TypeError, match="rounding is 'DOWN'"):
        qnn.requantize(*args, rounding="DOWN")


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_requantize_with_scales_known_when_it_runs(rounding):
    """The kernel takes scales apart as the constants of the graph were."""
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**20), 2**20, (4, 5)).astype("int32")
    scales = rng.random(5).astype("float32") * 1e-3, np.array([1, -2, 3, 0, 7], "int32")
    others = np.array(0.0317, "float32"), np.array(5, "int32")
    attrs = Op.get("qnn.requantize").attributes(axis=1, rounding=rounding)
    arrays = [x, *scales, *others]
    inputs = [te.placeholder(one.shape, str(one.dtype), f"p{k}") for k, one in enumerate(arrays)]
    out = np.zeros((4, 5), "int8")
    lw.build([*inputs, attrs.compute(*inputs)])(*arrays, out)
    assert np.array_equal(out, attrs.reference(*arrays))
    v = var("x", (4, 5), "int32")
    call = qnn.requantize(v, scale(scales[0]), zero(scales[1]), scale(others[0]), zero(5), axis=1, rounding=rounding)
    assert np.array_equal(out, run(call, {v: x}))


def test_sums_and_products():
    x, y = var("x", (2, 3), "uint8"), var("y", (3,), "uint8")
    a = np.array([[0, 100, 255], [3, 30, 200]], "uint8")
    b = np.array([7, 70, 250], "uint8")
    args = (x, y, scale(0.1), zero(3), scale(0.2), zero(5), scale(0.4), zero(10))
    left, right = (a.astype("float64") - 3) * 0.1, (b.astype("float64") - 5) * 0.2
    for call, exact in ((qnn.add, left + right), (qnn.subtract, left - right), (qnn.mul, left * right)):
        got = run(call(*args), {x: a, y: b})
        assert got.dtype == "uint8"
        # A sum is rounded twice, once for each operand; a product once.
        assert (np.abs(got - np.clip(exact / 0.4 + 10, 0, 255)) <= (0.501 if call is qnn.mul else 1.001)).all()


def test_concatenate():
    x, y = var("x", (2,), "int8"), var("y", (3,), "int8")
    values = {x: np.array([1, 2], "int8"), y: np.array([10, 20, 100], "int8")}
    call = qnn.concatenate([x, y], [scale(1.0), scale(2.0)], [zero(0), zero(1)], scale(2.0), zero(1), axis=0)
    assert run(call, values).tolist() == [2, 2, 10, 20, 100]
    with pytest.raises(ValueError, match="nothing to join"):
        qnn.concatenate([], [], [], scale(1.0), zero(0), axis=0)


@pytest.mark.parametrize("name", "tanh exp sqrt rsqrt erf abs sigmoid log hardswish".split())
def test_functions_of_one_tensor(name):
    functions = {"rsqrt": lambda v: 1 / np.sqrt(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v))}
    functions["hardswish"] = lambda v: v * np.clip(v + 3, 0, 6) / 6
    functions["erf"] = np.vectorize(__import__("math").erf)
    x, a = var("x", (4,), "uint8"), np.array([1, 5, 20, 100], "uint8")
    got = run(getattr(qnn, name)(x, scale(0.03), zero(0), scale(0.05), zero(100)), {x: a})
    real = functions.get(name) or getattr(np, name)
    exact = real(a * 0.03) / 0.05 + 100
    assert (np.abs(got - np.clip(exact, 0, 255)) <= 0.501).all()


def test_leaky_relu():
    x, a = var("x", (4,), "int8"), np.array([-100, -10, 0, 50], "int8")
    got = run(qnn.leaky_relu(x, 0.1, scale(0.1), zero(0), scale(0.1), zero(0)), {x: a})
    assert got.tolist() == [-10, -1, 0, 50]


@pytest.mark.parametrize("input_zero", [0, 5])
@pytest.mark.parametrize("kernel_zero", [0, 3, [1, 0, -2, 4]])
def test_dense(input_zero, kernel_zero):
    if "nn.dense" not in HAS:
        pytest.skip("nn.dense is not there")
    rng = np.random.default_rng(1)
    x, w = var("x", (2, 7), "uint8"), var("w", (4, 7), "int8")
    a, b = rng.integers(0, 256, (2, 7)).astype("uint8"), rng.integers(-128, 128, (4, 7)).astype("int8")
    got = run(qnn.dense(x, w, zero(input_zero), zero(kernel_zero), scale(0.1), scale(0.2), 4), {x: a, w: b})
    away = b.astype("int64") - np.reshape(kernel_zero, (-1, 1))
    assert np.array_equal(got, (a.astype("int64") - input_zero) @ away.T)


def test_batch_matmul():
    if "nn.batch_matmul" not in HAS:
        pytest.skip("nn.batch_matmul is not there")
    rng = np.random.default_rng(2)
    x, y = var("x", (2, 3, 5), "int8"), var("y", (2, 4, 5), "int8")
    a, b = [rng.integers(-128, 128, shape).astype("int8") for shape in ((2, 3, 5), (2, 4, 5))]
    for zeros in ((0, 0), (3, -4)):
        got = run(qnn.batch_matmul(x, y, zero(zeros[0]), zero(zeros[1]), scale(1.0), scale(1.0)), {x: a, y: b})
        exact = (a.astype("int64") - zeros[0]) @ (b.astype("int64") - zeros[1]).transpose(0, 2, 1)
        assert np.array_equal(got, exact)


@pytest.mark.parametrize(
    ("layouts", "groups", "input_zero", "kernel_zero"),
    [
        (("NCHW", "OIHW"), 1, 0, 0),
        (("NCHW", "OIHW"), 1, 7, 0),
        (("NCHW", "OIHW"), 1, 7, 2),
        (("NCHW", "OIHW"), 1, 7, [1, 0, 2, 5]),
        (("NHWC", "HWIO"), 1, 7, 0),
        (("NCHW", "OIHW"), 2, 7, 0),
        (("NCHW", "OIHW"), 4, 7, 0),
    ],
)
def test_conv2d(layouts, groups, input_zero, kernel_zero):
    if not {"nn.conv2d", "nn.pad"} <= HAS:
        pytest.skip("nn.conv2d is not there")
    from loopwright.topi.testing import conv2d_nchw_python

    rng = np.random.default_rng(3)
    a = rng.integers(0, 256, (1, 4, 6, 5)).astype("uint8")
    b = rng.integers(-128, 128, (4, 4 // groups, 3, 3)).astype("int8")
    away = b.astype("int64") - np.reshape(kernel_zero, (-1, 1, 1, 1))
    exact = conv2d_nchw_python(a.astype("int64") - input_zero, away, 1, 1, groups)
    data, weight = a, b
    if layouts[0] == "NHWC":
        data, weight, exact = (
            a.transpose(0, 2, 3, 1).copy(),
            b.transpose(2, 3, 1, 0).copy(),
            exact.transpose(0, 2, 3, 1),
        )
    x, w = var("x", data.shape, "uint8"), var("w", weight.shape, "int8")
    call = qnn.conv2d(
        x,
        w,
        zero(input_zero),
        zero(kernel_zero),
        scale(0.1),
        scale(0.2),
        (3, 3),
        4,
        padding=(1, 1),
        groups=groups,
        data_layout=layouts[0],
        kernel_layout=layouts[1],
    )
    got = run(call, {x: data, w: weight})
    assert got.dtype == "int32" and np.array_equal(got, exact)


def test_simulated_quantization():
    x, kind = var("x", (3,), "float32"), var("kind", (), "int32")
    a = np.array([-300.0, 0.26, 300.0], "float32")
    call = qnn.simulated_quantize(x, kind, scale(0.5), zero(1))
    for code, expected in ((-1, a.tolist()), (0, [-128, 2, 127]), (1, [0, 2, 255]), (2, [-599, 2, 601])):
        assert run(call, {x: a, kind: np.array(code, "int32")}).tolist() == expected
    back = qnn.simulated_dequantize(x, kind, scale(0.5), zero(1))
    assert run(back, {x: np.array([1, 2, 4], "float32"), kind: np.array(0, "int32")}).tolist() == [0, 0.5, 1.5]
    assert run(back, {x: a, kind: np.array(-1, "int32")}).tolist() == a.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: qnn.quantize(x, scale(1.0), zero(0)), "takes real numbers"),
        (lambda x: qnn.dequantize(x, zero(1), zero(0)), "the scale is int32"),
        (lambda x: qnn.dequantize(x, scale([1.0, 2.0]), zero(0)), "the scale has 2 numbers, and axis -1"),
        (lambda x: qnn.dequantize(x, scale([[1.0]]), zero(0)), "give one number, or one a place"),
        (lambda x: qnn.requantize(relay.exp(x), scale(1.0), zero(0), scale(1.0), zero(0)), "takes integers"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    x = var("x", (2, 3), "int8" if "real" in message or "scale" in message or "give" in message else "float32")
    with pytest.raises(relay.DiagnosticError, match=message):
        typed(call(x), x)


def test_operators_are_found_in_the_package_too():
    assert relay.qnn.quantize is relay.qnn.op.quantize
    assert relay.qnn.requantize_config is relay.qnn.op.requantize_config
    with pytest.raises(AttributeError, match="nothing"):
        relay.qnn.nothing
