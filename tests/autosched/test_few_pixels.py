"""Convolutions of images of a few pixels by weights that are not constant: dot products, of weights as they lie."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, tir, topi
from loopwright.autosched import apply
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu -num-cores=1"


def convolution(data, weight, stride=1, padding=0, dtype="float32", after=False, layout="NC"):
    """A convolution, and arrays of whole numbers to call it with: their sums are exact, in whatever order."""
    rank = len(data) - 2
    spatial = "DHW"[3 - rank :]
    X, W = te.placeholder(data, dtype, "X"), te.placeholder(weight, dtype, "W")
    order = f"NC{spatial}" if layout == "NC" else f"N{spatial}C"
    Y = topi.nn.conv(X, W, [stride] * rank, [padding] * 2 * rank, [1] * rank, 1, order, f"OI{spatial}", None, order)
    inputs = [X, W]
    if after:
        inputs.append(te.placeholder((weight[0],), dtype, "bias"))
        Y = topi.nn.relu(topi.nn.bias_add(Y, inputs[-1], axis=order.index("C")))
    shapes = [[int(n) for n in one.shape] for one in (*inputs, Y)]
    arrays = [np.rint(numbers(*shape, dtype=dtype, seed=k)).astype(dtype) for k, shape in enumerate(shapes[:-1])]
    return function(*inputs, Y), [*arrays, np.zeros(shapes[-1], dtype)]


def check(*args, **kwargs) -> None:
    plan = check_same_bits(*convolution(*args, **kwargs), target="llvm -num-cores=1")
    assert "a GEMM of windows by weights" in plan.explain()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("channels", [17, 24, 40, 61])
def test_channels(channels):
    check((1, 64, 3, 3), (channels, 64, 3, 3), padding=1, after=channels == 24)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("data", "weight", "stride"),
    [
        ((1, 96, 2, 2), (50, 96, 2, 2), 1),  # one pixel
        ((1, 96, 5, 4), (30, 96, 2, 3), 2),
        ((1, 130, 7), (33, 130, 3), 1),
        ((1, 33, 3, 3, 3), (40, 33, 2, 2, 2), 1),
        ((2, 200, 2, 3), (64, 200, 2, 2), 1),
    ],
)
def test_images(data, weight, stride):
    check(data, weight, stride)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_types(dtype):
    check((1, 64, 3, 3), (40, 64, 3, 3), padding=1, dtype=dtype)


def test_constant_weights_are_packed():
    func, arrays = convolution((1, 64, 3, 3), (40, 64, 3, 3), padding=1)
    bound = tir.bind_constants(func, {"W": arrays[1]})
    assert "windows by weights" not in apply(bound, "llvm -num-cores=1").explain()


def test_for_avx512():
    assert "a GEMM of windows" in planned(convolution((1, 224, 3, 3), (255, 224, 3, 3), padding=1)[0], AVX512).explain()


def test_long_rows_of_several_pixels_pass_by_in_l2():
    """A tile's rows of 40 channels stay in L1 and those of 97 do not: packing the weights takes less time then."""
    near, far = (((2, 40, 8, 8), (96, 40, 3, 3)), ((6, 97, 7, 7), (201, 97, 3, 3)))
    assert "windows by weights" in planned(convolution(*near, dtype="float64")[0], AVX512).explain()
    assert "windows by weights" not in planned(convolution(*far, dtype="float64")[0], AVX512).explain()


def test_channels_last():
    func, arrays = convolution((1, 3, 3, 64), (40, 64, 3, 3), padding=1, layout="NHWC")
    check_same_bits(func, arrays, "llvm -num-cores=1")
