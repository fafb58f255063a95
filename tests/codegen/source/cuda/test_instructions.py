"""Helpers that are one instruction where the compiler has one, and our arithmetic where kernels are emulated."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, compile_cuda, find_library


def program(dtype):
    A = te.placeholder((64,), dtype, name="A")
    return [A, te.compute((64,), lambda i: A[i] * te.const(3, dtype), name="B")]


@pytest.mark.parametrize(
    ("dtype", "instructions"),
    [("float16", ("cvt.f32.f16", "cvt.rn.f16.f32")), ("bfloat16", ("cvt.rn.bf16.f32",))],
)
def test_gpus_convert_in_one_instruction(dtype, instructions):
    source = lw.build(program(dtype), target="cuda -model=emulated", autosched=True).get_source()
    assert all([source.count(f'asm("{instruction} ') == 1 for instruction in instructions])
    try:
        find_library()
    except NoNvrtc:
        pytest.skip("NVRTC is not installed")
    for arch in ("sm_75", "sm_90a"):
        assert compile_cuda(source, arch).code


def test_emulated_kernels_convert_as_ever():
    a = np.array([0, 1 / 3, -2049, 65504, 6e-8, -np.inf, np.nan, 1e-3] * 8, "float16")
    b = np.zeros(64, "float16")
    lw.build(program("float16"), target="cuda -model=emulated", autosched=True)(a, b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(b, (a.astype("float32") * 3).astype("float16"))


def test_extrema_are_one_instruction():
    A, B = te.placeholder((6,), name="A"), te.placeholder((6,), name="B")
    lesser = te.compute((6,), lambda i: tir.min(A[i], B[i]), name="lesser")
    greater = te.compute((6,), lambda i: tir.max(A[i], B[i]), name="greater")
    module = lw.build([A, B, lesser, greater], target="cuda -model=emulated", autosched=True)
    assert 'asm("min.NaN.f32 %0, %1, %2;"' in module.get_source() and 'asm("max.NaN.f32 ' in module.get_source()
    a = np.array([1, np.nan, 2, 0.0, -0.0, -np.inf], "float32")
    b = np.array([2, 0, np.nan, -0.0, 0.0, 5], "float32")
    low, high = np.zeros(6, "float32"), np.zeros(6, "float32")
    module(a, b, low, high)
    np.testing.assert_array_equal(low, np.minimum(a, b))
    np.testing.assert_array_equal(high, np.maximum(a, b))
    assert np.signbit(low[3:5]).all() and not np.signbit(high[3:5]).any()


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
def test_quotients_without_special_cases_take_no_branch(function):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: getattr(tir, function)(A[i]), name="B")
    source = lw.build([A, B], target="cuda -model=emulated", autosched=True).get_source()
    assert "lw_quotient_f32(" in source and 'asm("rcp.approx.ftz.f32 %0, %1;"' in source
    C = te.compute((64,), lambda i: A[i] / (A[i] + 1.0), name="C")
    assert "quotient" not in lw.build([A, C], target="cuda -model=emulated", autosched=True).get_source()


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_such_quotients_are_right_whatever_the_reciprocal_rounds_to(off):
    """The steps of the CUDA text, in float64 where they are exact, from a reciprocal `off` units off."""
    rng = np.random.default_rng(0)
    b = np.exp2(rng.uniform(0, 30, 100000)).astype("float32")
    a = (rng.uniform(-1, 1, b.size) * b * np.exp2(-rng.integers(0, 60, b.size).astype("float64"))).astype("float32")
    r = np.float32(1) / b
    r += off * np.spacing(r)
    q = a * r
    rest = (a.astype("float64") - q.astype("float64") * b).astype("float32")
    got = (rest.astype("float64") * r + q).astype("float32")
    exact = a.astype("float64") / b
    assert np.max(np.abs(got - exact) / np.spacing(np.abs(exact).astype("float32"))) <= 0.51
