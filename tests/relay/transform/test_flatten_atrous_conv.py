"""FlattenAtrousConv: a convolution of batches of space is a dilated one."""

from __future__ import annotations

from loopwright.relay.transform import FlattenAtrousConv
from tests.relay.pass_check import check, check_unchanged


def test_it_is_a_dilated_convolution():
    check(
        FlattenAtrousConv(),
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]]);
          %1 = nn.conv2d(%0, %w, data_layout="NHWC", kernel_layout="HWIO");
          nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 0], [0, 0]])
        }
        """,
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
    )
    check(
        FlattenAtrousConv(),
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 2], [3, 3]]);
          %1 = nn.conv2d(%0, %w, data_layout="NHWC", kernel_layout="HWIO");
          nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 0], [1, 1]])
        }
        """,
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
    )
    check(
        FlattenAtrousConv(),
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]);
          %1 = nn.conv2d(%0, %w, data_layout="NHWC", kernel_layout="HWIO");
          nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 0], [0, 0]])
        }
        """,
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          nn.conv2d(%x, %w, padding=[0, 0, 0, 0], dilation=[2, 2], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
    )


def test_strides_stay():
    check_unchanged(
        FlattenAtrousConv(),
        """
        fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(3, 3, 3, 4), float32]) {
          %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]]);
          %1 = nn.conv2d(%0, %w, strides=[2, 2], data_layout="NHWC", kernel_layout="HWIO");
          nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 0], [0, 0]])
        }
        """,
    )
