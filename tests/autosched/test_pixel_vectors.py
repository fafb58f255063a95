"""Convolutions of few output channels, by vectors of pixels: the bits of the program as written."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.autosched import apply
from loopwright.ir import PrimFunc
from tests.autosched.same_results import check_same_bits, function, numbers, planned

nn = topi.nn
AVX512 = "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu -num-cores=1"


def convolution(
    data: tuple[int, ...],
    weight: tuple[int, ...],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    dtype: str = "float32",
    after: str = "",
    groups: int = 1,
) -> tuple[PrimFunc, list[np.ndarray]]:
    """A convolution with channels first, and arrays to call it with."""
    rank = len(data) - 2
    spatial = "DHW"[3 - rank :]
    X, W = te.placeholder(data, dtype, "X"), te.placeholder(weight, dtype, "W")
    layout = f"NC{spatial}"
    Y = nn.conv(
        X, W, [stride] * rank, [padding] * 2 * rank, [dilation] * rank, groups, layout, f"OI{spatial}", None, layout
    )
    inputs = [X, W]
    if after == "bias relu":
        inputs.append(te.placeholder((weight[0],), dtype, "bias"))
        Y = nn.relu(nn.bias_add(Y, inputs[-1], axis=1))
    arrays = [numbers(*[int(n) for n in one.shape], dtype=dtype, seed=k) for k, one in enumerate(inputs)]
    return function(*inputs, Y), [*arrays, np.zeros([int(n) for n in Y.shape], dtype)]


def check(*args, **kwargs) -> str:
    plan = check_same_bits(*convolution(*args, **kwargs), target="llvm -num-cores=1")
    assert "vectors of" in plan.explain() and "direct convolution" in plan.explain()
    return plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("width", [2, 3, 4, 15, 16, 17, 37])
def test_lines_of_all_lengths(width):
    check((1, 3, 7, width), (1, 3, 3, 3), padding=1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_strides(stride, padding):
    check((2, 5, 9, 23), (1, 5, 3, 3), stride=stride, padding=padding, after="bias relu")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_types(dtype):
    check((1, 4, 6, 21), (1, 4, 3, 3), padding=1, dtype=dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("data", "weight"),
    [((2, 7, 9), (1, 7, 3)), ((1, 5, 3, 4, 9), (1, 5, 2, 2, 2)), ((1, 6, 29), (1, 6, 1)), ((1, 4, 1, 9), (1, 4, 1, 3))],
)
def test_ranks(data, weight):
    check(data, weight)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("channels", [211, 216])  # those of the image, in slabs with and without one that is left over
@pytest.mark.parametrize("padding", [0, 1])
def test_sums_wait_from_slab_to_slab(channels, padding):
    why = check((1, channels, 6, 39), (2, channels, 3, 3), padding=padding, after="bias relu")
    assert "channels of the image at a time" in why


@pytest.mark.one_in(2)
def test_long_lines_are_done_in_blocks():
    check((1, 3, 5003), (2, 3, 3), stride=2, padding=1)


@pytest.mark.one_in(2)
def test_lines_of_many_pages_are_copied():
    why = planned(
        convolution((1, 16, 265, 265), (2, 16, 2, 2))[0],
        "llvm -mtriple=aarch64-linux-gnu -num-cores=1 -mcpu=neoverse-n1",
    ).explain()
    assert "lines of the image copied" in why


@pytest.mark.one_in(2)
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(
    ("data", "weight", "stride"),
    [((1, 12, 7, 37), (20, 3, 3, 3), 1), ((2, 6, 9, 20), (4, 3, 2, 2), 2), ((1, 8, 331), (25 * 4, 2, 2), 1)],
)
def test_groups_of_few_channels(data, weight, stride, padding):
    groups = data[1] // weight[1]
    why = check(data, weight, stride=stride, padding=padding, after="bias relu", groups=groups)
    assert "groups as an outer loop" in why and "fill no vector" in why


@pytest.mark.one_in(2)
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(("data", "weight", "stride"), [((2, 20, 9, 21), (4, 5, 3, 3), 2), ((1, 4, 531), (2, 2, 2), 1)])
def test_groups_of_one_channel(data, weight, stride, padding):
    why = check(data, weight, stride=stride, padding=padding, after="bias relu", groups=weight[0])
    assert "a channel of its own" in why and "one output channel fills no vector" in why


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("data", "channels"), [((2, 3, 9, 33), 31), ((1, 2, 8, 40), 13), ((1, 5, 301), 17)])
def test_a_prime_number_of_channels(data, channels):
    func, arrays = convolution(data, (channels, data[1], *[3] * (len(data) - 2)), padding=1, after="bias relu")
    plan = check_same_bits(func, arrays, target="llvm -num-cores=1")
    assert "direct convolution" in plan.explain()  # by vectors of pixels or of channels, as the machine has it
    assert "vectors of" in planned(func, AVX512).explain()


def test_the_last_tile_may_have_fewer_channels():
    why = planned(convolution((4, 3, 129, 129), (31, 3, 3, 3), padding=3, dilation=3)[0], AVX512).explain()
    assert "tiles of 4 channels" in why


def test_groups_of_one_channel_and_one_pixel_are_left_to_others():
    assert "direct convolution" not in {
        decision.rule for decision in planned(convolution((1, 8, 1, 1), (4, 2, 1, 1), groups=4)[0]).decisions
    }


@pytest.mark.one_in(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_ragged_lines_are_shared_out_by_channels(threads):
    func, arrays = convolution((2, 3, 9474), (183, 3, 2))
    plan = check_same_bits(func, arrays, target=f"llvm -num-cores={threads}")
    assert "fill no vector" in plan.explain()
    # Fused with the images, parts of a line would hide the last, shorter one from the partitioning of its loop.
    assert "% " not in " ".join(line for line in str(plan.mod).splitlines() if "T.where" in line)


def test_dilation_and_no_pixel():
    check((1, 4, 9, 13), (1, 4, 3, 3), padding=2, dilation=2)
    func, arrays = convolution((0, 4, 5, 5), (1, 4, 3, 3))
    lw.build(apply(func).mod)(*arrays)


def test_channels_that_fill_vectors_keep_theirs():
    assert "fill no vector" not in apply(convolution((1, 32, 14, 14), (64, 32, 3, 3), padding=1)[0]).explain()


def test_three_channels_are_too_few_for_avx512():
    func, _ = convolution((1, 3, 64, 64), (3, 3, 3, 3), stride=2, padding=1)
    assert "vectors of 16 pixels" in planned(func, AVX512).explain()
