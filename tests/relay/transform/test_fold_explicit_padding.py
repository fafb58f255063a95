"""FoldExplicitPadding: convolutions and pools pad for themselves."""

from __future__ import annotations

from loopwright.relay.transform import FoldExplicitPadding
from tests.relay.pass_check import check, check_unchanged

FOLD = FoldExplicitPadding()


def test_convolutions():
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), %w)
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(%x, %w, padding=[1, 0, 2, 3])
        }
        """,
    )
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          %0 = nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]);
          nn.conv2d(%0, %w, strides=[2, 2], padding=[1, 1])
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(%x, %w, strides=[2, 2], padding=[2, 1, 3, 4])
        }
        """,
    )


def test_other_layouts_and_dimensions():
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 6, 7, 2), float32], %w: Tensor[(3, 3, 2, 3), float32]) {
          %0 = nn.pad(%x, 0, pad_width=[[0, 0], [1, 1], [0, 2], [0, 0]]);
          nn.conv2d(%0, %w, data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
        """
        fn (%x: Tensor[(1, 6, 7, 2), float32], %w: Tensor[(3, 3, 2, 3), float32]) {
          nn.conv2d(%x, %w, padding=[1, 0, 1, 2], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
    )
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 9), float32], %w: Tensor[(3, 2, 3), float32]) {
          nn.conv1d(nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [2, 1]]), %w)
        }
        """,
        "fn (%x: Tensor[(1, 2, 9), float32], %w: Tensor[(3, 2, 3), float32]) { nn.conv1d(%x, %w, padding=[2, 1]) }",
    )


def test_what_is_not_its_own_padding_stays():
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), %w)
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]], pad_mode="edge"), %w)
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %w: Tensor[(3, 3, 3, 3), float32]) {
          nn.conv2d(nn.pad(%x, 0, pad_width=[[0, 0], [0, 1], [1, 1], [1, 1]]), %w)
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32], %v: float32, %w: Tensor[(3, 2, 3, 3), float32]) {
          nn.conv2d(nn.pad(%x, %v, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), %w)
        }
        """,
    )


def test_a_maximum():
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]), pool_size=[3, 3])
        }
        """,
        "fn (%x: Tensor[(1, 2, 6, 7), float32]) { nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 0, 2, 1]) }",
    )
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          %0 = nn.pad(%x, -3.4028235e+38f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]);
          nn.max_pool2d(%0, pool_size=[3, 3])
        }
        """,
        "fn (%x: Tensor[(1, 2, 6, 7), float32]) { nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 0, 2, 1]) }",
    )
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), int8]) {
          %0 = nn.pad(%x, -128i8, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]);
          nn.max_pool2d(%0, pool_size=[3, 3])
        }
        """,
        "fn (%x: Tensor[(1, 2, 6, 7), int8]) { nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 0, 2, 1]) }",
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.max_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]), pool_size=[3, 3])
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), int8]) {
          nn.max_pool2d(nn.pad(%x, 0i8, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]), pool_size=[3, 3])
        }
        """,
    )


def test_a_maximum_of_the_border_alone():
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), pool_size=[2, 2])
        }
        """,
    )


def test_a_mean():
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.avg_pool2d(nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), pool_size=[2, 2])
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.avg_pool2d(%x, pool_size=[2, 2], padding=[1, 0, 2, 3], count_include_pad=True)
        }
        """,
    )
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          %0 = nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]);
          nn.avg_pool2d(%0, pool_size=[2, 2], padding=[1, 1], count_include_pad=True)
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          nn.avg_pool2d(%x, pool_size=[2, 2], padding=[2, 1, 3, 4], count_include_pad=True)
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), float32]) {
          %0 = nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]);
          nn.avg_pool2d(%0, pool_size=[2, 2], padding=[1, 1])
        }
        """,
    )


def test_a_quantized_convolution():
    check(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), uint8], %w: Tensor[(3, 2, 3, 3), int8]) {
          %0 = nn.pad(%x, 3u8, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]);
          qnn.conv2d(%0, %w, 3, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=3)
        }
        """,
        """
        fn (%x: Tensor[(1, 2, 6, 7), uint8], %w: Tensor[(3, 2, 3, 3), int8]) {
          qnn.conv2d(%x, %w, 3, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=3, padding=[1, 0, 2, 3])
        }
        """,
    )
    check_unchanged(
        FOLD,
        """
        fn (%x: Tensor[(1, 2, 6, 7), uint8], %w: Tensor[(3, 2, 3, 3), int8]) {
          %0 = nn.pad(%x, 0u8, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]);
          qnn.conv2d(%0, %w, 3, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=3)
        }
        """,
    )
