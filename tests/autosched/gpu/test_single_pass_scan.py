"""single_pass_scan: long rows in one pass over memory, by totals that blocks hand on to later ones."""

from __future__ import annotations

import importlib
import re
from unittest.mock import patch

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, tir, topi
from loopwright.autosched.gpu.scan_plan import ScanPlan
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, compile_cuda, find_library
from loopwright.target import Target
from loopwright.transform import lower

EMULATED = "cuda -model=emulated"
SMALL_L2 = f"{EMULATED} -l2_cache_size_bytes=4096"
ORDERS = ("forwards", "backwards", "random")


def has_nvrtc():
    try:
        find_library()
    except NoNvrtc:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
parallel_scan = importlib.import_module("loopwright.autosched.gpu.parallel_scan")


def built(shape, dtype, exclusive=False, lanes=1, function=topi.cumsum, target=EMULATED, threads=96):
    """With tiles of `threads` times `lanes` elements."""
    data = te.placeholder(shape, dtype, name="A")
    out = function(data, -1, exclusive=exclusive)
    plan = ScanPlan(threads, 1, lanes, tiles=1, looks_back=True)
    with patch.object(parallel_scan, "scan_plan", lambda *_: plan):
        return lw.build([data, out], target=target, autosched=True)


def barriers(module):
    """Of the kernel that scans."""
    kernel = module.get_source("cuda").split("main_kernel_1(")[1].split("\nextern")[0]
    return kernel.count("__syncthreads()")


@pytest.mark.parametrize(
    ("shape", "dtype", "exclusive", "lanes"),
    [
        ((96 * 1024 + 1,), "int32", False, 1),  # one tile more than 32 groups of 32
        ((96 * 2111 - 1,), "int32", True, 1),  # three totals of the last level, the last tile is not full
        ((2, 96 * 1025), "float64", True, 1),  # values of two words
        ((3, 96 * 32), "int64", False, 1),  # one group
        ((2, 96 * 33 + 1), "float32", False, 1),  # one group, one tile and one element
        ((5, 384 + 7), "float32", True, 4),
        ((1, 96), "uint32", False, 1),
        ((2, 5), "float32", True, 4),
        ((4, 769), "int8", False, 4),
        ((3, 1601), "float16", True, 8),
    ],
)
def test_totals_of_all_levels(shape, dtype, exclusive, lanes):
    module = built(shape, dtype, exclusive, lanes)
    given = np.random.default_rng(0).integers(0, 2 if dtype == "float16" else 20, shape).astype(dtype)
    wide = given.astype("float64" if dtype[0] == "f" else dtype)
    wanted = np.cumsum(wide, -1, dtype=wide.dtype) - (wide if exclusive else 0)
    for order in ORDERS:
        module.set_thread_order(order)
        result = np.zeros(shape, dtype)
        module(given, result)
        np.testing.assert_array_equal(result, wanted.astype(dtype))
    assert barriers(module) == 3


def test_products_minima_and_maxima():
    given = np.random.default_rng(0).integers(1, 3, 2000).astype("int32")
    result = np.zeros_like(given)
    built((2000,), "int32", function=topi.cumprod)(given, result)
    np.testing.assert_array_equal(result, np.cumprod(given, dtype="int32"))

    numbers = np.random.default_rng(0).standard_normal(2000).astype("float32")
    numbers[:40], numbers[1500] = -np.inf, np.nan
    for join, meant in ((te.max, np.maximum), (te.min, np.minimum)):
        out = np.zeros_like(numbers)
        function = lambda data, axis, exclusive, join=join: topi.scanop(data, join, 0, "running", 0)
        built((2000,), "float32", function=function)(numbers, out)
        np.testing.assert_array_equal(out, meant.accumulate(numbers))


def test_sums_of_floats_are_the_same_in_any_order_and_at_each_call():
    module = built((96 * 1030,), "float32")
    given = np.random.default_rng(0).standard_normal(96 * 1030).astype("float32")
    results = []
    for order, seed in (("forwards", 0), ("backwards", 0), ("random", 0), ("random", 1)):
        module.set_thread_order(order, seed)
        results.append(np.zeros_like(given))
        module(given, results[-1])
    assert all([np.array_equal(results[0], other) for other in results])
    assert np.abs(results[0] - np.cumsum(given.astype("float64"))).max() < 1e-3


def test_rows_that_exceed_l2_are_read_once():
    data = te.placeholder((2, 40_000), "int32", name="A")
    out = topi.cumsum(data, 1)
    plan = autosched.apply([data, out], SMALL_L2)
    assert "one pass over memory: L2 does not keep the rows" in plan.explain()
    module = lw.build(plan.mod, target=SMALL_L2)
    assert "lw_take_ticket" in module.get_source("cuda")
    given, result = np.random.default_rng(0).integers(-9, 9, (2, 40_000), "int32"), np.zeros((2, 40_000), "int32")
    module(given, result)
    np.testing.assert_array_equal(result, np.cumsum(given, 1, dtype="int32"))
    assert "lw_take_ticket" not in lw.build([data, out], target=EMULATED, autosched=True).get_source("cuda")


@pytest.mark.parametrize(("threads", "is_one_pass"), [(96, True), (64, False)])
def test_blocks_have_a_warp_for_each_level(threads, is_one_pass):
    target = f"{SMALL_L2} -max_threads_per_block={threads}"
    data = te.placeholder((40_000,), "int32", name="A")
    module = lw.build([data, topi.cumsum(data)], target=target, autosched=True)
    assert ("lw_take_ticket" in module.get_source("cuda")) == is_one_pass
    result = np.zeros(40_000, "int32")
    module(np.arange(40_000, dtype="int32"), result)
    np.testing.assert_array_equal(result, np.cumsum(np.arange(40_000), dtype="int32"))


def test_rows_of_more_elements_than_32_bits_count():
    data = te.placeholder((tir.const(1 << 32, "int64"),), "int8", name="A")
    text = lw.build([data, topi.cumsum(data)], target="cuda -arch=sm_90", autosched=True).get_source("cuda")
    assert "const int64_t number = (int64_t)" in text


def test_what_is_handed_on_has_memory_of_its_own():
    """Other memory of the program is neither shared with status words nor are these made smaller."""
    data = te.placeholder((40_000,), "float32", name="A")
    first = topi.cumsum(topi.exp(data), 0)
    out = topi.cumsum(first, 0)
    plan = autosched.apply([data, out], SMALL_L2)
    module = lw.build(plan.mod, target=SMALL_L2)
    given, result = np.full(40_000, -9.0, "float32"), np.zeros(40_000, "float32")
    module(given, result)
    wanted = np.exp(given.astype("float64")).cumsum().cumsum()
    np.testing.assert_allclose(result, wanted, rtol=1e-5)
    text = lower(plan.mod, Target(SMALL_L2))["main"].script()
    assert len(re.findall(r"T.decl_buffer\(\(3,\), \"uint64\"\)", text)) == 2, text


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_what_nvrtc_makes_of_it(arch):
    module = built((1 << 26,), "float32", lanes=4, target=f"cuda -arch={arch}", threads=256)
    ptx = module.get_source("ptx")
    assert "st.relaxed.gpu.u64" in ptx and "ld.relaxed.gpu.u64" in ptx and "atom.add.u32" in ptx
    assert "ld.global.nc.v4" in ptx and "st.global.v4" in ptx
    log = compile_cuda(module.get_source("cuda"), arch, ["--ptxas-options=-v"]).log
    assert re.findall(r"(\d+) bytes spill stores", log)
    assert not [count for count in re.findall(r"(\d+) bytes spill stores", log) if count != "0"]
