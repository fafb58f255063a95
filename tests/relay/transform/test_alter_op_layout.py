"""AlterOpLayout and Legalize: what users register takes the place of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.testing.temp_op_attr import TempOpAttr
from loopwright.relay.transform import (
    AlterOpLayout,
    Legalize,
    register_alter_op_layout,
    register_legalize,
)
from tests.relay.pass_check import check, check_unchanged, drawn


@pytest.fixture
def blocked() -> Iterator[None]:
    """Convolutions of 8 channels in blocks of 4."""

    @register_alter_op_layout("nn.conv2d")
    def alter(attrs: Any, inputs: Any, types: Any, out_type: Any) -> Any:
        if attrs.data_layout != "NCHW" or types[0].shape[1] % 4 or types[1].shape[0] % 4:
            return None
        data = relay.layout_transform(inputs[0], "NCHW", "NCHW4c")
        weight = relay.layout_transform(inputs[1], "OIHW", "OIHW4i4o")
        options = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o", "out_layout": "NCHW4c"}
        conv = relay.nn.contrib_conv2d_nchwc(data, weight, padding=attrs.padding, strides=attrs.strides, **options)
        return relay.layout_transform(conv, "NCHW4c", "NCHW")

    yield
    relay.op.get("nn.conv2d").reset_attr("FTVMAlterOpLayout")


@pytest.mark.usefixtures("blocked")
def test_between_two_convolutions_nothing_is_moved():
    check(
        AlterOpLayout(),
        """
        fn (%x: Tensor[(1, 8, 6, 6), float32]) {
          %0 = nn.relu(add(nn.conv2d(%x, $w, padding=[1, 1]), $bias));
          nn.conv2d(multiply(%0, 2f), $v)
        }
        """,
        """
        fn (%x: Tensor[(1, 8, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
          %1 = layout_transform($w, src_layout="OIHW", dst_layout="OIHW4i4o");
          %2 = nn.contrib_conv2d_nchwc(%0, %1, padding=[1, 1], data_layout="NCHW4c", kernel_layout="OIHW4i4o",
              out_layout="NCHW4c");
          %3 = layout_transform(expand_dims($bias, axis=0), src_layout="NCHW", dst_layout="NCHW4c");
          %4 = multiply(nn.relu(add(%2, %3)), 2f);
          %5 = layout_transform($v, src_layout="OIHW", dst_layout="OIHW4i4o");
          %6 = nn.contrib_conv2d_nchwc(%4, %5, data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c");
          layout_transform(%6, src_layout="NCHW4c", dst_layout="NCHW")
        }
        """,
        drawn(w=(8, 8, 3, 3), bias=(8, 1, 1), v=(4, 8, 1, 1)),
    )


@pytest.mark.usefixtures("blocked")
def test_those_that_are_not_altered_stay():
    check_unchanged(
        AlterOpLayout(), "fn (%x: Tensor[(1, 3, 6, 6), float32]) { nn.conv2d(%x, $w) }", drawn(w=(8, 3, 3, 3))
    )


@pytest.mark.usefixtures("blocked")
def test_an_operand_along_another_axis_is_not_blocked():
    check(
        AlterOpLayout(),
        "fn (%x: Tensor[(1, 8, 6, 6), float32]) { add(nn.conv2d(%x, $w), $row) }",
        """
        fn (%x: Tensor[(1, 8, 6, 6), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
          %1 = layout_transform($w, src_layout="OIHW", dst_layout="OIHW4i4o");
          %2 = nn.contrib_conv2d_nchwc(%0, %1, data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c");
          add(layout_transform(%2, src_layout="NCHW4c", dst_layout="NCHW"), $row)
        }
        """,
        drawn(w=(8, 8, 1, 1), row=(6,)),
    )


def test_nothing_registered_changes_nothing():
    convolution = "fn (%x: Tensor[(1, 8, 6, 6), float32]) { nn.conv2d(%x, $w) }"
    check_unchanged(AlterOpLayout(), convolution, drawn(w=(8, 8, 1, 1)))
    check_unchanged(Legalize(), convolution, drawn(w=(8, 8, 1, 1)))


def test_legalize():
    @register_legalize("nn.leaky_relu")
    def legalize(attrs: Any, inputs: Any, types: Any) -> Any:
        if attrs.alpha != 0.5:
            return None
        assert str(types[-1]) == "Tensor[(3), float32]"
        return relay.maximum(inputs[0], inputs[0] * relay.const(attrs.alpha))

    try:
        check(
            Legalize(),
            "fn (%x: Tensor[(3), float32]) { nn.leaky_relu(%x, alpha=0.5f) }",
            "fn (%x: Tensor[(3), float32]) { maximum(%x, multiply(%x, 0.5f)) }",
        )
        check_unchanged(Legalize(), "fn (%x: Tensor[(3), float32]) { nn.leaky_relu(%x, alpha=0.25f) }")
    finally:
        relay.op.get("nn.leaky_relu").reset_attr("FTVMLegalize")


def test_a_call_that_names_other_layouts_is_brought_into_them():
    x, w = relay.var("x", shape=(1, 8, 5, 5)), relay.var("w", shape=(8, 8, 3, 3))

    def in_blocks(attrs, inputs, types, out_type):
        named = {**dict(attrs.items()), "data_layout": "NCHW4c", "kernel_layout": "OIHW4i"}
        return relay.nn.conv2d(*inputs, **named)

    before = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), channels=8)))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks):
        after = relay.transform.AlterOpLayout()(relay.IRModule.from_expr(before))["main"]
    assert after.body.attrs.src_layout == "NCHW4c" and after.body.args[0].op.name == "nn.relu"
    rng = np.random.default_rng(0)
    given = [rng.random(shape, "float32") for shape in ((1, 8, 5, 5), (8, 8, 3, 3))]
    np.testing.assert_allclose(evaluate(after, given), evaluate(before, given), rtol=1e-5)


def test_weights_in_blocks_have_the_type_that_the_attributes_say():
    x, w = relay.var("x", shape=(1, 2, 5, 5, 4)), relay.var("w")
    options = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i2o", "channels": 6, "kernel_size": (3, 3)}
    call = relay.testing.run_infer_type(relay.nn.conv2d(x, w, out_layout="NCHW2c", **options))
    assert w.checked_type.shape == (3, 2, 3, 3, 4, 2) and call.checked_type.shape == (1, 3, 3, 3, 2)
