"""IntegerProducts: products are sums of integers, what follows has the scale of the quantize; no rounding is added."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import IntegerProducts
from loopwright.relay.transform.pipeline import optimize
from tests.relay.pass_check import Constants, check, check_unchanged, drawn, quantized, results_not_compared

q = relay.qnn.op
RANDOM = np.random.default_rng(0)
SCALES = np.random.default_rng(1).uniform(0.1, 0.3, 8).astype("float32")
BIAS = np.random.default_rng(2).uniform(-1, 1, (8, 1, 1)).astype("float32")


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


def _bias(channels: int) -> Any:
    return relay.const(RANDOM.uniform(-1, 1, (channels, 1, 1)).astype("float32"))


def _check(before: str, after: str, constants: Constants) -> None:
    """The integers are those of real arithmetic but for ties that another rounding decides: one step at most."""
    check(IntegerProducts(), before, after, constants, quantized(steps=1, share=0.01))


def _factor(scales: np.ndarray, scale: float, result: float) -> np.ndarray:
    """What a sum of integers is multiplied by, in float64 and rounded once."""
    return (np.float32(scale) * scales / np.float64(np.float32(result))).astype("float32")


def test_a_convolution_with_bias_and_relu_divides_no_element():
    _check(
        """
        fn (%x: Tensor[(1, 4, 6, 6), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = nn.relu(add(nn.conv2d(%0, %1, padding=[1, 1]), $bias));
          qnn.quantize(%2, 3f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = rint(add(multiply(cast(%0, dtype="float32"), $factor), $shift));
          cast(clip(%1, a_min=0.0f, a_max=255.0f), dtype="uint8")
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "bias": BIAS,
            "factor": lambda scales: _factor(scales, 0.5, 3.0).reshape(8, 1, 1),
            "shift": lambda bias: _factor(bias, 1.0, 3.0),
        },
    )


def test_a_residual_sum_and_zero_points():
    _check(
        """
        fn (%x: Tensor[(1, 4, 5, 5), int8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = nn.relu(add(add(nn.conv2d(%0, %1, padding=[1, 1]), $bias), qnn.dequantize(%y, 0.25f, 3)));
          qnn.quantize(%2, 0.4f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), int8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = add(multiply(cast(%0, dtype="float32"), $factor), $shift);
          %2 = subtract(multiply(cast(%y, dtype="float32"), 0.625f), 1.875f);
          cast(clip(rint(add(%1, %2)), a_min=0.0f, a_max=255.0f), dtype="uint8")
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "bias": BIAS,
            "factor": lambda scales: _factor(scales, 0.5, 0.4).reshape(8, 1, 1),
            "shift": lambda bias: _factor(bias, 1.0, 0.4),
        },
    )
    _check(
        """
        fn (%x: Tensor[(1, 4, 5, 5), int8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 7);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = nn.relu(add(add(nn.conv2d(%0, %1, padding=[1, 1]), $bias), qnn.dequantize(%y, 0.25f, 3)));
          qnn.quantize(%2, 0.4f, 7, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), int8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.conv2d(%x, $w, 7, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = add(multiply(cast(%0, dtype="float32"), $factor), $shift);
          %2 = subtract(multiply(cast(%y, dtype="float32"), 0.625f), 1.875f);
          cast(clip(add(rint(nn.relu(add(%1, %2))), 7f), a_min=0.0f, a_max=255.0f), dtype="uint8")
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "bias": BIAS,
            "factor": lambda scales: _factor(scales, 0.5, 0.4).reshape(8, 1, 1),
            "shift": lambda bias: _factor(bias, 1.0, 0.4),
        },
    )


def test_a_quantize_moves_before_a_pool_and_a_join():
    _check(
        """
        fn (%x: Tensor[(1, 4, 8, 8), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = nn.relu(nn.conv2d(%0, %1, padding=[1, 1]));
          %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2]);
          qnn.quantize(%3, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 8, 8), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = clip(rint(multiply(cast(%0, dtype="float32"), $factor)), a_min=0.0f, a_max=255.0f);
          nn.max_pool2d(cast(%1, dtype="uint8"), pool_size=[2, 2], strides=[2, 2])
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "factor": lambda scales: _factor(scales, 0.5, 2.0).reshape(8, 1, 1),
        },
    )
    _check(
        """
        fn (%x: Tensor[(1, 4, 8, 8), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = (nn.relu(nn.conv2d(%0, %1, padding=[1, 1])), qnn.dequantize(%x, 0.25f, 0));
          qnn.quantize(concatenate(%2, axis=1), 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 8, 8), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = clip(rint(multiply(cast(%0, dtype="float32"), $factor)), a_min=0.0f, a_max=255.0f);
          %2 = cast(%1, dtype="uint8");
          %3 = qnn.dequantize(%x, 0.25f, 0);
          %4 = qnn.quantize(%3, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN");
          concatenate((%2, %4), axis=1)
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "factor": lambda scales: _factor(scales, 0.5, 2.0).reshape(8, 1, 1),
        },
    )


def test_any_operator_may_stand_between():
    _check(
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = qnn.dequantize(%x, 0.01f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = multiply(sigmoid(nn.conv2d(%0, %1, padding=[1, 1])), 100f);
          qnn.quantize(%2, 0.5f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.01f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = multiply(sigmoid(qnn.dequantize(%0, $product, 0, axis=1)), 100f);
          qnn.quantize(%1, 0.5f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "product": lambda scales: _factor(scales, 0.01, 1.0),
        },
    )
    _check(
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = clip(multiply(nn.conv2d(%0, %1, padding=[1, 1]), 0.5f), a_min=-20.0f, a_max=50.0f);
          %3 = qnn.dequantize(%y, 0.5f, 0);
          qnn.quantize(subtract(%2, %3), 1f, 100, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8], %y: Tensor[(1, 8, 5, 5), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = clip(multiply(qnn.dequantize(%0, $product, 0, axis=1), 0.5f), a_min=-20.0f, a_max=50.0f);
          %2 = multiply(cast(%y, dtype="float32"), 0.5f);
          cast(clip(add(rint(subtract(%1, %2)), 100f), a_min=0.0f, a_max=255.0f), dtype="uint8")
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "product": lambda scales: _factor(scales, 0.5, 1.0),
        },
    )


def test_zero_points_of_channels_beside_one_scale():
    _check(
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8], %y: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = add(qnn.dequantize(%x, 0.5f, $zeros, axis=1), qnn.dequantize(%y, 0.5f, 0));
          qnn.quantize(%0, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8], %y: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = subtract(multiply(cast(%x, dtype="float32"), 0.25f), $shift);
          %1 = multiply(cast(%y, dtype="float32"), 0.25f);
          cast(clip(rint(add(%0, %1)), a_min=0.0f, a_max=255.0f), dtype="uint8")
        }
        """,
        {
            "zeros": np.array([1, 2, 3, 4], "int32"),
            "shift": np.array([0.25, 0.5, 0.75, 1.0], "float32").reshape(4, 1, 1),
        },
    )


def test_a_product_that_nobody_quantizes_is_scaled():
    check(
        IntegerProducts(),
        "fn (%x: Tensor[(3, 16), uint8]) { nn.dense(qnn.dequantize(%x, 0.5f, 0), qnn.dequantize($w, 0.5f, 0)) }",
        "fn (%x: Tensor[(3, 16), uint8]) { qnn.dequantize(qnn.dense(%x, $w, 0, 0, 0.5f, 0.5f), 0.25f, 0, axis=1) }",
        drawn("int8", w=(5, 16)),
        quantized(steps=0),  # scales are powers of 2: the results are exact
    )


def test_a_value_with_other_uses_is_computed_once():
    check(
        IntegerProducts(),
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = qnn.dequantize(%x, 0.5f, 0);
          %1 = qnn.dequantize($w, $scales, 0, axis=0);
          %2 = nn.relu(nn.conv2d(%0, %1, padding=[1, 1]));
          (qnn.quantize(%2, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN"), %2)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), uint8]) {
          %0 = qnn.conv2d(%x, $w, 0, 0, 0.5f, $scales, kernel_size=[3, 3], padding=[1, 1]);
          %1 = nn.relu(qnn.dequantize(%0, $product, 0, axis=1));
          (qnn.quantize(%1, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN"), %1)
        }
        """,
        {
            **drawn("int8", w=(8, 4, 3, 3)),
            "scales": SCALES,
            "product": lambda scales: _factor(scales, 0.5, 1.0),
        },
        results_not_compared,  # one result is real
    )


def test_what_it_leaves_alone():
    check_unchanged(
        IntegerProducts(),
        """
        fn (%x: Tensor[(1, 4, 5, 5), float32]) {
          qnn.quantize(%x, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
    )
    check_unchanged(IntegerProducts(), "fn (%x: Tensor[(1, 4, 5, 5), float32]) { nn.relu(%x) }")
    check_unchanged(
        IntegerProducts(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), uint8]) {
          %0 = nn.max_pool2d(qnn.dequantize(%x, 0.5f, 0), pool_size=[2, 2]);
          qnn.quantize(%0, 2f, 0, out_dtype="uint8", rounding="TONEAREST_EVEN")
        }
        """,
    )


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
