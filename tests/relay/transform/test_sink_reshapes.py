"""SinkReshapes: what follows a product element by element comes before the reshape of it."""

from __future__ import annotations

from loopwright.relay.transform import SinkReshapes
from tests.relay.pass_check import check, check_unchanged


def test_bias_activation_and_residual_follow_the_product():
    check(
        SinkReshapes(),
        """
        fn (%x: Tensor[(6, 4), float32], %w: Tensor[(5, 4), float32], %bias: Tensor[(1, 5), float32],
            %rest: Tensor[(2, 3, 5), float32]) {
          %0 = add(reshape(nn.dense(%x, %w), newshape=[2, 3, 5], allowzero=True), %bias);
          add(%rest, multiply(%0, tanh(%0)))
        }
        """,
        """
        fn (%x: Tensor[(6, 4), float32], %w: Tensor[(5, 4), float32], %bias: Tensor[(1, 5), float32],
            %rest: Tensor[(2, 3, 5), float32]) {
          %0 = add(nn.dense(%x, %w), reshape(%bias, newshape=[5], allowzero=True));
          %1 = add(reshape(%rest, newshape=[6, 5], allowzero=True), multiply(%0, tanh(%0)));
          reshape(%1, newshape=[2, 3, 5], allowzero=True)
        }
        """,
    )


def test_what_is_repeated_along_a_parted_axis_stays():
    check_unchanged(
        SinkReshapes(),
        """
        fn (%x: Tensor[(6, 4), float32], %w: Tensor[(5, 4), float32], %row: Tensor[(3, 1), float32]) {
          add(reshape(nn.dense(%x, %w), newshape=[2, 3, 5], allowzero=True), %row)
        }
        """,
    )


def test_other_reshapes_and_operators_with_axes_stay():
    check_unchanged(
        SinkReshapes(),
        "fn (%x: Tensor[(6, 4), float32]) { tanh(reshape(%x, newshape=[2, 3, 4], allowzero=True)) }",
    )
    check_unchanged(
        SinkReshapes(),
        """
        fn (%x: Tensor[(6, 4), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(3), float32]) {
          nn.bias_add(reshape(nn.dense(%x, %w), newshape=[2, 3, 5], allowzero=True), %b)
        }
        """,
    )
    check_unchanged(
        SinkReshapes(),
        """
        fn (%more: Tensor[(4, 2, 3, 5), float32], %x: Tensor[(6, 4), float32], %w: Tensor[(5, 4), float32]) {
          add(%more, reshape(nn.dense(%x, %w), newshape=[2, 3, 5], allowzero=True))
        }
        """,
    )
