"""ConvertLayout: convolutions in another layout, what is between them follows, nothing is moved in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright.relay.transform import ConvertLayout, FoldConstant, LayoutConfig, SimplifyExpr
from loopwright.relay.transform.layout.convert_layout import BadLayouts
from tests.relay.pass_check import check, check_unchanged, drawn

NHWC = {"nn.conv2d": ["NHWC", "default"]}


def test_one_convolution():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.conv2d(%x, $w, padding=[1, 1]) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )


def test_between_two_convolutions_nothing_is_moved():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          nn.conv2d(nn.relu(add(nn.conv2d(%x, $w, padding=[1, 1]), $c)), $w1, padding=[1, 1])
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          %2 = nn.relu(add(%1, $reshaped));
          %3 = nn.conv2d(%2, $hwio1, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {
            **drawn(w=(4, 4, 3, 3), c=(4, 1, 1), w1=(4, 4, 3, 3)),
            "hwio": lambda w: w.transpose(2, 3, 1, 0),
            "reshaped": lambda c: c.reshape(1, 1, 1, 4),
            "hwio1": lambda w1: w1.transpose(2, 3, 1, 0),
        },
    )


@pytest.mark.parametrize(
    ("between", "follows"),
    [
        ("nn.bias_add(%y, $c)", "nn.bias_add(%y, $c, axis=3)"),
        (
            "nn.max_pool2d(%y, pool_size=[2, 2], padding=[1, 0, 0, 1])",
            'nn.max_pool2d(%y, pool_size=[2, 2], padding=[1, 0, 0, 1], layout="NHWC")',
        ),
        ("nn.avg_pool2d(%y, pool_size=[2, 2])", 'nn.avg_pool2d(%y, pool_size=[2, 2], layout="NHWC")'),
        (
            "nn.pad(%y, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])",
            "nn.pad(%y, 0, pad_width=[[0, 0], [1, 2], [0, 1], [0, 0]])",
        ),
        ("concatenate((%y, abs(%y)), axis=2)", "concatenate((%y, abs(%y)), axis=1)"),
        ("sum(%y, axis=[2, 3], keepdims=True)", "sum(%y, axis=[1, 2], keepdims=True)"),
        ("max(%y, axis=1, keepdims=True, exclude=True)", "max(%y, axis=[0, 1, 2], keepdims=True)"),
        ("multiply(clip(%y, a_min=-2.0f, a_max=3.0f), 2f)", "multiply(clip(%y, a_min=-2.0f, a_max=3.0f), 2f)"),
        ("subtract(multiply(%y, $channels), $columns)", "subtract(multiply(%y, $channels_nhwc), $columns_nhwc)"),
        ("maximum($image, %y)", "maximum($image_nhwc, %y)"),
        (
            "strided_slice(%y, begin=[0, 0, 1], end=[1, 4, 5])",
            "strided_slice(%y, begin=[0, 0, 1], end=[1, 4, 5], axes=[0, 3, 1])",
        ),
        ("strided_slice(%y, begin=[1], end=[5], axes=[2])", "strided_slice(%y, begin=[1], end=[5], axes=[1])"),
        ("split(%y, indices_or_sections=2, axis=2).1", "split(%y, indices_or_sections=2, axis=1).1"),
        ("nn.upsampling(%y, scale_h=2, scale_w=2)", 'nn.upsampling(%y, scale_h=2, scale_w=2, layout="NHWC")'),
        ("nn.prelu(%y, $c)", "nn.prelu(%y, $c, axis=3)"),
        ("add(%y, abs(%y))", "add(%y, abs(%y))"),
    ],
)
def test_operators_that_follow(between: str, follows: str):
    """`%y` is what the first convolution gives, in both texts."""
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        f"""
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {{
          %0 = nn.conv2d(%x, $w, padding=[1, 1]);
          nn.conv2d({between.replace("%y", "%0")}, $w1)
        }}
        """,
        f"""
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {{
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          %2 = {follows.replace("%y", "%1")};
          %3 = nn.conv2d(%2, $hwio1, data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")
        }}
        """,
        {
            **drawn(w=(4, 4, 3, 3), w1=(4, 4, 1, 1), c=(4,), channels=(1, 4, 1, 1), columns=(6,), image=(4, 6, 6)),
            "hwio": lambda w: w.transpose(2, 3, 1, 0),
            "hwio1": lambda w1: w1.transpose(2, 3, 1, 0),
            "channels_nhwc": lambda channels: channels.reshape(1, 1, 1, 4),
            "columns_nhwc": lambda columns: columns.reshape(1, 1, 6, 1),
            "image_nhwc": lambda image: image.transpose(1, 2, 0).reshape(1, 6, 6, 4),
        },
    )


def test_batch_norm_follows():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.batch_norm(nn.conv2d(%x, $w, padding=[1, 1]), $gamma, $beta, $mean, $var, epsilon=1.0f).0;
          nn.conv2d(%0, $w1, padding=[1, 1])
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          %2 = nn.batch_norm(%1, $gamma, $beta, $mean, $var, axis=3, epsilon=1.0f).0;
          %3 = nn.conv2d(%2, $hwio1, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {
            **drawn(w=(4, 4, 3, 3), w1=(4, 4, 3, 3), gamma=(4,), beta=(4,), mean=(4,)),
            "var": np.full(4, 3.0, "float32"),
            "hwio": lambda w: w.transpose(2, 3, 1, 0),
            "hwio1": lambda w1: w1.transpose(2, 3, 1, 0),
        },
    )


def test_reductions_that_drop_axes():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { sum(nn.conv2d(%x, $w, padding=[1, 1]), axis=[2, 3]) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          sum(%1, axis=[1, 2])
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { sum(nn.conv2d(%x, $w, padding=[1, 1]), axis=2) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          transpose(sum(%1, axis=[1]), axes=[0, 2, 1])
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )


def test_operators_that_do_not_follow_read_what_they_read():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { reshape(nn.conv2d(%x, $w, padding=[1, 1]), newshape=[1, -1]) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          reshape(layout_transform(%1, src_layout="NHWC", dst_layout="NCHW"), newshape=[1, -1])
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { cumsum(nn.conv2d(%x, $w, padding=[1, 1]), axis=1) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          cumsum(layout_transform(%1, src_layout="NHWC", dst_layout="NCHW"), axis=1)
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )


def test_a_residual_block():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.conv2d(%x, $w, padding=[1, 1]);
          nn.relu(add(nn.conv2d(nn.relu(%0), $w1, padding=[1, 1]), %0))
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          %2 = nn.conv2d(nn.relu(%1), $hwio1, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(nn.relu(add(%2, %1)), src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {
            **drawn(w=(4, 4, 3, 3), w1=(4, 4, 3, 3)),
            "hwio": lambda w: w.transpose(2, 3, 1, 0),
            "hwio1": lambda w1: w1.transpose(2, 3, 1, 0),
        },
    )


def test_depthwise_and_grouped():
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.conv2d(%x, $w, groups=4) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwoi, groups=4, data_layout="NHWC", kernel_layout="HWOI");
          layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {**drawn(w=(4, 1, 3, 3)), "hwoi": lambda w: w.transpose(2, 3, 0, 1)},
    )
    check(
        [ConvertLayout(NHWC), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.conv2d(%x, $w, groups=2) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.conv2d(%0, $hwio, groups=2, data_layout="NHWC", kernel_layout="HWIO");
          layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {**drawn(w=(6, 2, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )


def test_back_to_nchw():
    check(
        [ConvertLayout({"nn.conv2d": ["NCHW", "default"]}), FoldConstant()],
        """
        fn (%x: Tensor[(1, 6, 6, 4), float32]) {
          nn.relu(nn.conv2d(%x, $w, data_layout="NHWC", kernel_layout="HWIO"))
        }
        """,
        """
        fn (%x: Tensor[(1, 6, 6, 4), float32]) {
          %0 = nn.relu(nn.conv2d(layout_transform(%x, src_layout="NHWC", dst_layout="NCHW"), $oihw));
          layout_transform(%0, src_layout="NCHW", dst_layout="NHWC")
        }
        """,
        {**drawn(w=(3, 3, 4, 5)), "oihw": lambda w: w.transpose(3, 2, 0, 1)},
    )


def test_other_operators_may_be_named():
    check(
        [ConvertLayout({"nn.max_pool2d": ["NHWC"]}), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.max_pool2d(%x, pool_size=[2, 2]) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = nn.max_pool2d(%0, pool_size=[2, 2], layout="NHWC");
          layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
    )
    check(
        [ConvertLayout({"nn.conv1d": ["NWC", "WIO"]}), FoldConstant()],
        "fn (%x: Tensor[(1, 4, 6), float32]) { nn.conv1d(%x, $w) }",
        """
        fn (%x: Tensor[(1, 4, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCW", dst_layout="NWC");
          %1 = nn.conv1d(%0, $wio, data_layout="NWC", kernel_layout="WIO");
          layout_transform(%1, src_layout="NWC", dst_layout="NCW")
        }
        """,
        {**drawn(w=(4, 4, 3)), "wio": lambda w: w.transpose(2, 1, 0)},
    )


def test_those_in_the_layout_already_stay():
    check_unchanged(
        ConvertLayout(NHWC),
        'fn (%x: Tensor[(1, 6, 6, 4), float32]) { nn.conv2d(%x, $w, data_layout="NHWC", kernel_layout="HWIO") }',
        drawn(w=(3, 3, 4, 5)),
    )
    check_unchanged(
        ConvertLayout({"nn.conv3d": ["NDHWC", "default"]}),
        'fn (%x: Tensor[(1, 6, 6, 4), float32]) { nn.conv2d(%x, $w, data_layout="NHWC", kernel_layout="HWIO") }',
        drawn(w=(3, 3, 4, 5)),
    )


def test_layers_to_skip():
    with LayoutConfig(skip_layers=[0]):
        check(
            ConvertLayout(NHWC),
            """
            fn (%x: Tensor[(1, 4, 6, 6), float32]) {
              nn.conv2d(nn.conv2d(%x, $w, padding=[1, 1]), $w1, padding=[1, 1])
            }
            """,
            """
            fn (%x: Tensor[(1, 4, 6, 6), float32]) {
              %0 = nn.conv2d(%x, $w, padding=[1, 1]);
              %1 = layout_transform(%0, src_layout="NCHW", dst_layout="NHWC");
              %2 = layout_transform($w1, src_layout="OIHW", dst_layout="HWIO");
              %3 = nn.conv2d(%1, %2, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
              layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")
            }
            """,
            drawn(w=(4, 4, 3, 3), w1=(4, 4, 3, 3)),
        )


def test_an_operator_without_layouts():
    with pytest.warns(UserWarning, match=r"nn\.dense has no layouts"):
        check_unchanged(
            ConvertLayout({"nn.dense": ["NC"]}),
            "fn (%x: Tensor[(2, 4), float32]) { nn.dense(%x, $w) }",
            drawn(w=(3, 4)),
        )


@pytest.mark.parametrize("given", ["NHWC", {"nn.conv2d": "NHWC"}, {"nn.conv2d": []}, {"nn.conv2d": [1]}])
def test_what_are_no_layouts(given: Any):
    with pytest.raises(BadLayouts, match="ConvertLayout takes a list of layouts for each operator"):
        ConvertLayout(given)


def test_quantized_convolutions():
    check(
        [ConvertLayout({"qnn.conv2d": ["NHWC", "default"]}), FoldConstant()],
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = qnn.conv2d(%x, $w, 1, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=4);
          %1 = qnn.requantize(%0, 0.25f, 0, 4f, 1, axis=1);
          %2 = qnn.conv2d(%1, $w1, 1, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=4);
          qnn.requantize(%2, 0.25f, 0, 4f, 1, axis=1)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), int8]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
          %1 = qnn.conv2d(%0, $hwio, 1, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=4, data_layout="NHWC",
              kernel_layout="HWIO");
          %2 = qnn.requantize(%1, 0.25f, 0, 4f, 1, axis=3);
          %3 = qnn.conv2d(%2, $hwio1, 1, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=4, data_layout="NHWC",
              kernel_layout="HWIO");
          %4 = qnn.requantize(%3, 0.25f, 0, 4f, 1, axis=3);
          layout_transform(%4, src_layout="NHWC", dst_layout="NCHW")
        }
        """,
        {
            **drawn("int8", w=(4, 4, 3, 3), w1=(4, 4, 3, 3)),
            "hwio": lambda w: w.transpose(2, 3, 1, 0),
            "hwio1": lambda w1: w1.transpose(2, 3, 1, 0),
        },
    )


def test_simplified_changes_vanish():
    check(
        [ConvertLayout(NHWC), FoldConstant(), SimplifyExpr()],
        """
        fn (%x: Tensor[(1, 6, 6, 4), float32]) {
          transpose(nn.conv2d(transpose(%x, axes=[0, 3, 1, 2]), $w, padding=[1, 1]), axes=[0, 2, 3, 1])
        }
        """,
        """
        fn (%x: Tensor[(1, 6, 6, 4), float32]) {
          nn.conv2d(%x, $hwio, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
        }
        """,
        {**drawn(w=(4, 4, 3, 3)), "hwio": lambda w: w.transpose(2, 3, 1, 0)},
    )
