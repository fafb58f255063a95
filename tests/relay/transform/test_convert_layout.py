"""ConvertLayout: convolutions in another layout, what is between them follows, nothing is moved in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import ConvertLayout, FoldConstant, LayoutConfig, SimplifyExpr
from loopwright.relay.transform.convert_layout import BadLayouts
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function, operators

NHWC = {"nn.conv2d": ["NHWC", "default"]}
RANDOM = np.random.default_rng(0)


def _x(*shape: int) -> relay.Var:
    return relay.var("x", shape=shape or (1, 4, 6, 6))


def _const(*shape: int) -> relay.Constant:
    return relay.const(RANDOM.integers(-3, 4, shape).astype("float32"))


def _conv(x: Any, out: int = 4, into: int = 4, window: int = 3, **options: Any) -> Any:
    return relay.nn.conv2d(x, _const(out, into, window, window), padding=(window // 2,) * 2, **options)


def _converts(body: Any, transforms: int, wanted: Any = None) -> relay.Function:
    """After folding, so many changes of layout are left (those of constants are folded)."""
    before = function(body)
    found = apply([ConvertLayout(wanted or NHWC), FoldConstant()], before)
    assert operators(found).count("layout_transform") + operators(found).count("transpose") == transforms
    assert_same_results(before, found)
    return found


def test_one_convolution():
    found = _converts(_conv(_x()), 2)
    conv = found.body.args[0]
    assert (conv.attrs.data_layout, conv.attrs.kernel_layout) == ("NHWC", "HWIO")


def test_between_two_convolutions_nothing_is_moved():
    body = _conv(relay.nn.relu(_conv(_x()) + _const(4, 1, 1)))
    _converts(body, 2)


@pytest.mark.parametrize(
    "between",
    [
        lambda y: relay.nn.bias_add(y, _const(4)),
        lambda y: relay.nn.max_pool2d(y, (2, 2), padding=(1, 0, 0, 1)),
        lambda y: relay.nn.avg_pool2d(y, (2, 2)),
        lambda y: relay.nn.pad(y, ((0, 0), (0, 0), (1, 2), (0, 1))),
        lambda y: relay.concatenate([y, relay.abs(y)], 2),
        lambda y: relay.sum(y, axis=(2, 3), keepdims=True),
        lambda y: relay.max(y, axis=1, keepdims=True, exclude=True),
        lambda y: relay.clip(y, -2.0, 3.0) * relay.const(2.0),
        lambda y: y * _const(1, 4, 1, 1) - _const(6),
        lambda y: relay.maximum(_const(4, 6, 6), y),
        lambda y: relay.strided_slice(y, (0, 0, 1), (1, 4, 5)),
        lambda y: relay.strided_slice(y, (1,), (5,), axes=(2,)),
        lambda y: relay.split(y, 2, 2)[1],
        lambda y: relay.nn.upsampling(y, 2, 2),
        lambda y: relay.nn.prelu(y, _const(4)),
        lambda y: y + relay.abs(y),
    ],
)
def test_operators_that_follow(between: Any):
    _converts(_conv(between(_conv(_x())), window=1), 2)


def test_batch_norm_follows():
    statistics = [_const(4), _const(4), _const(4), relay.const(np.full(4, 3.0, "float32"))]
    body = _conv(relay.nn.batch_norm(_conv(_x()), *statistics, epsilon=1.0)[0])
    _converts(body, 2)


def test_reductions_that_drop_axes():
    _converts(relay.sum(_conv(_x()), axis=(2, 3)), 1)
    found = _converts(relay.sum(_conv(_x()), axis=2), 2)
    assert "transpose" in operators(found)


def test_operators_that_do_not_follow_read_what_they_read():
    _converts(relay.reshape(_conv(_x()), (1, -1)), 2)
    _converts(relay.cumsum(_conv(_x()), axis=1), 2)


def test_a_residual_block():
    x = _x()
    y = _conv(x)
    _converts(relay.nn.relu(_conv(relay.nn.relu(y)) + y), 2)


def test_depthwise_and_grouped():
    found = _converts(relay.nn.conv2d(_x(), _const(4, 1, 3, 3), groups=4), 2)
    assert found.body.args[0].attrs.kernel_layout == "HWOI"
    _converts(relay.nn.conv2d(_x(), _const(6, 2, 3, 3), groups=2), 2)


def test_back_to_nchw():
    conv = relay.nn.conv2d(_x(1, 6, 6, 4), _const(3, 3, 4, 5), data_layout="NHWC", kernel_layout="HWIO")
    found = _converts(relay.nn.relu(conv), 2, {"nn.conv2d": ["NCHW", "default"]})
    assert any(getattr(call.attrs, "data_layout", "") == "NCHW" for call in _calls(found))


def _calls(found: relay.Function) -> list[Any]:
    from loopwright.relay.visitor import post_order

    return [each for each in post_order(found.body) if isinstance(each, relay.Call)]


def test_other_operators_may_be_named():
    found = _converts(relay.nn.max_pool2d(_x(), (2, 2)), 2, {"nn.max_pool2d": ["NHWC"]})
    assert found.body.args[0].attrs.layout == "NHWC"
    _converts(relay.nn.conv1d(_x(1, 4, 6), _const(4, 4, 3)), 2, {"nn.conv1d": ["NWC", "WIO"]})


def test_those_in_the_layout_already_stay():
    conv = relay.nn.conv2d(_x(1, 6, 6, 4), _const(3, 3, 4, 5), data_layout="NHWC", kernel_layout="HWIO")
    assert_unchanged(ConvertLayout(NHWC), conv)
    assert_unchanged(ConvertLayout({"nn.conv3d": ["NDHWC", "default"]}), conv)


def test_layers_to_skip():
    body = _conv(_conv(_x()))
    with LayoutConfig(skip_layers=[0]):
        found = apply(ConvertLayout(NHWC), body)
    layouts = [call.attrs.data_layout for call in _calls(found) if call.op.name == "nn.conv2d"]
    assert layouts == ["NCHW", "NHWC"]


def test_an_operator_without_layouts():
    with pytest.warns(UserWarning, match=r"nn\.dense has no layouts"):
        apply(ConvertLayout({"nn.dense": ["NC"]}), relay.nn.dense(_x(2, 4), _const(3, 4)))


@pytest.mark.parametrize("given", ["NHWC", {"nn.conv2d": "NHWC"}, {"nn.conv2d": []}, {"nn.conv2d": [1]}])
def test_what_are_no_layouts(given: Any):
    with pytest.raises(BadLayouts, match="ConvertLayout takes a list of layouts for each operator"):
        ConvertLayout(given)


def test_quantized_convolutions():
    q = relay.qnn.op
    x = relay.var("x", shape=(1, 4, 6, 6), dtype="int8")
    scale, zero = relay.const(0.5), relay.const(1)

    def conv(data: Any) -> Any:
        weight = relay.const(RANDOM.integers(-3, 4, (4, 4, 3, 3)), "int8")
        made = q.conv2d(data, weight, zero, relay.const(0), scale, scale, kernel_size=(3, 3), channels=4)
        return q.requantize(made, relay.const(0.25), relay.const(0), relay.const(4.0), zero, axis=1)

    _converts(conv(conv(x)), 2, {"qnn.conv2d": ["NHWC", "default"]})


def test_simplified_changes_vanish():
    x = _x(1, 6, 6, 4)
    body = relay.transpose(_conv(relay.transpose(x, (0, 3, 1, 2))), (0, 2, 3, 1))
    found = apply([ConvertLayout(NHWC), FoldConstant(), SimplifyExpr()], body)
    assert operators(found) == ["nn.conv2d"]
