"""Quantised operators: exact, in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadNode
from tests.frontends.onnx.one_node import compare, one_node
from tests.frontends.onnx.onnx_models import random

RANDOM = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "uint8") -> np.ndarray:
    bounds = np.iinfo(dtype)
    return RANDOM.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


def found(op: str, inputs: list[Any], runner: Any = interpreted, **options: Any) -> np.ndarray:
    graph, feed = one_node(op, inputs, **options)
    return CompiledModel(graph, make_runner=runner).run(feed)[0]


def real(x: np.ndarray, scale: Any, zero: Any) -> np.ndarray:
    return (x.astype(np.float64) - np.float64(zero)) * np.float64(np.float32(scale))


def whole(x: np.ndarray, scale: float, zero: Any) -> np.ndarray:
    bounds = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / np.float64(np.float32(scale))) + zero, bounds.min, bounds.max).astype(zero.dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_halves_go_to_the_even_integer(dtype):
    x = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9])
    zero = np.array(3, dtype)
    np.testing.assert_array_equal(found("QuantizeLinear", [x, np.float32(1), zero]), whole(x, 1.0, zero))


def test_scales_along_an_axis_and_in_blocks():
    x = random(2, 3, 4) * 20
    compare("QuantizeLinear", [x, np.float32([0.3, 1, 2]), np.uint8([1, 2, 3])], axis=1)
    compare("DequantizeLinear", [numbers(2, 3, 4), np.float32([0.3, 1, 2]), np.uint8([1, 2, 3])], axis=-2)
    blocks = np.float32(np.arange(1, 13)).reshape(2, 3, 2)
    compare("QuantizeLinear", [x, blocks], axis=2, block_size=2, output_dtype=3)
    compare("DequantizeLinear", [numbers(2, 3, 4, dtype="int8"), blocks], axis=2, block_size=2)


def test_float16_scales():
    compare("DequantizeLinear", [numbers(4), np.float16(0.5), np.uint8(3)])
    compare("QuantizeLinear", [random(4, dtype="float16"), np.float16(0.25)], output_dtype=3)


def test_dynamic_quantisation():
    for x in (random(3, 4) * 5, np.abs(random(3, 4)), np.zeros((2, 2), np.float32)):
        graph, feed = one_node("DynamicQuantizeLinear", [x], 3)
        y, scale, zero = CompiledModel(graph, make_runner=interpreted).run(feed)
        assert y.dtype == zero.dtype == np.uint8
        np.testing.assert_allclose((y.astype(np.float64) - zero) * scale, x, atol=0.51 * scale + 1e-7)


@pytest.mark.parametrize("runner", [interpreted, None])
def test_zeros_are_quantised_with_a_scale_of_one(runner):
    graph, feed = one_node("DynamicQuantizeLinear", [np.zeros((2, 2), np.float32)], 3)
    y, scale, zero = CompiledModel(graph, make_runner=runner).run(feed)
    assert (y.tolist(), scale, zero) == ([[0, 0], [0, 0]], 1, 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("runner", [interpreted, None])
@pytest.mark.parametrize(("a_zero", "b_zero"), [(0, 0), (7, 0), (7, 3)])
def test_products_of_matrices_of_integers(runner, a_zero, b_zero):
    a, b = numbers(2, 5, 4), numbers(4, 3)
    exact = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    y = found("MatMulInteger", [a, b, np.uint8(a_zero), np.uint8(b_zero)], runner, constant=(1, 2, 3))
    np.testing.assert_array_equal(y, exact)
    scaled = found(
        "QLinearMatMul",
        [a, np.float32(0.5), np.uint8(a_zero), b, np.float32(0.25), np.uint8(b_zero), np.float32(8), np.uint8(9)],
    )
    np.testing.assert_array_equal(scaled, whole(exact / 8.0, 8.0, np.uint8(9)))


def test_a_zero_point_for_each_row_and_column():
    a, b = numbers(3, 4), numbers(4, 2, dtype="int8")
    p, q = np.uint8([1, 2, 3]), np.int8([-4, 5])
    exact = (a.astype(np.int64) - p[:, None]) @ (b.astype(np.int64) - q)
    np.testing.assert_array_equal(found("MatMulInteger", [a, b, p, q]), exact)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """3×3, stride 1, pads of 1."""
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    rows, columns = x.shape[2:]
    parts = [
        np.einsum("bchw,oc->bohw", wide[:, :, i : i + rows, j : j + columns], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    ]
    return sum(parts)  # type: ignore[return-value]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("runner", [interpreted, None])
def test_convolutions_of_integers(runner):
    x, w = numbers(1, 2, 4, 5), numbers(3, 2, 3, 3, dtype="int8")
    total = convolved(x.astype(np.int64) - 7, w.astype(np.int64))
    pads = {"pads": [1, 1, 1, 1], "constant": (1, 2)}
    np.testing.assert_array_equal(found("ConvInteger", [x, w, np.uint8(7)], runner, **pads), total)
    scales, bias = np.float32([0.5, 0.25, 1]), np.int32([100, -100, 0])
    y = found(
        "QLinearConv",
        [x, np.float32(0.5), np.uint8(7), w, scales, np.zeros(3, np.int8), np.float32(16), np.uint8(3), bias],
        runner,
        pads=[1, 1, 1, 1],
        constant=(1, 2, 3, 4, 5, 6, 7, 8),
    )
    exact = (total + bias[:, None, None]) * 0.5 * scales[:, None, None].astype(np.float64)
    np.testing.assert_array_equal(y, whole(exact, 16.0, np.uint8(3)))


def test_operators_of_the_runtime_s_own_set():
    a, b = numbers(3, 5), numbers(5)
    own = {"domain": "com.microsoft"}
    triples = [a, np.float32(0.5), np.uint8(3), b, np.float32(0.25), np.uint8(5)]
    result = [np.float32(2), np.uint8(7)]
    x, y = real(a, 0.5, 3), real(b, 0.25, 5)
    np.testing.assert_array_equal(found("QLinearAdd", [*triples, *result], **own), whole(x + y, 2, np.uint8(7)))
    np.testing.assert_array_equal(found("QLinearMul", [*triples, *result], **own), whole(x * y, 2, np.uint8(7)))
    leaky = found("QLinearLeakyRelu", [a, np.float32(0.5), np.uint8(99), *result], alpha=0.25, **own)
    z = real(a, 0.5, 99)
    np.testing.assert_array_equal(leaky, whole(np.where(z < 0, z * 0.25, z), 2, np.uint8(7)))
    joined = found("QLinearConcat", [*result, *triples[:3], *triples[:3]], axis=0, **own)
    np.testing.assert_array_equal(joined, whole(np.concatenate([x, x]), 2, np.uint8(7)))
    weights, c = numbers(4, 5, dtype="int8"), np.int32([1, 2, 3, 4])
    gemm = found(
        "QGemm", [*triples[:3], weights, np.float32(0.25), np.int8(0), c, np.float32(8), np.uint8(7)], transB=1, **own
    )
    exact = ((a.astype(np.int64) - 3) @ weights.T.astype(np.int64) + c) / 8.0
    np.testing.assert_array_equal(gemm, whole(exact, 8, np.uint8(7)))


def test_scales_that_do_not_fit_are_refused():
    graph, _ = one_node("DequantizeLinear", [numbers(2, 6), np.ones((2, 4), np.float32)], axis=1, block_size=2)
    with pytest.raises(BadNode, match="axis 1 has 6 places in blocks of 2, and 4 scales"):
        CompiledModel(graph, make_runner=interpreted)


def test_numbers_between_dequantize_and_quantize_are_computed_as_integers():
    """A convolution as quantizing tools write it: no kernel of it sees a float but for the last scale."""
    draw = np.random.default_rng(0)
    scales = draw.uniform(0.001, 0.01, 16).astype("float32")
    weights = {
        "w": draw.integers(-127, 128, (16, 8, 3, 3)).astype("int8"),
        "ws": scales,
        "wz": np.zeros(16, "int8"),
        "b": draw.integers(-1000, 1000, 16).astype("int32"),
        "bs": (scales * np.float32(0.02)).astype("float32"),
        "bz": np.zeros(16, "int32"),
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "ys": np.float32(0.05),
        "yz": np.uint8(10),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0),
        helper.make_node("Conv", ["xf", "wf", "bf"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "qdq",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 8, 10, 10])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 16, 10, 10])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = draw.integers(0, 256, (1, 8, 10, 10)).astype("uint8")
    compiled = CompiledModel(model)
    assert np.array_equal(compiled(x), ReferenceEvaluator(model).run(None, {"x": x})[0])
    convolution = next(one for one in compiled.library.program.launches() if "conv2d" in one.func.name)
    assert "float32" not in {str(value.dtype) for value in convolution.inputs if len(value.shape) == 4}


def test_attention_of_integers_is_that_of_the_numbers_they_stand_for():
    random = np.random.default_rng(0)
    x, w = (random.integers(0, 255, shape).astype("uint8") for shape in ((2, 3, 4), (4, 12)))
    bias, past = random.random(12).astype("float32"), random.random((2, 2, 2, 1, 2)).astype("float32")
    mask = np.array([[1, 1, 0, 1], [1, 0, 1, 1]], "int32")
    scales = [np.float32(0.01), np.float32(0.02)]
    zeros = [np.uint8(100), np.uint8(90)]
    options = {"outputs": 2, "domain": "com.microsoft", "num_heads": 2, "unidirectional": 1}
    graphs = [
        one_node("QAttention", [x, w, bias, *scales, mask, *zeros, past], **options),
        one_node(
            "Attention",
            [*((one - np.float32(zero)) * scale for one, zero, scale in zip((x, w), zeros, scales)), bias, mask, past],
            **options,
        ),
    ]
    found, wanted = (CompiledModel(graph, make_runner=interpreted).run(given) for graph, given in graphs)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
