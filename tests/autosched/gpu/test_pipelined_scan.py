"""pipelined_scan: long rows in one pass over memory, tiles of which are loaded, added up and stored at once."""

from __future__ import annotations

import importlib
from unittest.mock import patch

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.scan_plan import ScanPlan, scan_plan
from loopwright.evaluator import evaluate
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, compile_cuda, find_library

EMULATED = "cuda -model=emulated -arch=sm_90"
H200 = "nvidia/nvidia-h200"
ORDERS = ("forwards", "backwards", "random")
parallel_scan = importlib.import_module("loopwright.autosched.gpu.parallel_scan")


def has_nvrtc():
    try:
        find_library()
    except NoNvrtc:
        return False
    return True


def small(dtype, stages=2, blocks=3):
    """Tiles of 2 KiB."""
    return ScanPlan(128, 1, 16 // np.dtype(dtype).itemsize, 1, 1, looks_back=True, stages=stages, blocks=blocks)


def program(shape, dtype, exclusive=False, function=topi.cumsum):
    data = te.placeholder(shape, dtype, name="A")
    return [data, function(data, -1, exclusive=exclusive)]


@pytest.mark.parametrize(
    ("shape", "dtype", "exclusive", "stages", "blocks"),
    [
        ((1,), "float32", False, 2, 3),
        ((512,), "float32", False, 2, 3),  # one tile
        ((513,), "float32", True, 3, 2),  # and one element: 4 bytes are no bulk copy
        ((512 * 300 + 7,), "int32", False, 4, 2),  # more tiles than a block has threads that look back
        ((2, 5001), "float32", True, 2, 3),  # the second row begins where no 16 bytes do
        ((3, 3333), "int8", False, 1, 7),  # byte by byte
        ((20001,), "int64", False, 3, 2),  # totals of two words
        ((1000,), "float16", False, 5, 3),
    ],
)
def test_running_totals_in_every_order_of_threads(shape, dtype, exclusive, stages, blocks):
    inputs = program(shape, dtype, exclusive)
    with patch.object(parallel_scan, "scan_plan", lambda *_: small(dtype, stages, blocks)):
        module = lw.build(inputs, target=EMULATED, autosched=True)
    assert "lw_bulk_copy_async" in module.get_source("cuda") or shape == (1,)
    given = np.random.default_rng(0).integers(0, 2 if dtype == "float16" else 9, shape).astype(dtype)
    wide = given.astype("float64" if dtype[0] == "f" else str(inputs[1].dtype))
    wanted = np.cumsum(wide, -1, dtype=wide.dtype) - (wide if exclusive else 0)
    for order in ORDERS:
        module.set_thread_order(order)
        got = np.zeros(wanted.shape, str(inputs[1].dtype))
        module(given, got)
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))


def test_the_program_in_the_order_of_its_text():
    """What is specialised is a program like any other, which the evaluator runs."""
    inputs = program((1500,), "int32", function=topi.cumprod)
    with patch.object(parallel_scan, "scan_plan", lambda *_: small("int32")):
        module = autosched.apply(inputs, EMULATED).mod
    given = np.random.default_rng(0).integers(1, 4, 1500).astype("int32")
    got = np.zeros(1500, "int32")
    evaluate(module["main"], given, got)
    np.testing.assert_array_equal(got, np.cumprod(given, dtype="int32"))


@pytest.mark.parametrize(
    ("length", "rows", "itemsize", "target", "is_copy", "stages"),
    [
        (2**28, 1, 4, H200, True, 3),
        (2**28 + 1, 1, 4, H200, True, 3),  # the end of a row goes word by word
        (2**27 + 4, 2, 4, H200, True, 3),
        (2**27, 1, 8, H200, True, 3),
        (2**28, 1, 4, H200, False, 0),
        (2**27 + 1, 2, 4, H200, True, 0),  # the second row begins where no 16 bytes do
        (2**28, 1, 2, H200, True, 0),  # where a tensor begins at an odd element, all would go byte by byte
        (2**28, 1, 4, "cuda -arch=sm_80", True, 0),
        (2**28, 1, 4, "cuda -arch=sm_90 -max_num_threads=512", True, 0),
    ],
)
def test_where_tiles_are_pipelined(length, rows, itemsize, target, is_copy, stages):
    plan = scan_plan(length, rows, itemsize, GpuMachine.of(target), is_copy)
    assert plan.looks_back
    assert plan.stages == stages
    assert plan.blocks == (132 if stages else 0)
    assert not stages or plan.tile * itemsize == (64 << 10 if itemsize == 4 else 48 << 10)


def test_what_is_converted_is_no_copy():
    data = te.placeholder((2**24,), "int32", name="A")
    text = lw.build([data, topi.cumsum(data, dtype="float64")], target=H200, autosched=True).get_source("cuda")
    assert "lw_await_published" in text
    assert "lw_bulk_copy_async" not in text


@pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_registers_suffice(dtype):
    text = lw.build(program((2**28,), dtype), target=H200, autosched=True).get_source("cuda")
    assert "lw_bulk_copy_async" in text
    log = compile_cuda(text, "sm_90", ["--ptxas-options=-v"]).log
    assert "0 bytes spill stores" in log
    assert log.count("bytes spill stores") == log.count(" 0 bytes spill stores")
