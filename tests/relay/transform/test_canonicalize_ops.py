"""CanonicalizeOps: bias_add is a sum."""

from __future__ import annotations

import numpy as np

from loopwright.relay.transform import CanonicalizeOps
from tests.relay.pass_check import check


def test_bias_add_is_a_sum():
    check(
        CanonicalizeOps(),
        "fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) { nn.bias_add(%x, %b) }",
        """
        fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) {
          add(%x, expand_dims(%b, axis=1, num_newaxis=2))
        }
        """,
    )
    check(
        CanonicalizeOps(),
        "fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(5), float32]) { nn.bias_add(%x, %b, axis=-1) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(5), float32]) { add(%x, %b) }",
    )
    check(
        CanonicalizeOps(),
        "fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(2), float32]) { nn.bias_add(%x, %b, axis=0) }",
        """
        fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(2), float32]) {
          add(%x, expand_dims(%b, axis=1, num_newaxis=3))
        }
        """,
    )
    check(
        CanonicalizeOps(),
        "fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) { nn.bias_add(%x, %b, axis=-3) }",
        """
        fn (%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) {
          add(%x, expand_dims(%b, axis=1, num_newaxis=2))
        }
        """,
    )


def test_a_constant_bias_stays_a_constant():
    check(
        CanonicalizeOps(),
        "fn (%x: Tensor[(2, 3, 4), float32]) { nn.bias_add(%x, $c) }",
        "fn (%x: Tensor[(2, 3, 4), float32]) { add(%x, $reshaped) }",
        {"c": np.array([0.0, 1.0, 2.0], "float32"), "reshaped": lambda c: c.reshape(3, 1)},
    )
