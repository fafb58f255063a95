"""parallel_scan: running totals along rows on a GPU, in tiles and in chunks, and what is taken for a scan."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.column_scan import column_scan, rows_of_a_chunk
from loopwright.autosched.gpu.scan_idiom import scan_idiom
from loopwright.autosched.gpu.scan_plan import ScanPlan, scan_plan
from loopwright.ir import BlockRealize, collect_statements
from loopwright.script import tir as T

EMULATED = "cuda -model=emulated"
H200 = GpuMachine.of("nvidia/nvidia-h200")
ORDERS = ("forwards", "backwards", "random")


def block_of(func):
    return collect_statements(func.body, BlockRealize)[-1].block


def check(shape, axis, dtype="float32", exclusive=False, kernels=None, function=topi.cumsum, low=-20, orders=ORDERS):
    data = te.placeholder(shape, dtype, name="A")
    out = function(data, axis, exclusive=exclusive)
    module = lw.build([data, out], target=EMULATED, autosched=True)
    given = np.random.default_rng(0).integers(low, 20, shape).astype(dtype)
    wide = given.astype("float64" if dtype[0] == "f" else dtype)
    wanted = (np.cumsum if function is topi.cumsum else np.cumprod)(wide, axis)
    if exclusive:
        wanted = wanted - wide
    for order in orders:
        module.set_thread_order(order)
        result = np.zeros([int(size) for size in out.shape], out.dtype)
        module(given, result)
        np.testing.assert_array_equal(result, wanted.reshape(result.shape).astype(result.dtype))
    count = len(set(re.findall(r"main_kernel(?:_\d+)?\b", module.get_source())))
    assert kernels is None or count == kernels


@pytest.mark.parametrize(
    ("length", "rows", "itemsize", "expected"),
    [
        (2**28, 1, 4, ScanPlan(512, 8, 4, tiles=1, looks_back=True)),
        (2**24, 1, 4, ScanPlan(512, 8, 4, tiles=1, looks_back=True)),
        (2**24, 1, 8, ScanPlan(512, 8, 2, tiles=1, looks_back=True)),
        (2**28, 1, 1, ScanPlan(512, 2, 16, tiles=1, looks_back=True)),
        (2**23, 1, 4, ScanPlan(256, 4, 4, tiles=1)),
        (2**22, 1, 4, ScanPlan(256, 4, 4, tiles=1)),
        (2**20, 1, 4, ScanPlan(256, 1, 4, tiles=1)),
        (2**16, 1, 4, ScanPlan(256, 1, 4, tiles=1)),
        (2**14, 1, 4, ScanPlan(1024, 4, 4)),
        (1000, 1, 4, ScanPlan(256, 1, 4)),
        (2**20, 64, 4, ScanPlan(512, 8, 4, tiles=1, looks_back=True)),
        (4096, 4096, 4, ScanPlan(256, 4, 4)),
        (9000, 140, 4, ScanPlan(1024, 4, 4)),
        (100, 4096, 4, ScanPlan(32, 1, 4, 8)),
        (100, 4097, 8, ScanPlan(32, 2, 2)),
        (None, 1, 4, ScanPlan(256, 4, 4, tiles=8)),
        (None, None, 4, ScanPlan(256, 4, 4)),
    ],
)
def test_how_rows_are_shared_out(length, rows, itemsize, expected):
    assert scan_plan(length, rows, itemsize, H200) == expected


def test_how_columns_are_shared_out():
    assert rows_of_a_chunk(4096, 4096, H200) == 128
    assert rows_of_a_chunk(1 << 20, 3, H200) == 4096
    assert rows_of_a_chunk(50, 3, H200) is None
    assert rows_of_a_chunk(4096, 1 << 20, H200) is None
    assert rows_of_a_chunk(None, 3, H200) is None


@pytest.mark.parametrize("exclusive", [False, True])
def test_rows(exclusive):
    check((5, 511), 1, exclusive=exclusive, kernels=1)
    check((2, 16 * 1024 - 1), -1, "int32", exclusive, kernels=1)
    check((2, 3, 40), 2, "int64", exclusive, kernels=1)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_long_row_is_two_kernels(exclusive):
    check((70001,), 0, "int32", exclusive, kernels=2)
    check((2, 20000), 1, "float32", exclusive, kernels=2)


def test_many_rows_take_their_totals_along():
    check((17, 17000), 1, "int32", kernels=1, orders=("random",))


@pytest.mark.parametrize("length", [31, 128, 130, 512, 513])
def test_short_rows_are_several_in_a_block(length):
    check((48, length), 1, "int32", length == 130, kernels=1)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "kernels"),
    [
        ((300, 70), 0, 2),
        ((300, 1030), 0, 2),
        ((65, 3), 0, 2),
        ((20, 300), 0, 1),
        ((2, 3, 5, 7), 1, 1),
        ((3, 9, 130), 1, 1),
    ],
)
def test_columns(shape, axis, kernels, exclusive):
    check(shape, axis, "int32", exclusive, kernels)


def test_columns_of_every_type():
    for dtype in ("float16", "int8", "float64"):
        check((100, 40), 0, dtype)


def test_products_and_all_axes():
    check((7, 60), 1, "int32", function=topi.cumprod)
    check((7, 60), None, "float64")


def test_columns_of_open_sizes():
    n = te.var("n")
    for shape in ((n, 5), (100, n), (n, 4, 5), (2, n, 3)):
        axis = 1 if shape[0] == 2 else 0
        data = te.placeholder(shape, "int32", name="A")
        plan = autosched.apply([data, topi.cumsum(data, axis)], EMULATED)
        assert [decision.rule for decision in plan.decisions] == ["scan"]
        module = lw.build(plan.mod, target=EMULATED)
        for size in (1, 300):
            given = np.random.default_rng(0).integers(-20, 20, [size if part is n else part for part in shape], "int32")
            result = np.zeros_like(given)
            module(given, result)
            np.testing.assert_array_equal(result, np.cumsum(given, axis, dtype="int32"))


def test_open_sizes():
    n = te.var("n")
    for shape in ((n,), (3, n), (n, 70)):
        data = te.placeholder(shape, "int32", name="A")
        module = lw.build([data, topi.cumsum(data, -1)], target=EMULATED, autosched=True)
        for size in (1, 5000) if shape != (n, 70) else (1, 150):
            given = np.arange(size * 3 * 70).reshape(-1)[: size * 70].astype("int32")
            given = np.resize(given, [size if part is n else part for part in shape])
            result = np.zeros_like(given)
            module(given, result)
            np.testing.assert_array_equal(result, np.cumsum(given, -1, dtype="int32"))


def test_float16_and_signs_of_zero():
    data = te.placeholder((100,), "float16", name="A")
    module = lw.build([data, topi.cumsum(data)], target=EMULATED, autosched=True)
    given, result = np.full(100, -0.0, "float16"), np.ones(100, "float16")
    module(given, result)
    assert np.signbit(result).all()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_running_maximum_keeps_infinities_and_nan(dtype):
    data = te.placeholder((9000,), dtype, name="A")
    out = topi.scanop(data, te.max, 0, "cummax", 0)
    assert scan_idiom(block_of(te.create_prim_func([data, out])).body) is not None
    module = lw.build([data, out], target=EMULATED, autosched=True)
    given = np.random.default_rng(0).integers(-100, 100, 9000).astype(dtype)
    if dtype == "float32":
        given[:40], given[6000] = -np.inf, np.nan
    result = np.zeros_like(given)
    module(given, result)
    np.testing.assert_array_equal(result, np.maximum.accumulate(given))


def test_another_store_is_no_scan():
    def scan(last):
        @T.prim_func
        def func(A: T.Buffer(100), B: T.Buffer(101)):
            with T.block("root"):
                with T.block("scan"):
                    T.reads(A[0:100])
                    T.writes(B[0:101])
                    for _group in T.parallel(1):
                        totals = T.decl_buffer((1,), scope="local")
                        if T.bool(True):
                            totals[0] = A[0]
                            B[0] = totals[0]
                        for i in T.serial(1, 100):
                            totals[0] = totals[0] + A[i]
                            B[i + last] = totals[0]

        return func

    assert scan_idiom(block_of(scan(0)).body) is not None
    assert scan_idiom(block_of(scan(1)).body) is None


@pytest.mark.parametrize("change", ["start", "step", "rows"])
def test_what_differs_in_one_row_is_no_scan(change):
    data = te.placeholder((9, 70), name="A")
    text = te.create_prim_func([data, topi.cumsum(data, 1)]).script()
    old, new = {
        "start": ("totals[1] = A[group * 4 + 1, 0]", "totals[1] = A[group * 4 + 2, 0]"),
        "step": ("totals[2] + A[group * 4 + 2, i]", "totals[2] * A[group * 4 + 2, i]"),
        "rows": ("T.parallel(8, 9)", "T.parallel(7, 8)"),
    }[change]
    assert old in text, text
    assert scan_idiom(block_of(lw.script.from_source(text)).body) is not None
    assert scan_idiom(block_of(lw.script.from_source(text.replace(old, new))).body) is None


@pytest.mark.parametrize("change", ["start", "step", "columns"])
def test_what_differs_in_one_column_is_no_scan(change):
    data = te.placeholder((9, 70), name="A")
    text = te.create_prim_func([data, topi.cumsum(data, 0)]).script()
    old, new = {
        "start": ("= A[0, 16 + lane]", "= A[1, 16 + lane]"),
        "step": ("totals[1, lane] + A[i, 16 + lane]", "totals[1, lane] * A[i, 16 + lane]"),
        "columns": ("[i, 16 + lane] = ", "[i, 15 + lane] = "),
    }[change]
    if old not in text:
        pytest.skip("vectors of another length")
    assert column_scan(block_of(lw.script.from_source(text)).body) is not None
    assert column_scan(block_of(lw.script.from_source(text.replace(old, new))).body) is None


def test_what_is_done_before_and_after_a_scan():
    """The rest of the program is scheduled as ever, with proofs; kernels of scans come in at the end."""
    data = te.placeholder((300, 40), name="A")
    scan = topi.cumsum(topi.cumsum(topi.exp(data), 0), 1)
    out = topi.sum(scan, 1)
    plan = autosched.apply([data, out], EMULATED)
    rules = [decision.rule for decision in plan.decisions]
    assert [rule for rule in rules if rule != "inline"] == ["element-wise", "scan", "scan", "rows"]
    module = lw.build(plan.mod, target=EMULATED)
    given, result = np.random.default_rng(0).random((300, 40), "float32"), np.zeros(300, "float32")
    module(given, result)
    np.testing.assert_allclose(result, np.exp(given.astype("float64")).cumsum(0).cumsum(1).sum(1), rtol=1e-5)
