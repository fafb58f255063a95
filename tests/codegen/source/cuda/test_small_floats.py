"""float8 on GPUs: every value is stored, copied and converted as on CPUs, and NVRTC takes the text."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, find_library

EMULATED = "cuda -model=emulated"
KINDS = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def same(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_array_equal(one.astype("float32"), other.astype("float32"))


@pytest.mark.parametrize("dtype", KINDS)
def test_all_values_are_copied_and_widened(dtype):
    A = te.placeholder((256,), dtype, name="A")
    copied = te.compute((256,), lambda i: A[i], name="copied")
    wide = te.compute((256,), lambda i: A[i].astype("float32"), name="wide")
    a = np.arange(256, dtype="uint8").view(KINDS[dtype])
    b, c = np.zeros(256, KINDS[dtype]), np.zeros(256, "float32")
    lw.build([A, copied, wide], target=EMULATED, autosched=True)(a, b, c)
    np.testing.assert_array_equal(b.view("uint8"), a.view("uint8"))
    same(c, a)


@pytest.mark.parametrize("dtype", KINDS)
def test_numbers_are_rounded_as_on_cpus(dtype):
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i].astype(dtype), name="B")
    C = te.compute((4096,), lambda i: (B[i] + B[i]).astype(dtype), name="C")
    a = (np.random.default_rng(0).standard_normal(4096) * np.exp2(np.arange(4096) % 40 - 25.0)).astype("float32")
    a[:4] = np.inf, -np.inf, np.nan, -0.0
    results = []
    for target in ("llvm", EMULATED):
        b, c = [np.zeros(4096, KINDS[dtype]) for _ in range(2)]
        lw.build([A, B, C], target=target, autosched=True)(a, b, c)
        results.append((b, c))
    for native, emulated in zip(*results, strict=True):
        same(native, emulated)
    finite = np.abs(a) <= float(ml_dtypes.finfo(KINDS[dtype]).max)
    same(results[0][0][finite], a[finite].astype(KINDS[dtype]))


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_nvrtc_compiles_them(arch):
    try:
        find_library()
    except NoNvrtc:
        pytest.skip("NVRTC is not installed")
    A = te.placeholder((256,), "float8_e5m2", name="A")
    B = te.compute((256,), lambda i: A[i].astype("float8_e4m3"), name="B")
    assert ".entry" in lw.build([A, B], target=f"cuda -arch={arch}", autosched=True).get_source("ptx")
