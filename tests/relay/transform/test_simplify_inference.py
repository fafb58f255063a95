"""SimplifyInference: batch_norm as a product and a sum, dropout gone, quantized operators as plain ones."""

from __future__ import annotations

import numpy as np

from loopwright.relay.transform import SimplifyInference
from tests.relay.pass_check import check, check_unchanged, results_not_compared, within

# (x - mean) / sqrt(var + eps) * gamma + beta of numbers up to 4: 8 roundings on each side, of 4·4 + 4·4 + 4 at most.
NEAR = within(roundings=16, of=36.0)


def test_batch_norm_is_a_product_and_a_sum():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4, 5), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var).0
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4, 5), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          %1 = multiply(%x, expand_dims(%0, axis=1, num_newaxis=2));
          %2 = expand_dims(add(multiply(negative(%mean), %0), %beta), axis=1, num_newaxis=2);
          add(%1, %2)
        }
        """,
        {"var": np.array([1.0, 2.0, 3.0])},
        compare=NEAR,
    )


def test_batch_norm_along_other_axes():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 4, 3), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, axis=-1).0
        }
        """,
        """
        fn (%x: Tensor[(2, 4, 3), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          add(multiply(%x, %0), add(multiply(negative(%mean), %0), %beta))
        }
        """,
        {"var": np.arange(1.0, 4)},
        compare=NEAR,
    )
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(3, 2), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, axis=0).0
        }
        """,
        """
        fn (%x: Tensor[(3, 2), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          add(multiply(%x, expand_dims(%0, axis=1)), expand_dims(add(multiply(negative(%mean), %0), %beta), axis=1))
        }
        """,
        {"var": np.arange(1.0, 4)},
        compare=NEAR,
    )
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(1, 1), float64], %gamma: Tensor[(1), float64], %beta: Tensor[(1), float64],
            %mean: Tensor[(1), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var).0
        }
        """,
        """
        fn (%x: Tensor[(1, 1), float64], %gamma: Tensor[(1), float64], %beta: Tensor[(1), float64],
            %mean: Tensor[(1), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          add(multiply(%x, %0), add(multiply(negative(%mean), %0), %beta))
        }
        """,
        {"var": np.arange(1.0, 2)},
        compare=NEAR,
    )
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(0, 2, 3), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, axis=2).0
        }
        """,
        """
        fn (%x: Tensor[(0, 2, 3), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          add(multiply(%x, %0), add(multiply(negative(%mean), %0), %beta))
        }
        """,
        {"var": np.arange(1.0, 4)},
        compare=NEAR,
    )


def test_batch_norm_without_scale_or_center():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, scale=False).0
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = divide(1f64, sqrt(add($var, 1e-05f64)));
          %1 = multiply(%x, expand_dims(%0, axis=1));
          %2 = expand_dims(add(multiply(negative(%mean), %0), %beta), axis=1);
          add(%1, %2)
        }
        """,
        {"var": np.array([1.0, 2.0, 3.0])},
        compare=NEAR,
    )
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, center=False).0
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          add(multiply(%x, expand_dims(%0, axis=1)), expand_dims(multiply(negative(%mean), %0), axis=1))
        }
        """,
        {"var": np.array([1.0, 2.0, 3.0])},
        compare=NEAR,
    )
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          nn.batch_norm(%x, %gamma, %beta, %mean, $var, center=False, scale=False).0
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = divide(1f64, sqrt(add($var, 1e-05f64)));
          add(multiply(%x, expand_dims(%0, axis=1)), expand_dims(multiply(negative(%mean), %0), axis=1))
        }
        """,
        {"var": np.array([1.0, 2.0, 3.0])},
        compare=NEAR,
    )


def test_all_results_of_batch_norm():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = nn.batch_norm(%x, %gamma, %beta, %mean, $var);
          (%0.0, %0.1, %0.2)
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), float64], %gamma: Tensor[(3), float64], %beta: Tensor[(3), float64],
            %mean: Tensor[(3), float64]) {
          %0 = multiply(divide(1f64, sqrt(add($var, 1e-05f64))), %gamma);
          %1 = multiply(%x, expand_dims(%0, axis=1));
          %2 = expand_dims(add(multiply(negative(%mean), %0), %beta), axis=1);
          (add(%1, %2), %mean, $var)
        }
        """,
        {"var": np.array([1.0, 2.0, 3.0])},
        compare=NEAR,
    )


def test_dropout_is_nothing():
    check(
        SimplifyInference(),
        "fn (%x: Tensor[(3, 4), float64]) { exp(nn.dropout(%x, rate=0.3f).0) }",
        "fn (%x: Tensor[(3, 4), float64]) { exp(%x) }",
    )


def test_l2_normalize():
    check(
        SimplifyInference(),
        "fn (%x: Tensor[(3, 4), float64]) { nn.l2_normalize(%x, eps=0.5f, axis=[1]) }",
        """
        fn (%x: Tensor[(3, 4), float64]) {
          divide(%x, sqrt(maximum(sum(multiply(%x, %x), axis=[1], keepdims=True), 0.5f64)))
        }
        """,
        compare=within(roundings=8, of=1.0),  # shares of a norm: 4 roundings on each side
    )


def test_inside_nested_functions_but_not_in_kernels():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(3), float64]) {
          %0 = fn (%y: Tensor[(3), float64]) {
            nn.dropout(%y).0
          };
          %0(%x)
        }
        """,
        """
        fn (%x: Tensor[(3), float64]) {
          %0 = fn (%y: Tensor[(3), float64]) {
            %y
          };
          %0(%x)
        }
        """,
    )
    check_unchanged(
        SimplifyInference(),
        """
        fn (%x: Tensor[(3), float64]) {
          %0 = fn (%y: Tensor[(3), float64], Primitive=1) {
            nn.dropout(%y).0
          };
          %0(%x)
        }
        """,
    )


def test_weights_without_a_type():
    """A variable whose type inference found keeps it."""
    after = check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 3, 4), float32], %gamma, %beta, %mean, %var) {
          nn.batch_norm(%x, %gamma, %beta, %mean, %var).0
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 4), float32], %gamma, %beta, %mean, %var) {
          %0 = multiply(divide(1f, sqrt(add(%var, 1e-05f))), %gamma);
          %1 = multiply(%x, expand_dims(%0, axis=1));
          add(%1, expand_dims(add(multiply(negative(%mean), %0), %beta), axis=1))
        }
        """,
        compare=results_not_compared,  # a variance may be below zero here
    )
    assert [str(param.checked_type) for param in after["main"].params][1:] == ["Tensor[(3), float32]"] * 4


def test_quantized_operators_become_plain_ones():
    check(
        SimplifyInference(),
        """
        fn (%x: Tensor[(2, 8), int8], %w: Tensor[(4, 8), int8]) {
          qnn.requantize(qnn.dense(%x, %w, 0, 0, 0.5f, 0.5f, units=4), 0.25f, 0, 2f, 3)
        }
        """,
        """
        fn (%x: Tensor[(2, 8), int8], %w: Tensor[(4, 8), int8]) {
          %0 = cast(nn.dense(%x, %w, units=4, out_dtype="int32"), dtype="int64");
          %1 = cast(0, dtype="int64");
          %2 = right_shift(add(multiply(subtract(%0, %1), 1073741824i64), 4294967296i64), 33i64);
          %3 = cast(3, dtype="int64");
          cast(clip(add(%2, %3), a_min=-128.0f, a_max=127.0f), dtype="int8")
        }
        """,
    )
