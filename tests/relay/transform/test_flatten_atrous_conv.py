"""FlattenAtrousConv: a convolution of batches of space is a dilated one."""

from __future__ import annotations

import pytest

from loopwright import relay
from loopwright.relay.transform import FlattenAtrousConv
from tests.relay.transform.graphs import assert_becomes, assert_unchanged

LAYOUTS = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def _atrous(x: relay.Expr, w: relay.Expr, pads: object, crops: object, **options: object) -> relay.Expr:
    spread = relay.nn.space_to_batch_nd(x, (2, 2), pads)
    return relay.nn.batch_to_space_nd(relay.nn.conv2d(spread, w, **LAYOUTS, **options), (2, 2), crops)


@pytest.mark.parametrize(
    ("pads", "crops", "padding"),
    [
        (((2, 2), (2, 2)), ((0, 0), (0, 0)), (2, 2, 2, 2)),
        (((2, 2), (3, 3)), ((0, 0), (1, 1)), (2, 2, 2, 2)),
        (((0, 0), (0, 0)), ((0, 0), (0, 0)), (0, 0, 0, 0)),
    ],
)
def test_it_is_a_dilated_convolution(pads: object, crops: object, padding: tuple[int, ...]):
    x, w = relay.var("x", shape=(1, 8, 8, 3)), relay.var("w", shape=(3, 3, 3, 4))
    after = relay.nn.conv2d(x, w, padding=padding, dilation=(2, 2), **LAYOUTS)
    assert_becomes(FlattenAtrousConv(), _atrous(x, w, pads, crops), after)


def test_strides_stay():
    x, w = relay.var("x", shape=(1, 8, 8, 3)), relay.var("w", shape=(3, 3, 3, 4))
    before = _atrous(x, w, ((2, 2), (2, 2)), ((0, 0), (0, 0)), strides=(2, 2))
    assert_unchanged(FlattenAtrousConv(), before)
