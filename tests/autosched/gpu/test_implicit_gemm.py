"""implicit gemm: convolutions of all layouts and other contractions against float64, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.choices import Choices
from loopwright.topi.testing.convolution import conv_python

EMULATED = "cuda -model=emulated"
H200 = "nvidia/nvidia-h200"
ORDERS = ("forwards", "backwards", "random")


def rules_of(plan):
    return [decision.rule for decision in plan.decisions if decision.rule not in ("inlined", "not inlined")]


def run(tensors, expected, seed=1):
    """Builds and runs a program in all orders of threads; `expected` takes its inputs in float64."""
    plan = autosched.apply(tensors, EMULATED)
    assert rules_of(plan) == ["implicit gemm"], plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    rng = np.random.default_rng(seed)
    dtype = str(tensors[-1].dtype)
    given = [(4 * rng.standard_normal([int(n) for n in one.shape])).astype(dtype) for one in tensors[:-1]]
    truth = expected(*[one.astype("float64") for one in given])
    bound = {"float32": 1e-3, "float64": 1e-11, "int32": 0}[dtype]
    for order in ORDERS:
        result = np.full(truth.shape, -7, dtype)
        module.set_thread_order(order)
        module(*given, result)
        np.testing.assert_allclose(result.astype("float64"), truth, rtol=0, atol=bound)


def convolution(data, weight, layout, stride=1, padding=0, dilation=1, groups=1, dtype="float32"):
    a, w = te.placeholder(data, dtype, name="A"), te.placeholder(weight, dtype, name="W")
    return [a, w, topi.nn.conv(a, w, stride, padding, dilation, groups, layout)]


@pytest.mark.parametrize(
    ("data", "weight", "layout", "options"),
    [
        ((1, 16, 6, 7), (20, 16, 3, 3), "NCHW", {"padding": 1}),  # slabs of channels; rows and columns are padded
        ((2, 5, 9, 8), (33, 5, 3, 2), "NCHW", {"stride": 2, "padding": (1, 0, 1, 2)}),
        ((2, 6, 6, 16), (3, 3, 16, 32), "NHWC", {"padding": 2, "dilation": 2}),  # vectors of channels
        ((2, 7, 7, 3), (3, 3, 3, 17), "NHWC", {"stride": (2, 1)}),
        ((2, 3, 8, 32), (2, 2, 8, 16), "HWCN", {"padding": 1, "dtype": "int32"}),
        ((1, 16, 5, 5), (64, 8, 1, 1), "NCHW", {"groups": 2, "dtype": "float64"}),
    ],
)
def test_convolutions(data, weight, layout, options):
    rest = {name: value for name, value in options.items() if name != "dtype"}
    numbers = [rest.get(name, other) for name, other in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1))]
    run(convolution(data, weight, layout, **options), lambda a, w: conv_python(a, w, *numbers, layout))


def test_epilogue_in_registers():
    a, w, y = convolution((1, 8, 6, 6), (16, 8, 3, 3), "NCHW", padding=1)
    bias = te.placeholder((16,), name="bias")
    biased = te.compute(y.shape, lambda n, c, i, j: y[n, c, i, j] + bias[c], name="biased")
    run(
        [a, w, bias, topi.nn.relu(biased)],
        lambda a, w, b: np.maximum(conv_python(a, w, 1, 1, 1, 1, "NCHW") + b.reshape(16, 1, 1), 0),
    )


def test_parts_of_the_sum():
    a, w, y = convolution((1, 64, 4, 5), (17, 64, 2, 3), "NCHW", padding=1)
    with Choices({"0.splits": {"value": 4}}):
        run([a, w, topi.nn.relu(y)], lambda a, w: np.maximum(conv_python(a, w, 1, 1, 1, 1, "NCHW"), 0))


def test_a_product_over_two_axes():
    a, b = te.placeholder((3, 20, 6, 4), name="A"), te.placeholder((6, 4, 35), name="B")
    k, h = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 4), name="h")
    c = te.compute((3, 20, 35), lambda n, i, j: te.sum(a[n, i, k, h] * b[k, h, j], axis=[k, h]), name="C")
    run([a, b, c], lambda a, b: np.einsum("nikh,khj->nij", a, b))


def test_vectors_of_channels_are_loaded():
    plan = autosched.apply(convolution((4, 14, 14, 64), (3, 3, 64, 64), "NHWC", padding=1), H200)
    source = lw.build(plan.mod, target=H200).get_source("cuda")
    assert "(const float4 *)&A[" in source
    assert "(const float4 *)&W[" in source
    assert "pad_temp computed where it is loaded" in plan.explain()


@pytest.mark.parametrize(
    ("tensors", "rule"),
    [
        (convolution((1, 32, 8, 8), (32, 1, 3, 3), "NCHW", groups=32), "windows"),  # depthwise
        (convolution((1, 16, 8, 8), (3, 16, 3, 3), "NCHW"), "rows"),  # few features
        (convolution((1, 16, 8, 8), (32, 16, 3, 3), "NCHW", dtype="float16"), "rows"),
    ],
)
def test_left_to_other_rules(tensors, rule):
    assert rules_of(autosched.apply(tensors, H200)) == [rule]
