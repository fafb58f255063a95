"""ToMixedPrecision: products narrow, delicate operators wide, the rest as what they are given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import ToMixedPrecision, register_mixed_precision_conversion
from loopwright.relay.transform.precision.to_mixed_precision import CONVERSIONS, NoPrecision
from tests.relay.pass_check import check, check_unchanged, program, results_not_compared


def _check(before: str, after: str, *options: str, **settings: str) -> None:
    """Results are not compared: they are rounded to fewer bits. `test_numbers_are_near` holds them to a bound."""
    check(ToMixedPrecision(*options, **settings), before, after, compare=results_not_compared)


def test_products_are_narrow():
    _check(
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
          nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16")
        }
        """,
    )


def test_what_follows_is_narrow_and_softmax_is_not():
    _check(
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(5), float32]) {
          nn.softmax(nn.relu(nn.bias_add(nn.dense(%x, %w), %b, axis=-1)))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(5), float32]) {
          %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
          %1 = cast(%b, dtype="float16");
          nn.softmax(cast(nn.relu(nn.bias_add(%0, %1, axis=-1)), dtype="float32"))
        }
        """,
    )


def test_what_follows_nothing_narrow_stays():
    check_unchanged(
        ToMixedPrecision(),
        "fn (%x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32]) { nn.relu(add(%x, %y)) }",
    )
    check_unchanged(ToMixedPrecision(), "fn (%x: Tensor[(3, 4), float32]) { exp(%x) }")


def test_a_value_is_converted_once():
    _check(
        "fn (%x: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) { nn.dense(nn.dense(%x, %w), %x) }",
        """
        fn (%x: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
          %0 = cast(%x, dtype="float16");
          %1 = nn.dense(%0, cast(%w, dtype="float16"), out_dtype="float16");
          nn.dense(%1, %0, out_dtype="float16")
        }
        """,
    )


def test_bfloat16():
    _check(
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
          nn.dense(cast(%x, dtype="bfloat16"), cast(%w, dtype="bfloat16"), out_dtype="bfloat16")
        }
        """,
        "bfloat16",
    )


def test_results_may_keep_their_types():
    with PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        _check(
            "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
            """
            fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
              %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
              cast(%0, dtype="float32")
            }
            """,
        )


def test_integers_stay():
    check_unchanged(
        ToMixedPrecision(),
        "fn (%i: Tensor[(3, 4), int32], %x: Tensor[(3, 4), float32]) { (add(%i, %i), %x) }",
    )
    _check(
        """
        fn (%t: Tensor[(7, 4), float32], %w: Tensor[(5, 4), float32], %k: Tensor[(2), int64]) {
          take(nn.dense(%t, %w), %k, axis=0)
        }
        """,
        """
        fn (%t: Tensor[(7, 4), float32], %w: Tensor[(5, 4), float32], %k: Tensor[(2), int64]) {
          %0 = nn.dense(cast(%t, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
          take(%0, %k, axis=0)
        }
        """,
    )


def test_tuples_and_branches():
    _check(
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          %0 = nn.dense(%x, %w);
          concatenate((%0, nn.relu(%0)))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
          concatenate((%0, nn.relu(%0)))
        }
        """,
    )
    _check(
        """
        fn (%c: bool, %x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          if (%c) {
            nn.dense(%x, %w)
          } else {
            %x
          }
        }
        """,
        """
        fn (%c: bool, %x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          if (%c) {
            %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
            cast(%0, dtype="float32")
          } else {
            %x
          }
        }
        """,
    )
    _check(
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          let %v = nn.dense(%x, %w);
          exp(%v)
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 4), float32]) {
          %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float16");
          let %v = cast(%0, dtype="float32");
          exp(%v)
        }
        """,
    )


def test_numbers_are_near():
    """A product of 4 terms in float16: 7 roundings of 2^-11 of what is summed, two of the operands among them."""
    before = program("fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }")
    after = ToMixedPrecision()(before)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype("float32") for shape in ((3, 4), (5, 4)))
    wanted = x.astype("float64") @ w.astype("float64").T
    bound = 7 * 2.0**-11 * (np.abs(x).astype("float64") @ np.abs(w).astype("float64").T)
    assert (np.abs(evaluate(after["main"], [x, w]) - wanted) <= bound).all()


def test_operators_of_which_nothing_is_said():
    text = "fn (%x: Tensor[(5), float32]) { unique(%x).0 }"
    with pytest.raises(NoPrecision, match="nothing says in which type unique computes"):
        ToMixedPrecision(missing_op_mode=0)(program(text))
    with pytest.warns(UserWarning, match="unique"):
        check_unchanged(ToMixedPrecision(), text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_unchanged(ToMixedPrecision(missing_op_mode=2), text)
    with pytest.raises(ValueError, match="missing_op_mode is 0, 1 or 2, and not 3"):
        ToMixedPrecision(missing_op_mode=3)


def test_what_users_say():
    @register_mixed_precision_conversion("nn.dense")
    def dense(call: Any, narrow: str) -> list[Any]:
        return [0, "float32", narrow]

    try:
        _check(
            "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
            """
            fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
              %0 = nn.dense(cast(%x, dtype="float16"), cast(%w, dtype="float16"), out_dtype="float32");
              cast(%0, dtype="float16")
            }
            """,
        )
    finally:
        del CONVERSIONS["nn.dense"]


def test_products_are_summed_up_in_a_wider_type():
    _check(
        "fn (%x: Tensor[(3, 8), float32], %w: Tensor[(5, 8), float32]) { nn.relu(nn.dense(%x, %w)) }",
        """
        fn (%x: Tensor[(3, 8), float32], %w: Tensor[(5, 8), float32]) {
          %0 = nn.dense(cast(%x, dtype="bfloat16"), cast(%w, dtype="bfloat16"), out_dtype="float32");
          nn.relu(cast(%0, dtype="bfloat16"))
        }
        """,
        "bfloat16",
        accumulates="float32",
    )
