"""CanonicalizeCast: element-wise users convert for themselves."""

from __future__ import annotations

from loopwright.relay.transform import CanonicalizeCast
from tests.relay.pass_check import check, check_unchanged


def test_each_user_converts():
    check(
        CanonicalizeCast(),
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int32]) {
          %0 = cast(%x, dtype="int32");
          (add(%0, %y), multiply(%0, %y))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), int8], %y: Tensor[(3, 4), int32]) {
          (add(cast(%x, dtype="int32"), %y), multiply(cast(%x, dtype="int32"), %y))
        }
        """,
    )


def test_narrowing_and_other_users_stay():
    check_unchanged(
        CanonicalizeCast(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = cast(%x, dtype="float16");
          (exp(%0), abs(%0))
        }
        """,
    )
    check_unchanged(
        CanonicalizeCast(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = cast(%x, dtype="float64");
          (sum(%0), argmax(%0))
        }
        """,
    )


def test_an_argument_given_twice_is_converted_once():
    check_unchanged(
        CanonicalizeCast(),
        """
        fn (%x: Tensor[(3), int8]) {
          %0 = cast(%x, dtype="int32");
          multiply(%0, %0)
        }
        """,
    )
