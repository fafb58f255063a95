"""FoldScaleAxis: factors of channels go into weights, where that is allowed."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.transform import (
    BackwardFoldScaleAxis,
    FoldConstant,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    SimplifyInference,
)
from tests.relay.pass_check import check, check_unchanged, drawn, within
from tests.relay.transform.graphs import apply, operators


def _scale(size: int, after: int, sign: int = 1) -> relay.Constant:
    """Powers of two: products with them are exact."""
    values = sign * 2.0 ** (np.arange(size) % 3 - 1)
    return relay.const(values.astype("float32").reshape(-1, *[1] * after))


def test_backward_into_a_convolution():
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { multiply(nn.conv2d(%x, $w, padding=[1, 1]), $c) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1]) }",
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2), "scaled": lambda w, c: w * c.reshape(8, 1, 1, 1)},
    )
    check(
        BackwardFoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          multiply(nn.conv2d(%x, $w, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO"), $c)
        }
        """,
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          nn.conv2d(%x, $scaled, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
        {**drawn(w=(3, 3, 4, 8)), "c": _scale(8, 0), "scaled": lambda w, c: w * c},
    )
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { multiply(nn.conv2d(%x, $w, padding=[1, 1], groups=2), $c) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1], groups=2) }",
        {**drawn(w=(8, 2, 3, 3)), "c": _scale(8, 2), "scaled": lambda w, c: w * c.reshape(8, 1, 1, 1)},
    )
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { multiply(nn.conv2d(%x, $w, padding=[1, 1], groups=4), $c) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1], groups=4) }",
        {**drawn(w=(4, 1, 3, 3)), "c": _scale(4, 2), "scaled": lambda w, c: w * c.reshape(4, 1, 1, 1)},
    )
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { multiply(nn.conv2d(%x, $w, padding=[1, 1], groups=4), $c) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1], groups=4) }",
        {**drawn(w=(4, 2, 3, 3)), "c": _scale(8, 2), "scaled": lambda w, c: w * c.reshape(4, 2, 1, 1)},
    )
    check(
        BackwardFoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          %0 = nn.conv2d(%x, $w, padding=[1, 1], groups=4, data_layout="NHWC", kernel_layout="HWOI");
          multiply(%0, $c)
        }
        """,
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          nn.conv2d(%x, $scaled, padding=[1, 1], groups=4, data_layout="NHWC", kernel_layout="HWOI")
        }
        """,
        {**drawn(w=(3, 3, 4, 1)), "c": _scale(4, 0), "scaled": lambda w, c: w * c.reshape(1, 1, 4, 1)},
    )


def test_forward_into_a_convolution():
    check(
        ForwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(multiply(%x, $c), $w, padding=[1, 1]) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1]) }",
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(4, 2), "scaled": lambda w, c: w * c},
    )
    check(
        ForwardFoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          nn.conv2d(multiply(%x, $c), $w, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          nn.conv2d(%x, $scaled, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
        {**drawn(w=(3, 3, 4, 8)), "c": _scale(4, 0), "scaled": lambda w, c: w * c.reshape(1, 1, 4, 1)},
    )
    check_unchanged(
        ForwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(multiply(%x, $c), $w, padding=[1, 1], groups=2) }",
        {**drawn(w=(8, 2, 3, 3)), "c": _scale(4, 2)},
    )
    check(
        ForwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(multiply(%x, $c), $w, padding=[1, 1], groups=4) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1], groups=4) }",
        {**drawn(w=(4, 1, 3, 3)), "c": _scale(4, 2), "scaled": lambda w, c: w * c.reshape(4, 1, 1, 1)},
    )
    check(
        ForwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(multiply(%x, $c), $w, padding=[1, 1], groups=4) }",
        "fn (%x: Tensor[(1, 4, 5, 6), float32]) { nn.conv2d(%x, $scaled, padding=[1, 1], groups=4) }",
        {**drawn(w=(4, 2, 3, 3)), "c": _scale(4, 2), "scaled": lambda w, c: w * c.reshape(4, 1, 1, 1)},
    )
    check(
        ForwardFoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          %0 = multiply(%x, $c);
          nn.conv2d(%0, $w, padding=[1, 1], groups=4, data_layout="NHWC", kernel_layout="HWOI")
        }
        """,
        """
        fn (%x: Tensor[(1, 5, 6, 4), float32]) {
          nn.conv2d(%x, $scaled, padding=[1, 1], groups=4, data_layout="NHWC", kernel_layout="HWOI")
        }
        """,
        {**drawn(w=(3, 3, 4, 1)), "c": _scale(4, 0), "scaled": lambda w, c: w * c.reshape(1, 1, 4, 1)},
    )


def test_through_sums_and_relu():
    check(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { multiply(nn.relu(add(nn.conv2d(%x, $w), $c)), $c1) }",
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { nn.relu(add(nn.conv2d(%x, $scaled), $scaled1)) }",
        {
            **drawn(w=(8, 4, 3, 3)),
            "c": np.arange(8, dtype="float32").reshape(8, 1, 1),
            "c1": _scale(8, 2),
            "scaled": lambda w, c1: w * c1.reshape(8, 1, 1, 1),
            "scaled1": lambda c, c1: c * c1,
        },
    )
    check(
        FoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 5, 5), float32]) {
          multiply(nn.leaky_relu(nn.bias_add(nn.conv2d(%x, $w), $c), alpha=0.5f), $c1)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 5, 5), float32]) {
          nn.leaky_relu(nn.bias_add(nn.conv2d(%x, $scaled), $scaled1), alpha=0.5f)
        }
        """,
        {
            **drawn(w=(8, 4, 3, 3)),
            "c": np.arange(8, dtype="float32"),
            "c1": _scale(8, 2),
            "scaled": lambda w, c1: w * c1.reshape(8, 1, 1, 1),
            "scaled1": lambda c, c1: c * c1.reshape(8),
        },
    )
    check(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { multiply(subtract($c, nn.conv2d(%x, $w)), $c1) }",
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { subtract($scaled1, nn.conv2d(%x, $scaled)) }",
        {
            **drawn(w=(8, 4, 3, 3)),
            "c": np.arange(8, dtype="float32").reshape(8, 1, 1),
            "c1": _scale(8, 2),
            "scaled": lambda w, c1: w * c1.reshape(8, 1, 1, 1),
            "scaled1": lambda c, c1: c * c1,
        },
    )


def test_a_negative_factor_does_not_pass_relu():
    check_unchanged(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { multiply(nn.relu(nn.conv2d(%x, $w)), $c) }",
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2, sign=-1)},
    )
    check(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { multiply(nn.conv2d(%x, $w), $c) }",
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { nn.conv2d(%x, $scaled) }",
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2, sign=-1), "scaled": lambda w, c: w * c.reshape(8, 1, 1, 1)},
    )


def test_through_pools():
    check(
        FoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          multiply(nn.max_pool2d(nn.conv2d(%x, $w), pool_size=[2, 2], strides=[2, 2]), $c)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          nn.max_pool2d(nn.conv2d(%x, $scaled), pool_size=[2, 2], strides=[2, 2])
        }
        """,
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2), "scaled": lambda w, c: w * c.reshape(8, 1, 1, 1)},
    )
    check_unchanged(
        FoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          multiply(nn.max_pool2d(nn.conv2d(%x, $w), pool_size=[2, 2], strides=[2, 2]), $c)
        }
        """,
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2, sign=-1)},
    )
    check(
        FoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          multiply(nn.avg_pool2d(nn.conv2d(%x, $w), pool_size=[2, 2], strides=[2, 2]), $c)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          nn.avg_pool2d(nn.conv2d(%x, $scaled), pool_size=[2, 2], strides=[2, 2])
        }
        """,
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2, sign=-1), "scaled": lambda w, c: w * c.reshape(8, 1, 1, 1)},
    )


def test_what_others_use_stays():
    check_unchanged(
        FoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 5, 5), float32]) {
          %0 = nn.conv2d(%x, $w);
          (%0, multiply(%0, $c))
        }
        """,
        {**drawn(w=(8, 4, 3, 3)), "c": _scale(8, 2)},
    )


def test_a_factor_along_another_axis_stays():
    check_unchanged(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 8, 8), float32]) { multiply(nn.conv2d(%x, $w), $c) }",
        {**drawn(w=(8, 4, 1, 1)), "c": _scale(8, 0)},
    )


def test_a_residual_sum_stays():
    check_unchanged(
        FoldScaleAxis(),
        "fn (%x: Tensor[(1, 4, 5, 5), float32]) { multiply(add(nn.conv2d(%x, $w), %x), $c) }",
        {**drawn(w=(4, 4, 1, 1)), "c": _scale(4, 2)},
    )


def test_dense_layers():
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(2, 6), float32]) { multiply(add(nn.dense(%x, $w), $c), $c1) }",
        "fn (%x: Tensor[(2, 6), float32]) { add(nn.dense(%x, $scaled), $scaled1) }",
        {
            **drawn(w=(8, 6)),
            "c": np.arange(8, dtype="float32"),
            "c1": _scale(8, 0),
            "scaled": lambda w, c1: w * c1.reshape(8, 1),
            "scaled1": lambda c, c1: c * c1,
        },
    )
    check(
        ForwardFoldScaleAxis(),
        "fn (%x: Tensor[(2, 6), float32]) { nn.dense(multiply(%x, $c), $w) }",
        "fn (%x: Tensor[(2, 6), float32]) { nn.dense(%x, $scaled) }",
        {**drawn(w=(8, 6)), "c": _scale(6, 0), "scaled": lambda w, c: w * c},
    )
    check(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(2, 6), float32]) { multiply(nn.matmul(%x, $w), $c) }",
        "fn (%x: Tensor[(2, 6), float32]) { nn.matmul(%x, $scaled) }",
        {**drawn(w=(6, 8)), "c": _scale(8, 0), "scaled": lambda w, c: w * c},
    )


def test_weights_that_are_inputs():
    """Smaller than the data: the factor costs less there; larger: it stays."""
    check(
        BackwardFoldScaleAxis(),
        """
        fn (%x: Tensor[(1, 4, 9, 9), float32], %w: Tensor[(8, 4, 3, 3), float32], %s: Tensor[(8, 1, 1), float32]) {
          multiply(nn.conv2d(%x, %w), %s)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 9, 9), float32], %w: Tensor[(8, 4, 3, 3), float32], %s: Tensor[(8, 1, 1), float32]) {
          nn.conv2d(%x, multiply(%w, reshape(reshape(%s, newshape=[8]), newshape=[8, 1, 1, 1])))
        }
        """,
    )
    check_unchanged(
        BackwardFoldScaleAxis(),
        "fn (%x: Tensor[(1, 6), float32], %w: Tensor[(8, 6), float32]) { multiply(nn.dense(%x, %w), $c) }",
        {"c": _scale(8, 0)},
    )


def test_batch_norm_after_a_convolution():
    random = np.random.default_rng(3)
    gamma, beta, mean, var = (random.uniform(0.5, 1.5, 8) for _ in range(4))
    factor = 1 / np.sqrt(var + 1e-5) * gamma
    check(
        [SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldConstant()],
        """
        fn (%x: Tensor[(1, 4, 6, 6), float64]) {
          nn.relu(nn.batch_norm(nn.conv2d(%x, $w, padding=[1, 1]), $gamma, $beta, $mean, $var).0)
        }
        """,
        "fn (%x: Tensor[(1, 4, 6, 6), float64]) { nn.relu(add(nn.conv2d(%x, $scaled, padding=[1, 1]), $shift)) }",
        {
            **drawn("float64", w=(8, 4, 3, 3)),
            **{"gamma": gamma, "beta": beta, "mean": mean, "var": var},
            "scaled": lambda w: w * factor.reshape(8, 1, 1, 1),
            "shift": (-mean * factor + beta).reshape(8, 1, 1),
        },
        # Sums of 36 products of numbers up to 4, 3 and the factor of at most 2.2; 40 roundings on each side.
        compare=within(roundings=80, of=36 * 4 * 3 * 2.2),
    )


def test_long_chains():
    body = x = relay.var("x", shape=(1, 2, 4, 4))
    weight = relay.const(np.ones((2, 2, 1, 1), "float32"))
    for _ in range(300):
        body = relay.nn.conv2d(body, weight) * _scale(2, 2)
    assert operators(apply(FoldScaleAxis(), relay.Function([x], body))) == ["nn.conv2d"] * 300
