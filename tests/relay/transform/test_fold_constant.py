"""FoldConstant: what depends on constants alone is computed, but for what would only make the model larger."""

from __future__ import annotations

import numpy as np

from loopwright.relay.transform import FoldConstant
from tests.relay.pass_check import check, check_unchanged


def test_calls_of_constants():
    check(
        FoldConstant(),
        "fn (%x: Tensor[(3), float32]) { add(%x, multiply(exp(0f), 2f)) }",
        "fn (%x: Tensor[(3), float32]) { add(%x, 2f) }",
    )


def test_tuples_and_fields():
    check(
        FoldConstant(),
        "fn (%x: Tensor[(3), float32]) { add(%x, split($c, indices_or_sections=2).1) }",
        "fn (%x: Tensor[(3), float32]) { add(%x, $folded) }",
        {"c": np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "float32"), "folded": np.array([3.0, 4.0, 5.0], "float32")},
    )


def test_shapes():
    check(
        FoldConstant(),
        "fn (%x: Tensor[(3, 4), float32]) { (shape_of(%x), ndarray_size(%x)) }",
        "fn (%x: Tensor[(3, 4), float32]) { ($folded, 12) }",
        {"folded": np.array([3, 4], "int32")},
    )


def test_shapes_that_are_not_known_stay():
    check_unchanged(FoldConstant(), "fn (%x: Tensor[(?, 4), float32]) { shape_of(%x) }")


def test_branches():
    check(
        FoldConstant(),
        """
        fn (%x: Tensor[(3), float32]) {
          if (True) {
            exp(%x)
          } else {
            %x
          }
        }
        """,
        "fn (%x: Tensor[(3), float32]) { exp(%x) }",
    )


def test_large_results_of_small_constants_stay():
    check_unchanged(
        FoldConstant(),
        'fn (%x: Tensor[(300, 300), float32]) { add(%x, zeros(shape=[300, 300], dtype="float32")) }',
    )


def test_kernels_and_quantized_operators_stay():
    check_unchanged(
        FoldConstant(),
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = fn (%y: Tensor[(3), float32], Primitive=1) {
            add(%y, add(1f, 2f))
          };
          %0(%x)
        }
        """,
    )
    check_unchanged(FoldConstant(), "fn () { qnn.quantize($c, 0.5f, 0) }", {"c": np.array([1.0, 2.0, 3.0], "float32")})
    check(
        FoldConstant(fold_qnn=True),
        "fn () { qnn.quantize($c, 0.5f, 0) }",
        "fn () { $folded }",
        {"c": np.array([1.0, 2.0, 3.0], "float32"), "folded": np.array([2, 4, 6], "int8")},
    )


def test_functions_that_call_others():
    check(
        FoldConstant(),
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          shape_of(@f(%x))
        }
        """,
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          $folded
        }
        """,
        {"folded": np.array([3], "int32")},
    )
