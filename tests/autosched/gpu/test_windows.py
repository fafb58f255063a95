"""Pooling, depthwise convolutions and the like on a GPU: one kernel, right for all paddings, strides and orders."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.codegen.source.cuda.emulate import ORDERS

EMULATED = "cuda -model=emulated"
H200 = "nvidia/nvidia-h200"
RNG = np.random.default_rng(0)


def pool(shape, size, stride, pad, kind, layout="NCHW"):
    A = te.placeholder(shape, name="A")
    return [A, topi.nn.pool2d(A, (size, size), (stride, stride), (1, 1), (pad, pad, pad, pad), kind, layout=layout)]


def depthwise(shape, stride):
    A, W = te.placeholder(shape, name="A"), te.placeholder((shape[1], 1, 3, 3), name="W")
    return [A, W, topi.nn.depthwise_conv2d_nchw(A, W, (stride, stride), (1, 1), (1, 1))]


def depthwise_nhwc(channels):
    A, W = te.placeholder((2, 8, 8, channels), name="A"), te.placeholder((3, 3, channels, 1), name="W")
    return [A, W, topi.nn.depthwise_conv2d_nhwc(A, W, (1, 1), (1, 1), (1, 1))]


def normalized():
    A = te.placeholder((2, 8, 5, 8), name="A")
    return [A, topi.nn.lrn(A, 5, 1, 0.0001, 0.75, 2)]


def adaptive():
    A = te.placeholder((2, 3, 12, 12), name="A")
    return [A, topi.nn.adaptive_pool(A, (4, 4), "avg")]


PROGRAMS = {
    "max 2×2": lambda: pool((2, 3, 8, 10), 2, 2, 0, "max"),
    "max 3×3 padded": lambda: pool((2, 3, 9, 7), 3, 2, 1, "max"),
    "avg 3×3 padded": lambda: pool((2, 3, 8, 7), 3, 1, 1, "avg"),
    "max of channels last": lambda: pool((2, 8, 8, 8), 2, 2, 0, "max", "NHWC"),
    "depthwise": lambda: depthwise((2, 3, 8, 9), 1),
    "depthwise strided": lambda: depthwise((1, 3, 9, 9), 2),
    "depthwise of channels last": lambda: depthwise_nhwc(8),
    "depthwise of 12 channels last": lambda: depthwise_nhwc(12),
    "lrn": normalized,
    "adaptive": adaptive,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows(name):
    args = PROGRAMS[name]()
    plan = autosched.apply(args, EMULATED)
    assert [decision.rule for decision in plan.decisions] == ["windows"], plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    assert len(set(re.findall(r"main_kernel(?:_\d+)?\b", module.get_source()))) == 1
    given = [RNG.standard_normal([int(n) for n in tensor.shape]).astype("float32") for tensor in args[:-1]]
    wanted = np.zeros([int(n) for n in args[-1].shape], "float32")
    lw.build(args, target="llvm")(*given, wanted)
    for order in ORDERS:
        result = np.zeros_like(wanted)
        module.set_thread_order(order)
        module(*given, result)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_neighbours_share_what_a_thread_loads():
    plan = autosched.apply(depthwise((32, 144, 56, 56), 1), H200).explain()
    assert "4 neighbours along v_i a thread" in plan and "pad_temp in registers" in plan
    few = autosched.apply(depthwise((1, 144, 56, 56), 1), H200).explain()
    assert "neighbours along v_i a thread" not in few and "pad_temp computed where it is read" in few


def test_what_is_no_window():
    A, W = te.placeholder((2, 3, 9, 9), name="A"), te.placeholder((4, 3, 3, 3), name="W")
    convolution = [A, W, topi.nn.conv2d_nchw(A, W, 1, 0, 1)]
    large = pool((2, 3, 20, 20), 9, 1, 0, "max")
    k = te.reduce_axis((0, 8), "k")
    B = te.placeholder((100, 8), name="B")
    rows = [B, te.compute((100,), lambda i: te.sum(B[i, k], axis=k), name="S")]
    for args in (convolution, large, rows):
        assert "windows" not in [decision.rule for decision in autosched.apply(args, EMULATED).decisions]


def test_vectors_of_channels_that_come_last():
    plan = autosched.apply(depthwise_nhwc(36), EMULATED).explain()
    assert "vectors of 4: v_c is contiguous" in plan and "252 threads a block" in plan  # 28 times 9 vectors
    prime = autosched.apply(depthwise_nhwc(4 * 257), EMULATED).explain()
    assert "windows" in prime and "vectors of" not in prime
