"""ChooseLayouts: the same results, fewer moves than convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform.layout.choose_layouts import ChooseLayouts
from loopwright.target import Target
from tests.relay.pass_check import Constants, check, check_unchanged, drawn, program

HASWELL = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"  # layouts are priced by the vectors of the target


def _check(before: str, after: str, constants: Constants) -> None:
    with Target(HASWELL), PassContext(opt_level=3):
        check(ChooseLayouts(), before, after, constants)


def _check_unchanged(text: str, constants: Constants | None = None) -> None:
    with Target(HASWELL), PassContext(opt_level=3):
        check_unchanged(ChooseLayouts(), text, constants)


def test_between_convolutions_of_one_pixel_channels_stay_together():
    # What is left to move is the result of the pool, and weights, which are folded.
    _check(
        """
        fn (%x: Tensor[(1, 16, 14, 14), float32]) {
          nn.global_avg_pool2d(nn.conv2d(nn.bias_add(nn.relu(nn.conv2d(%x, $w)), $b), $v))
        }
        """,
        """
        fn (%x: Tensor[(1, 16, 14, 14), float32]) {
          %0 = layout_transform($w, src_layout="OIHW", dst_layout="HWIO");
          %1 = nn.relu(nn.conv2d(%x, %0, kernel_layout="HWIO", out_layout="NHWC"));
          %2 = layout_transform($v, src_layout="OIHW", dst_layout="HWIO");
          %3 = nn.conv2d(nn.bias_add(%1, $b, axis=3), %2, data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(nn.global_avg_pool2d(%3, layout="NHWC"), src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        drawn(w=(32, 16, 1, 1), b=(32,), v=(16, 32, 1, 1)),
    )


def test_one_convolution_whose_result_is_given_back_stays():
    _check_unchanged("fn (%x: Tensor[(1, 16, 9, 9), float32]) { nn.relu(nn.conv2d(%x, $w)) }", drawn(w=(16, 16, 1, 1)))


def test_residual_sums_and_pools_follow():
    # Three planes are read as they are.
    _check(
        """
        fn (%x: Tensor[(1, 3, 32, 32), float32]) {
          %0 = nn.relu(nn.conv2d(%x, $w, padding=[1, 1]));
          %1 = nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2], padding=[1, 1]);
          %2 = nn.conv2d(nn.relu(nn.conv2d(%1, $a)), $b);
          nn.batch_flatten(nn.global_avg_pool2d(nn.relu(add(%1, %2))))
        }
        """,
        """
        fn (%x: Tensor[(1, 3, 32, 32), float32]) {
          %0 = layout_transform($w, src_layout="OIHW", dst_layout="HWIO");
          %1 = nn.relu(nn.conv2d(%x, %0, padding=[1, 1], kernel_layout="HWIO", out_layout="NHWC"));
          %2 = nn.max_pool2d(%1, pool_size=[3, 3], strides=[2, 2], padding=[1, 1], layout="NHWC");
          %3 = layout_transform($a, src_layout="OIHW", dst_layout="HWIO");
          %4 = nn.relu(nn.conv2d(%2, %3, data_layout="NHWC", kernel_layout="HWIO"));
          %5 = layout_transform($b, src_layout="OIHW", dst_layout="HWIO");
          %6 = nn.relu(add(%2, nn.conv2d(%4, %5, data_layout="NHWC", kernel_layout="HWIO")));
          %7 = nn.global_avg_pool2d(%6, layout="NHWC");
          nn.batch_flatten(layout_transform(%7, src_layout="NHWC", dst_layout="NCHW"))
        }
        """,
        drawn(w=(16, 3, 3, 3), a=(32, 16, 1, 1), b=(16, 32, 1, 1)),
    )


def test_concatenations_splits_and_slices():
    _check(
        """
        fn (%x: Tensor[(1, 16, 12, 12), float32]) {
          %0 = concatenate((nn.conv2d(%x, $a), nn.conv2d(%x, $b)), axis=1);
          %1 = split(nn.conv2d(%0, $c), indices_or_sections=3, axis=1);
          %2 = nn.conv2d(multiply(%1.0, nn.relu(%1.2)), $d);
          nn.global_avg_pool2d(strided_slice(%2, begin=[0, 2, 0, 0], end=[1, 9, 12, 12]))
        }
        """,
        """
        fn (%x: Tensor[(1, 16, 12, 12), float32]) {
          %0 = layout_transform($a, src_layout="OIHW", dst_layout="HWIO");
          %1 = nn.conv2d(%x, %0, kernel_layout="HWIO", out_layout="NHWC");
          %2 = layout_transform($b, src_layout="OIHW", dst_layout="HWIO");
          %3 = nn.conv2d(%x, %2, kernel_layout="HWIO", out_layout="NHWC");
          %4 = concatenate((%1, %3), axis=3);
          %5 = layout_transform($c, src_layout="OIHW", dst_layout="HWIO");
          %6 = nn.conv2d(%4, %5, data_layout="NHWC", kernel_layout="HWIO");
          %7 = split(%6, indices_or_sections=3, axis=3);
          %8 = multiply(%7.0, nn.relu(%7.2));
          %9 = layout_transform($d, src_layout="OIHW", dst_layout="HWIO");
          %10 = nn.conv2d(%8, %9, data_layout="NHWC", kernel_layout="HWIO");
          %11 = strided_slice(%10, begin=[0, 2, 0, 0], end=[1, 9, 12, 12], axes=[0, 3, 1, 2]);
          layout_transform(nn.global_avg_pool2d(%11, layout="NHWC"), src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        drawn(a=(16, 16, 1, 1), b=(32, 16, 1, 1), c=(48, 48, 1, 1), d=(16, 16, 1, 1)),
    )


def test_depthwise_and_grouped_convolutions():
    # Groups do not mix layouts.
    _check(
        """
        fn (%x: Tensor[(1, 32, 14, 14), float32]) {
          %0 = nn.conv2d(%x, $a, padding=[1, 1], groups=32);
          %1 = nn.conv2d(nn.conv2d(%0, $b), $c);
          nn.global_max_pool2d(nn.conv2d(%1, $d, strides=[2, 2], groups=4))
        }
        """,
        """
        fn (%x: Tensor[(1, 32, 14, 14), float32]) {
          %0 = nn.conv2d(%x, $a, padding=[1, 1], groups=32);
          %1 = layout_transform($b, src_layout="OIHW", dst_layout="HWIO");
          %2 = nn.conv2d(%0, %1, kernel_layout="HWIO", out_layout="NHWC");
          %3 = layout_transform($c, src_layout="OIHW", dst_layout="HWIO");
          %4 = nn.conv2d(%2, %3, data_layout="NHWC", kernel_layout="HWIO", out_layout="NCHW");
          nn.global_max_pool2d(nn.conv2d(%4, $d, strides=[2, 2], groups=4))
        }
        """,
        drawn(a=(32, 1, 3, 3), b=(64, 32, 1, 1), c=(32, 64, 1, 1), d=(64, 8, 3, 3)),
    )


def test_what_has_no_rule_reads_planes():
    _check_unchanged(
        """
        fn (%x: Tensor[(1, 16, 8, 8), float32]) {
          %0 = transpose(reshape(nn.conv2d(%x, $a), newshape=[1, 4, 4, 8, 8]), axes=[0, 2, 1, 3, 4]);
          %1 = nn.conv2d(reshape(%0, newshape=[1, 16, 8, 8]), $b);
          (%1, nn.relu(%1))
        }
        """,
        drawn(a=(16, 16, 1, 1), b=(16, 16, 1, 1)),
    )


def test_channels_may_be_unknown_or_none():
    _check_unchanged(
        "fn (%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(?, 16, 1, 1), float32]) { nn.conv2d(%x, %w) }"
    )
    # A convolution without results costs nothing in any layout.
    _check(
        "fn (%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(0, 16, 1, 1), float32]) { nn.conv2d(%x, %w) }",
        """
        fn (%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(0, 16, 1, 1), float32]) {
          %0 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
          %1 = nn.conv2d(%x, %0, kernel_layout="HWIO", out_layout="NHWC");
          layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {},
    )


def test_few_channels_stay_in_planes():
    _check_unchanged(
        "fn (%x: Tensor[(1, 2, 30, 30), float32]) { nn.relu(nn.conv2d(nn.conv2d(%x, $a), $b)) }",
        drawn(a=(2, 2, 3, 3), b=(2, 2, 3, 3)),
    )


@pytest.mark.parametrize("level", [0, 3])
def test_compiled_it_computes_the_same(level: int):
    before = program(
        """
        fn (%x: Tensor[(1, 16, 14, 14), float32]) {
          %0 = nn.max_pool2d(nn.conv2d(%x, $w), pool_size=[2, 2], strides=[2, 2]);
          nn.global_avg_pool2d(nn.conv2d(%0, $v))
        }
        """,
        drawn(w=(32, 16, 3, 3), v=(16, 32, 1, 1)),
    )
    x = np.random.default_rng(0).integers(-4, 5, (1, 16, 14, 14)).astype("float32")
    with PassContext(opt_level=level):
        model = relay.build(before)
    # Sums of integers, of at most 36 * 32 * 3 * 144 * 12 < 2^24, are exact in any order; a mean rounds once, or twice
    # where it is a product with a reciprocal.
    np.testing.assert_allclose(model(x), evaluate(before["main"], [x]), rtol=3 * 2.0**-24, atol=0)
