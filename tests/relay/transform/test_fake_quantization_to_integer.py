"""FakeQuantizationToInteger: islands of real numbers become integers; results differ by one step at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import FakeQuantizationToInteger
from loopwright.relay.transform.precision.fake_quantization_to_integer import NoIntegerRule
from tests.relay.pass_check import Constants, check, check_unchanged, drawn, program, quantized


def _check(before: str, after: str, constants: Constants | None = None, steps: int = 1) -> None:
    """Each stored integer is the one of real arithmetic, or its neighbour."""
    check(FakeQuantizationToInteger(hard_fail=True), before, after, constants, quantized(steps))


def test_a_convolution():
    _check(
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0), padding=[1, 1]);
          qnn.quantize(nn.relu(%0), 2f, 3)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = qnn.conv2d(%x, $w, 3, 0, 0.5f, 0.25f, kernel_size=[3, 3], padding=[1, 1]);
          qnn.requantize(clip(%0, a_min=0.0f, a_max=2147483647.0f), 0.125f, 0, 2f, 3, axis=3)
        }
        """,
        drawn("int8", w=(8, 4, 3, 3)),
    )
    _check(
        """
        fn (%x: Tensor[(1, 4, 6, 6), uint8]) {
          %0 = nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0), padding=[1, 1]);
          qnn.quantize(nn.relu(%0), 2f, 3, out_dtype="uint8")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), uint8]) {
          %0 = qnn.conv2d(%x, $w, 3, 0, 0.5f, 0.25f, kernel_size=[3, 3], padding=[1, 1]);
          %1 = clip(%0, a_min=0.0f, a_max=2147483647.0f);
          qnn.requantize(%1, 0.125f, 0, 2f, 3, axis=3, out_dtype="uint8")
        }
        """,
        drawn("int8", w=(8, 4, 3, 3)),
    )


def test_a_convolution_with_a_scale_for_each_channel_and_a_bias():
    _check(
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, $scales, 0, axis=0));
          %1 = qnn.dequantize($bias, $product, 0, axis=0);
          qnn.quantize(nn.bias_add(%0, %1), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = nn.bias_add(qnn.conv2d(%x, $w, 3, 0, 0.5f, $scales, kernel_size=[3, 3]), $bias);
          qnn.requantize(%0, $product, 0, 2f, -5, axis=1)
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": 2.0 ** -np.arange(1, 9).astype("float32"),
            "bias": np.array([-62, 426, 497, -83, -113, -115, -145, 111], "int32"),
            "product": lambda scales: np.float32(0.5) * scales,
        },
    )


def test_a_bias_of_real_numbers():
    _check(
        """
        fn (%x: Tensor[(3, 8), int8]) {
          %0 = nn.dense(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0));
          qnn.quantize(nn.bias_add(%0, $bias, axis=-1), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(3, 8), int8]) {
          %0 = nn.bias_add(qnn.dense(%x, $w, 3, 0, 0.5f, 0.25f), $rounded, axis=-1);
          qnn.requantize(%0, 0.125f, 0, 2f, -5, axis=1)
        }
        """,
        {
            **drawn("int8", w=(5, 8)),
            "bias": np.array([1.0, -0.375, 0.75, -0.7, -0.65], "float32"),
            "rounded": np.array([8, -3, 6, -6, -5], "int32"),
        },
    )
    _check(
        """
        fn (%x: Tensor[(3, 8), int8]) {
          %0 = add(nn.dense(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0)), $bias);
          qnn.quantize(%0, 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(3, 8), int8]) {
          qnn.requantize(add(qnn.dense(%x, $w, 3, 0, 0.5f, 0.25f), $rounded), 0.125f, 0, 2f, -5, axis=1)
        }
        """,
        {
            **drawn("int8", w=(5, 8)),
            "bias": np.array([1.0, -0.375, 0.75, -0.7, -0.65], "float32"),
            "rounded": np.array([8, -3, 6, -6, -5], "int32"),
        },
    )


def test_products_of_batches():
    _check(
        """
        fn (%x: Tensor[(2, 3, 4), int8], %y: Tensor[(2, 5, 4), int8]) {
          %0 = nn.batch_matmul(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 0));
          qnn.quantize(%0, 16f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), int8], %y: Tensor[(2, 5, 4), int8]) {
          qnn.requantize(qnn.batch_matmul(%x, %y, 3, 0, 0.5f, 0.25f), 0.125f, 0, 16f, -5, axis=2)
        }
        """,
    )


def test_two_tensors():
    # Both operands of a sum are rounded to the scale of the result, and so is the result.
    _check(
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          qnn.quantize(add(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 1)), 1f, -5)
        }
        """,
        "fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) { qnn.add(%x, %y, 0.5f, 3, 0.25f, 1, 1f, -5) }",
        steps=2,
    )
    _check(
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          qnn.quantize(subtract(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 1)), 1f, -5)
        }
        """,
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          qnn.subtract(%x, %y, 0.5f, 3, 0.25f, 1, 1f, -5)
        }
        """,
        steps=2,
    )
    _check(
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          qnn.quantize(multiply(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 1)), 64f, -5)
        }
        """,
        "fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) { qnn.mul(%x, %y, 0.5f, 3, 0.25f, 1, 64f, -5) }",
        steps=2,
    )


def test_a_sum_and_relu():
    _check(
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          qnn.quantize(nn.relu(add(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.5f, 3))), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int8]) {
          clip(qnn.add(%x, %y, 0.5f, 3, 0.5f, 3, 2f, -5), a_min=-5.0f, a_max=127.0f)
        }
        """,
        steps=2,
    )


def test_numbers_that_are_moved():
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.quantize(reshape(qnn.dequantize(%x, 0.5f, 3), newshape=[6, 16]), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.requantize(reshape(%x, newshape=[6, 16]), 0.5f, 3, 2f, -5, axis=1)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.quantize(transpose(qnn.dequantize(%x, 0.5f, 3), axes=[0, 2, 3, 1]), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.requantize(transpose(%x, axes=[0, 2, 3, 1]), 0.5f, 3, 2f, -5, axis=3)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          %0 = nn.max_pool2d(qnn.dequantize(%x, 0.5f, 3), pool_size=[2, 2], strides=[2, 2]);
          qnn.quantize(%0, 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.requantize(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]), 0.5f, 3, 2f, -5, axis=3)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.quantize(strided_slice(qnn.dequantize(%x, 0.5f, 3), begin=[0, 0], end=[2, 2]), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.requantize(strided_slice(%x, begin=[0, 0], end=[2, 2]), 0.5f, 3, 2f, -5, axis=3)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.quantize(clip(qnn.dequantize(%x, 0.5f, 3), a_min=-3.0f, a_max=6.0f), 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.requantize(clip(%x, a_min=-3.0f, a_max=15.0f), 0.5f, 3, 2f, -5, axis=3)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(2, 3, 4, 4), int8]) {
          qnn.quantize(nn.batch_flatten(qnn.dequantize(%x, 0.5f, 3)), 2f, -5)
        }
        """,
        "fn (%x: Tensor[(2, 3, 4, 4), int8]) { qnn.requantize(nn.batch_flatten(%x), 0.5f, 3, 2f, -5, axis=1) }",
    )


def test_the_same_scale_needs_no_requantize():
    check(
        FakeQuantizationToInteger(),
        """
        fn (%x: Tensor[(2, 6), int8]) {
          qnn.quantize(reshape(qnn.dequantize(%x, 0.5f, 3), newshape=[3, 4]), 0.5f, 3)
        }
        """,
        "fn (%x: Tensor[(2, 6), int8]) { reshape(%x, newshape=[3, 4]) }",
    )


def test_cells_around():
    _check(
        """
        fn (%x: Tensor[(1, 2, 4, 4), int8]) {
          %0 = nn.pad(qnn.dequantize(%x, 0.5f, 3), 0, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);
          qnn.quantize(%0, 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 4, 4), int8]) {
          %0 = nn.pad(%x, 3i8, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);
          qnn.requantize(%0, 0.5f, 3, 2f, -5, axis=3)
        }
        """,
    )


def test_joins():
    _check(
        """
        fn (%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int8]) {
          %0 = concatenate((qnn.dequantize(%x, 0.5f, 3), qnn.dequantize(%y, 0.25f, 1)), axis=1);
          qnn.quantize(%0, 2f, -5)
        }
        """,
        """
        fn (%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int8]) {
          %0 = qnn.requantize(%x, 0.5f, 3, 2f, -5, axis=1);
          %1 = qnn.requantize(%y, 0.25f, 1, 2f, -5, axis=1);
          concatenate((%0, %1), axis=1)
        }
        """,
    )


def test_means():
    _check(
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          qnn.quantize(nn.global_avg_pool2d(qnn.dequantize(%x, 0.5f, 3)), 0.5f, -5)
        }
        """,
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          %0 = sum(cast(%x, dtype="int32"), axis=[2, 3], keepdims=True);
          qnn.requantize(%0, 0.03125f, 48, 0.5f, -5, axis=3)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          qnn.quantize(mean(qnn.dequantize(%x, 0.5f, 3), axis=[2, 3]), 0.5f, -5)
        }
        """,
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          qnn.requantize(sum(cast(%x, dtype="int32"), axis=[2, 3]), 0.03125f, 48, 0.5f, -5, axis=1)
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          %0 = nn.avg_pool2d(qnn.dequantize(%x, 0.5f, 3), pool_size=[2, 2], strides=[2, 2]);
          qnn.quantize(%0, 0.5f, -5)
        }
        """,
        """
        fn (%x: Tensor[(1, 3, 4, 4), int8]) {
          qnn.avg_pool2d(%x, 0.5f, 3, 0.5f, -5, pool_size=[2, 2], strides=[2, 2], padding=[0, 0],
              count_include_pad=False)
        }
        """,
    )


def test_functions_of_one_tensor():
    _check(
        "fn (%x: Tensor[(3, 4), int8]) { qnn.quantize(sigmoid(qnn.dequantize(%x, 0.03125f, 3)), 0.0078125f, 0) }",
        "fn (%x: Tensor[(3, 4), int8]) { qnn.sigmoid(%x, 0.03125f, 3, 0.0078125f, 0) }",
    )
    _check(
        "fn (%x: Tensor[(3, 4), int8]) { qnn.quantize(tanh(qnn.dequantize(%x, 0.03125f, 3)), 0.0078125f, 0) }",
        "fn (%x: Tensor[(3, 4), int8]) { qnn.tanh(%x, 0.03125f, 3, 0.0078125f, 0) }",
    )
    _check(
        "fn (%x: Tensor[(3, 4), int8]) { qnn.quantize(abs(qnn.dequantize(%x, 0.03125f, 3)), 0.0078125f, 0) }",
        "fn (%x: Tensor[(3, 4), int8]) { qnn.abs(%x, 0.03125f, 3, 0.0078125f, 0) }",
    )
    _check(
        "fn (%x: Tensor[(3, 4), int8]) { qnn.quantize(erf(qnn.dequantize(%x, 0.03125f, 3)), 0.0078125f, 0) }",
        "fn (%x: Tensor[(3, 4), int8]) { qnn.erf(%x, 0.03125f, 3, 0.0078125f, 0) }",
    )


def test_several_islands():
    check(
        FakeQuantizationToInteger(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0));
          %1 = nn.conv2d(qnn.dequantize(qnn.quantize(%0, 1f, 0), 1f, 0), qnn.dequantize($w1, 0.25f, 0));
          qnn.quantize(%1, 4f, 1)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = qnn.conv2d(%x, $w, 3, 0, 0.5f, 0.25f, kernel_size=[1, 1]);
          %1 = qnn.requantize(%0, 0.125f, 0, 1f, 0, axis=3);
          %2 = qnn.conv2d(%1, $w1, 0, 0, 1f, 0.25f, kernel_size=[1, 1]);
          qnn.requantize(%2, 0.25f, 0, 4f, 1, axis=3)
        }
        """,
        drawn("int8", w=(4, 4, 1, 1), w1=(4, 4, 1, 1)),
        # One step of the first is at most 4 * 3 * 0.25 / 4 of a step of the second, which may be off by one itself.
        quantized(steps=2),
    )


def test_an_operator_without_a_rule():
    island = "fn (%x: Tensor[(3), int8]) { qnn.quantize(cos(qnn.dequantize(%x, 0.5f, 3)), 2f, -5) }"
    check_unchanged(FakeQuantizationToInteger(), island)
    with pytest.raises(NoIntegerRule, match="cos stands between dequantize and quantize"):
        FakeQuantizationToInteger(hard_fail=True)(program(island))


def test_a_rule_of_the_users():
    from loopwright.relay.transform import register_fake_quantization_to_integer
    from loopwright.relay.transform.precision.fake_quantization.affine import Quantized
    from loopwright.relay.transform.precision.fake_quantization.rules import RULES

    @register_fake_quantization_to_integer("negative")
    def negative(call: Any, args: Any, wanted: Any) -> Any:
        return Quantized(relay.negative(args[0].expr), args[0].affine) if args[0].affine.has_no_zero_point else None

    try:
        check(
            FakeQuantizationToInteger(),
            "fn (%x: Tensor[(3), int8]) { qnn.quantize(negative(qnn.dequantize(%x, 0.5f, 0)), 0.5f, 0) }",
            "fn (%x: Tensor[(3), int8]) { negative(%x) }",
        )
    finally:
        del RULES["negative"]


def test_the_end_of_a_graph():
    check_unchanged(
        FakeQuantizationToInteger(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0))
        }
        """,
        drawn("int8", w=(4, 4, 3, 3)),
    )
    check(
        FakeQuantizationToInteger(use_qat=True),
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          nn.conv2d(qnn.dequantize(%x, 0.5f, 3), qnn.dequantize($w, 0.25f, 0))
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          qnn.dequantize(qnn.conv2d(%x, $w, 3, 0, 0.5f, 0.25f, kernel_size=[3, 3]), 0.125f, 0, axis=1)
        }
        """,
        drawn("int8", w=(4, 4, 3, 3)),
        quantized(steps=0),  # scales are powers of 2
    )
