"""EliminateCommonSubexpr: equal calls are one call."""

from __future__ import annotations

import numpy as np

from loopwright.relay.transform import EliminateCommonSubexpr
from tests.relay.pass_check import check, check_unchanged


def test_the_same_call_twice():
    check(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(3, 4), float32]) { add(exp(%x), exp(%x)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = exp(%x);
          add(%0, %0)
        }
        """,
    )


def test_chains_of_the_same_calls():
    check(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(3, 4), float32]) { multiply(nn.relu(add(exp(%x), 1f)), nn.relu(add(exp(%x), 1f))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = nn.relu(add(exp(%x), 1f));
          multiply(%0, %0)
        }
        """,
    )


def test_attributes_tell_calls_apart():
    check_unchanged(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(3, 4), float32]) { add(sum(%x, axis=0, keepdims=True), sum(%x, axis=1, keepdims=True)) }",
    )


def test_types_of_attributes_tell_calls_apart():
    check_unchanged(
        EliminateCommonSubexpr(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          add(clip(%x, a_min=0.0f, a_max=6.0f), clip(%x, a_min=0.0f, a_max=5.0f))
        }
        """,
    )


def test_large_constants_are_compared_by_object():
    check_unchanged(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(3, 4), float32]) { multiply(add(%x, $c), add(%x, $c1)) }",
        {"c": np.array([1.0, 1.0, 1.0, 1.0], "float32"), "c1": np.array([1.0, 1.0, 1.0, 1.0], "float32")},
    )
    check(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(3, 4), float32]) { multiply(add(%x, $c), add(%x, $c)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = add(%x, $c);
          multiply(%0, %0)
        }
        """,
        {"c": np.array([1.0, 1.0, 1.0, 1.0], "float32")},
    )


def test_fields_and_tuples():
    check(
        EliminateCommonSubexpr(),
        """
        fn (%x: Tensor[(4, 4), float32]) {
          add(split(%x, indices_or_sections=2).0, split(%x, indices_or_sections=2).0)
        }
        """,
        """
        fn (%x: Tensor[(4, 4), float32]) {
          %0 = split(%x, indices_or_sections=2).0;
          add(%0, %0)
        }
        """,
    )
    check(
        EliminateCommonSubexpr(),
        "fn (%x: Tensor[(4, 4), float32]) { add(concatenate((%x, %x)), concatenate((%x, %x))) }",
        """
        fn (%x: Tensor[(4, 4), float32]) {
          %0 = concatenate((%x, %x));
          add(%0, %0)
        }
        """,
    )


def test_those_to_skip():
    skip = EliminateCommonSubexpr(lambda call: call.op.name == "exp")
    check_unchanged(skip, "fn (%x: Tensor[(3, 4), float32]) { add(exp(%x), exp(%x)) }")


def test_calls_without_arguments_stay():
    check_unchanged(
        EliminateCommonSubexpr(),
        'fn () { add(zeros(shape=[3], dtype="float32"), zeros(shape=[3], dtype="float32")) }',
    )


def test_branches_share_with_what_comes_before_only():
    check_unchanged(
        EliminateCommonSubexpr(),
        """
        fn (%c: bool, %x: Tensor[(3, 4), float32]) {
          if (%c) {
            exp(%x)
          } else {
            add(exp(%x), 1f)
          }
        }
        """,
    )


def test_functions_share_nothing():
    check_unchanged(
        EliminateCommonSubexpr(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%y: Tensor[(3, 4), float32]) {
            exp(%y)
          };
          add(%0(%x), exp(%x))
        }
        """,
    )
