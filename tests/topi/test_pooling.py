"""Pooling against numpy: small integers, so that sums are exact and a mean is rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.evaluator import evaluate
from loopwright.topi.testing.pooling import pool_in_layout

nn = topi.nn


def check(op, shape, kernel, stride, dilation, padding, kind, ceil=False, layout="NCHW", counted=True, dtype="float32"):
    data = te.placeholder(shape, name="data", dtype=dtype)
    out = op(data, kernel, stride, dilation, padding, kind, ceil, layout, counted)
    x = np.random.default_rng(len(shape)).integers(-9, 10, shape).astype(dtype)
    count = len(kernel)
    expected = pool_in_layout(
        x, kernel, stride, dilation, padding[:count], padding[count:], kind, counted, ceil, dtype, layout
    )
    assert tuple(int(size) for size in out.shape) == expected.shape
    result = np.zeros(expected.shape, dtype)
    evaluate(te.create_prim_func([data, out]), x, result)
    assert np.array_equal(result, expected)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "padding"),
    [
        ((2, 2), (2, 2), (1, 1), (0, 0, 0, 0)),
        ((3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
        ((3, 2), (1, 2), (2, 1), (0, 1, 2, 0)),
        ((1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((4, 4), (4, 4), (1, 1), (2, 3, 2, 3)),
    ],
)
@pytest.mark.parametrize("ceil", [False, True])
def test_pool2d(kind, kernel, stride, dilation, padding, ceil):
    for counted in (True, False) if kind == "avg" else (True,):
        check(nn.pool2d, (2, 3, 7, 8), kernel, stride, dilation, padding, kind, ceil, "NCHW", counted)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCW", "NWC"])
def test_pool1d(kind, layout):
    check(nn.pool1d, (2, 9, 7), (3,), (2,), (1,), (1, 0), kind, False, layout)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
def test_pool3d(kind, layout):
    check(nn.pool3d, (1, 4, 5, 4, 3), (2, 2, 3), (1, 2, 1), (1, 1, 1), (1, 0, 1, 0, 1, 1), kind, False, layout, False)


def test_blocked_channels():
    data = te.placeholder((1, 2, 6, 6, 4), name="data")
    assert [int(size) for size in nn.pool2d(data, 2, 2, 1, (0,) * 4, "max", layout="NCHW4c").shape] == [1, 2, 3, 3, 4]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_every_type(dtype, kind):
    check(nn.pool2d, (1, 2, 5, 5), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), kind, dtype=dtype)


def test_a_count_that_its_type_does_not_hold():
    data = te.placeholder((1, 1, 16, 16), name="data", dtype="int8")
    out = np.zeros((1, 1, 1, 1), "int8")
    x = np.zeros((1, 1, 16, 16), "int8")
    lw.build(te.create_prim_func([data, nn.pool2d(data, 16, 1, 1, (0,) * 4, "avg")]))(x, out)  # 256 is 0 in an int8
    assert out.item() == 0


@pytest.mark.parametrize(
    ("shape", "layout", "axes"),
    [((2, 3, 4, 5), "NCHW", (2, 3)), ((2, 4, 5, 3), "NHWC", (1, 2)), ((1, 2, 3, 4, 8), "NCHW8c", (2, 3)),
     ((1, 2, 3, 4, 5), "NCDHW", (2, 3, 4)), ((2, 3, 7), "NCW", (2,))],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_global_pool(shape, layout, axes, kind):
    data = te.placeholder(shape, name="data")
    x = np.random.default_rng(0).integers(-9, 10, shape).astype("float32")
    total = x.max(axis=axes, keepdims=True) if kind == "max" else x.mean(axis=axes, keepdims=True, dtype="float64")
    out = np.zeros(total.shape, "float32")
    evaluate(te.create_prim_func([data, nn.global_pool(data, kind, layout)]), x, out)
    assert np.array_equal(out, total.astype("float32"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((3, 3), (0, 1), (1, 1), (0,) * 4, "max"), topi.BadWindow, r"stride \(0, 1\) is less than 1"),
        (((3,), (1, 1), (1, 1), (0,) * 4, "max"), topi.BadWindow, r"kernel \(3,\) has 1 entries"),
        (((3, 3), (1, 1), (1, 1), (0, 0), "max"), topi.BadPadding, r"padding \(0, 0\) is not 4 numbers"),
        (((3, 3), (1, 1), (1, 1), (0,) * 4, "median"), topi.BadWindow, "pool_type is 'median'"),
        (((9, 3), (1, 1), (1, 1), (0,) * 4, "max"), topi.BadWindow, "a window of 9 does not fit into 8"),
        (((3, 3), (1, 1), (1, 1), (0,) * 4, "max", False, "NCHW4h"), topi.UnsupportedLayout, "Unsupported layout"),
        (((3, 3), (1, 1), (1, 1), (0,) * 4, "max", False, "NCW"), topi.UnsupportedLayout, "Unsupported layout NCW"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        nn.pool2d(te.placeholder((1, 3, 8, 8), name="data"), *arguments)
