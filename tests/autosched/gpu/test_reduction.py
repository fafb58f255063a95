"""reduction: everything, long rows, columns and axes in the middle, at sizes around tiles and vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, tir, topi
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.reduction_plan import ColumnPlan, RowPlan, column_plan, row_plan

EMULATED = "cuda -model=emulated"
H200 = GpuMachine.of("nvidia/nvidia-h200")
OPERATIONS = {"sum": (topi.sum, np.sum), "max": (topi.max, np.max), "min": (topi.min, np.min)}


def mean(data, axis):
    total = topi.sum(data, axis)
    count = np.prod([int(size) for size in data.shape]) // np.prod([int(size) for size in total.shape])
    return te.compute(total.shape, lambda *at: total(*at) / te.const(float(count), data.dtype), name="mean")


def check(*cases, dtype="float32", kernels=None):
    """Reduces tensors, each a shape, axes and what, in one library, in all orders of threads; all by the rule."""
    inputs = [te.placeholder(shape, dtype, name=f"A{k}") for k, (shape, *_) in enumerate(cases)]
    rng = np.random.default_rng(0)
    given = [(rng.standard_normal(shape) * 20).astype(dtype) for shape, *_ in cases]
    outputs, wanted = [], []
    for data, tensor, (_, axis, name) in zip(given, inputs, cases, strict=True):
        ours, theirs = (mean, np.mean) if name == "mean" else OPERATIONS[name]
        outputs.append(ours(tensor, axis))
        wanted.append(np.asarray(theirs(data.astype("float64") if dtype[0] == "f" else data, axis)))
    plan = autosched.apply([*inputs, *outputs], EMULATED)
    assert {decision.rule for decision in plan.decisions} <= {"reduction", "rows", "element-wise", "one thread"}, (
        plan.explain()
    )
    assert "refused" not in plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    first = None
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        results = [np.zeros(want.shape, output.dtype) for want, output in zip(wanted, outputs, strict=True)]
        module(*given, *results)
        for result, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, want.astype(result.dtype), rtol=1e-4, atol=1e-3)
        first = first or results
        for result, same in zip(results, first, strict=True):
            np.testing.assert_array_equal(result, same)
    source = module.get_source()
    count = len(set(re.findall(r"main_kernel(?:_\d+)?\b", source)))
    assert kernels is None or count == kernels, source
    return source


def test_how_everything_is_shared_out():
    assert row_plan(2**28, 4, 4, 1, H200) == RowPlan(256, 4, 4, 2**17)
    assert row_plan(2**24, 4, 4, 1, H200) == RowPlan(256, 4, 4, 2**13)
    assert row_plan(2**14, 4, 4, 1, H200) == RowPlan(1024, 4, 4, None)
    assert row_plan(1000, 4, 4, 1, H200) == RowPlan(256, 4, 1, None)
    assert row_plan(None, 4, 4, 1, H200) == RowPlan(256, 4, 4, 2**15)
    assert row_plan(100000, 4, 4, 10000, H200).chunk is None


def test_how_columns_are_shared_out():
    assert column_plan(8192, 8192, 1, 4, 4, H200) == ColumnPlan(32, 8, 4, 4, 256)
    assert column_plan(32, 8192, 1, 4, 4, H200, may_chunk=False) == ColumnPlan(8, 4, 4, 4, None)
    assert column_plan(2**20, 64, 1, 4, 4, H200) == ColumnPlan(16, 16, 4, 4, 512)
    assert column_plan(2048, 64, 1, 4, 4, H200, may_chunk=False) == ColumnPlan(8, 128, 4, 8, None)
    assert column_plan(64, 2**20, 1, 4, 4, H200) == ColumnPlan(32, 8, 4, 4, None)
    assert column_plan(2, 2**20, 1, 4, 4, H200) == ColumnPlan(256, 1, 4, 2, None)
    assert column_plan(256, 12544, 1, 4, 4, H200) == ColumnPlan(8, 32, 4, 4, None)
    assert column_plan(256, 196, 64, 4, 4, H200) == ColumnPlan(7, 32, 4, 4, None)
    assert column_plan(1024, 1024, 1, 4, 4, H200) == ColumnPlan(8, 128, 4, 8, None)
    assert column_plan(None, None, 1, 4, 4, H200) == ColumnPlan(32, 8, 4, 4, None)


def test_everything():
    for shape in ((1,), (20, 33), (70001,)):
        check((shape, None, "sum"))


def test_a_large_sum_is_two_kernels_and_one_with_its_mean():
    source = check(((300000,), None, "mean"), kernels=2)
    assert "= *(const float4 *)&A0[" in source and "__shfl_xor_sync" in source
    check(((5000,), None, "mean"), kernels=1)


def test_tails_are_whole_vectors_but_for_the_last():
    source = check(((300003,), None, "sum"))
    assert "= *(const float4 *)&A0[" in source


def test_long_rows():
    check(((3, 70000), 1, "sum"))
    check(((2, 3, 40001), 2, "mean"))


def test_columns():
    for shape in ((999, 3), (130, 130), (5, 999), (1, 7)):
        check((shape, 0, "sum"))
    check(((3000, 64), 0, "mean"), kernels=2)


def test_what_threads_pass_on_fits_into_shared_memory():
    """16 sums of 4 bytes are 64 bytes a thread: 1024 threads would need more than a kernel gets."""
    data = te.placeholder((2048, 64), "int8", name="data")
    out = topi.sum(topi.cast(data, "int32"), 0)
    plan = autosched.apply([data, out], EMULATED)
    assert "reduction" in [decision.rule for decision in plan.decisions]
    given, result = np.random.default_rng(0).integers(-99, 99, (2048, 64)).astype("int8"), np.zeros(64, "int32")
    lw.build(plan.mod, target=EMULATED)(given, result)
    np.testing.assert_array_equal(result, given.sum(0, dtype="int32"))
    assert column_plan(2048, 64, 1, 16, 1, H200, held=64).y * 4 * 64 <= H200.static_shared_memory


@pytest.mark.parametrize(
    ("shape", "axes", "name"),
    [
        ((7, 33, 40, 20), 1, "sum"),
        ((3, 5, 2, 3), 1, "sum"),
        ((7, 33, 40, 20), (0, 2, 3), "mean"),
        ((7, 33, 20, 20), (0, 2), "mean"),
        ((64, 3, 14, 14), 0, "sum"),
        ((1024, 40), 0, "sum"),
    ],
)
def test_axes_in_the_middle(shape, axes, name):
    check((shape, axes, name))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int32", "int64", "uint8"])
def test_types(dtype):
    is_narrow = dtype in ("float16", "int8", "uint8")
    check(((300, 64), 0, "max"), ((70000,), None, "min" if is_narrow else "sum"), dtype=dtype)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0])
def test_nan_propagates(name, axis):
    data = te.placeholder((2000, 40), name="A")
    module = lw.build([data, OPERATIONS[name][0](data, axis)], target=EMULATED, autosched=True)
    given = np.random.default_rng(0).random((2000, 40), "float32")
    given[1234, 5] = np.nan
    result = np.zeros(() if axis is None else (40,), "float32")
    module(given, result)
    np.testing.assert_array_equal(result, OPERATIONS[name][1](given, axis))


@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ("n", None, [0, 1, 33, 70001]),
        ("3n", 1, [0, 1, 70001]),
        ("n3", 0, [0, 1, 7001]),
        ("nn", 0, [0, 1, 130]),
        ("nn", 1, [0, 1, 130]),
        ("3n", 0, [0, 1, 1000]),
    ],
)
def test_open_sizes(shape, axis, sizes):
    n = te.var("n")
    data = te.placeholder(tuple(n if size == "n" else 3 for size in shape), name="A")
    plan = autosched.apply([data, topi.sum(data, axis)], EMULATED)
    assert [decision.rule for decision in plan.decisions] == ["reduction"]
    module = lw.build(plan.mod, target=EMULATED)
    for size in sizes:
        given = np.random.default_rng(0).random([size if part == "n" else 3 for part in shape], "float32")
        wanted = np.asarray(given.sum(axis))
        result = np.ones(wanted.shape, "float32")
        module(given, result)
        np.testing.assert_allclose(result, wanted, rtol=1e-4)


def test_what_is_computed_first_is_not_stored():
    a, b = te.placeholder((70000,), name="a"), te.placeholder((70000,), name="b")
    plan = autosched.apply([a, b, topi.sum(topi.multiply(a, b))], EMULATED)
    module = lw.build(plan.mod, target=EMULATED)
    x, y = np.random.default_rng(0).random((2, 70000), "float32")
    result = np.zeros((), "float32")
    module(x, y, result)
    np.testing.assert_allclose(result, x.astype("float64") @ y, rtol=1e-5)
    assert len(set(re.findall(r"main_kernel(?:_\d+)?\b", module.get_source()))) == 2


def argmax_of(data):
    """The index of the greatest value, of equal ones the lowest index: one pass with a tuple."""

    def better(a, b):
        first = te.any(a[1] > b[1], te.all(a[1].equal(b[1]), a[0] < b[0]))
        return tir.Select(first, a[0], b[0]), tir.Select(first, a[1], b[1])

    combined = te.comm_reducer(better, lambda i, v: (te.max_value(i), te.min_value(v)), name="argmax")
    k = te.reduce_axis((0, data.shape[-1]), name="k")
    shape = data.shape[:-1]
    return te.compute(shape, lambda *at: combined((k.var, data(*at, k)), axis=k), name="best")


@pytest.mark.parametrize("shape", [(70001,), (999,), (3, 70000), (40, 70)])
def test_tuples_are_one_pass(shape):
    data = te.placeholder(shape, "int32", name="A")
    where, value = argmax_of(data)
    plan = autosched.apply([data, where, value], EMULATED)
    assert [decision.rule for decision in plan.decisions] == ["reduction" if shape != (40, 70) else "rows"]
    module = lw.build(plan.mod, target=EMULATED)
    given = np.random.default_rng(0).integers(-300, 300, shape).astype("int32")
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        at, best = np.zeros(shape[:-1], "int32"), np.zeros(shape[:-1], "int32")
        module(given, at, best)
        np.testing.assert_array_equal(at, given.argmax(-1))
        np.testing.assert_array_equal(best, given.max(-1))
    source = module.get_source()
    assert "shfl" in source
    kernels = source.count("__global__")
    assert source.count("__syncthreads()") <= 2 * kernels  # one for what warps pass on, one for what blocks do


def test_the_statistics_of_a_batch():
    data = te.placeholder((6, 5, 9, 8), name="data")
    given = [te.placeholder((5,), name=name) for name in ("gamma", "beta", "mean", "var")]
    out = topi.nn.batch_norm(data, *given, training=True)[0]
    plan = autosched.apply([data, *given, out], EMULATED)
    assert "default binding" not in plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    x = np.random.default_rng(0).standard_normal((6, 5, 9, 8)).astype("float32")
    gamma, beta = np.random.default_rng(1).random((2, 5), "float32")
    result = np.zeros_like(x)
    module(x, gamma, beta, np.zeros(5, "float32"), np.ones(5, "float32"), result)
    mean, var = [value.reshape(1, 5, 1, 1) for value in (x.mean((0, 2, 3)), x.var((0, 2, 3)))]
    wanted = (x - mean) / np.sqrt(var + 1e-5) * gamma.reshape(1, 5, 1, 1) + beta.reshape(1, 5, 1, 1)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_a_softmax_of_few_long_rows_is_done_in_chunks():
    data = te.placeholder((2, 131072), name="data")
    plan = autosched.apply([data, topi.nn.softmax(data)], EMULATED)
    assert "rows" not in [decision.rule for decision in plan.decisions]
    x = np.random.default_rng(0).standard_normal((2, 131072)).astype("float32")
    result = np.zeros_like(x)
    lw.build(plan.mod, target=EMULATED)(x, result)
    e = np.exp(x.astype("float64"))
    np.testing.assert_allclose(result, e / e.sum(1, keepdims=True), rtol=1e-4)
