"""pooling: maxima and means of windows, by rule: the bits of the program as written, in every layout."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.autosched import Plan, apply
from tests.autosched.same_results import check_same_bits, function, numbers

nn = topi.nn


def check(pooled: te.Tensor, data: te.Tensor, rules: list[str], may_refuse: bool = False) -> Plan:
    """These rules take it, and its bits are those of the program as written."""
    dtype = str(data.dtype)
    shape = [int(size) for size in data.shape]
    arrays = [numbers(*shape, dtype=dtype), np.zeros([int(size) for size in pooled.shape], dtype)]
    plan = check_same_bits(function(data, pooled), arrays, may_refuse=may_refuse)
    assert [decision.rule for decision in plan.decisions if decision.rule != "inlined"] == rules
    return plan


CASES = [
    ("NCHW", (3, 3), (2, 2), (1, 1, 1, 1), "max"),
    ("NCHW", (2, 2), (2, 2), (0, 0, 0, 0), "max"),
    ("NCHW", (3, 3), (1, 1), (1, 1, 1, 1), "avg"),
    ("NCHW", (3, 2), (3, 2), (1, 1, 0, 1), "avg"),
    ("NHWC", (3, 3), (2, 2), (1, 1, 1, 1), "max"),
    ("NHWC", (2, 2), (2, 2), (0, 0, 0, 0), "avg"),
    ("NCHW4c", (3, 3), (2, 2), (0, 0, 1, 1), "max"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("layout", "kernel", "stride", "padding", "kind"), CASES)
def test_windows(layout, kernel, stride, padding, kind):
    sizes = {"N": 1, "C": 3, "H": 9, "W": 21, "c": 4}
    data = te.placeholder([sizes[letter] for letter in layout if letter in sizes], name="data")
    check(nn.pool2d(data, kernel, stride, (1, 1), padding, kind, False, layout), data, ["pooling"])


@pytest.mark.parametrize("counted", [True, False])
def test_means_that_count_otherwise_at_the_border(counted):
    data = te.placeholder((1, 2, 6, 18), name="data")
    pooled = nn.pool2d(data, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg", True, "NCHW", counted)
    check(pooled, data, ["pooling"])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int8", "uint8"])
def test_every_type(dtype):
    data = te.placeholder((1, 2, 5, 19), name="data", dtype=dtype)
    check(nn.pool2d(data, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), data, ["pooling"])


@pytest.mark.parametrize(
    ("op", "shape", "layout"), [(nn.pool1d, (2, 3, 20), "NCW"), (nn.pool3d, (1, 2, 3, 4, 9), "NDHWC")]
)
def test_other_ranks(op, shape, layout):
    data = te.placeholder(shape, name="data")
    rank = len(shape) - 2
    check(op(data, 2, 2, 1, (0, 1) * rank, "max", False, layout), data, ["pooling"])


def test_work_around_it_is_done_on_the_way():
    data = te.placeholder((1, 3, 8, 20), name="data")
    before = te.compute(data.shape, lambda *i: te.max(data(*i), 0.0), name="before")
    pooled = nn.pool2d(before, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg")
    after = te.compute(pooled.shape, lambda *i: te.min(pooled(*i), 6.0), name="after")
    plan = check(after, data, ["pooling"])
    assert [decision.blocks[0] for decision in plan.decisions if decision.rule == "inlined"] == ["before", "pool_avg"]


def test_what_windows_see_twice_is_computed_once():
    data = te.placeholder((1, 3, 8, 20), name="data")
    before = te.compute(data.shape, lambda *i: data(*i) * 2.0, name="before")
    check(nn.pool2d(before, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), "max"), data, ["pooling"])
    assert "inlined" not in apply(function(data, nn.pool2d(before, 3, 1, 1, (0,) * 4, "max"))).explain()


def test_what_windows_of_any_number_see_twice_is_computed_once():
    data = te.placeholder((4, te.var("n")), name="data")
    before = te.compute(data.shape, lambda *i: data(*i) * 2.0, name="before")
    k = te.reduce_axis((0, 3), name="k")
    out = te.compute((4, data.shape[1] - 2), lambda i, j: te.max(before[i, j + k], axis=k), name="out")
    assert "inlined" not in apply(function(data, out)).explain()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_one_window_for_all_is_a_reduction(layout, kind):
    data = te.placeholder((1, 7, 7, 7), name="data")
    plan = apply(function(data, nn.global_pool(data, kind, layout)), "llvm")
    assert "pooling" not in [decision.rule for decision in plan.decisions]
    assert "left as written" not in plan.explain()


def test_what_it_explains():
    data = te.placeholder((1, 4, 16, 32), name="data")
    pooled = nn.pool2d(data, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    told = apply(function(data, pooled), "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu").explain()
    assert "pad_temp, pool_max: pooling" in told
    assert "4 adjacent windows read 6 cells along v_i2, not 12" in told


@pytest.mark.parametrize(
    ("target", "kind", "tiles"),
    [
        # Updates of a maximum that keeps NaN wait for each other long: more of them are under way.
        ("llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu", "max", "4 v_i2 × 2 vectors"),
        ("llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu", "avg", "3 v_i2 × 1 vectors"),
    ],
)
def test_large_windows_of_extremes_have_more_accumulators(target, kind, tiles):
    data = te.placeholder((2, 11, 32, 32), name="data")
    pooled = topi.nn.pool2d(data, (7, 7), (1, 1), (1, 1), (3, 3, 3, 3), kind, count_include_pad=True)
    assert f"tiles of {tiles}" in apply([data, pooled], target).explain()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kernel", [5, 7, 9])
def test_large_windows_keep_nan_and_the_greater_zero(kernel):
    data = te.placeholder((1, 2, 20, 33), name="data")
    pad = kernel // 2
    pooled = topi.nn.pool2d(data, (kernel, kernel), (1, 1), (1, 1), (pad, pad, pad, pad), "max")
    func = function(data, pooled)
    x = numbers(1, 2, 20, 33).astype("float32")
    x[0, 0, 5, 7], x[0, 1, :9] = np.nan, np.where(np.arange(33) % 2, 0.0, -0.0)
    results = [np.zeros((1, 2, 20, 33), "float32") for _ in range(2)]
    for program, result in zip((func, apply(func, "llvm").mod), results, strict=True):
        lw.build(program)(x, result)
    np.testing.assert_array_equal(*results)  # which NaN it is, nobody promises
    for result in results:
        result[np.isnan(result)] = 1
    np.testing.assert_array_equal(*map(np.signbit, results))
