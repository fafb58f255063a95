"""Small floats to float32, every bit pattern; and back, halfway points, their neighbours and random bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopwright.codegen.math.table import BODIES
from tools.sweep_math import kernel

pytestmark = pytest.mark.optimized

NUMPY = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "e4m3_float8": ml_dtypes.float8_e4m3fn,
    "e5m2_float8": ml_dtypes.float8_e5m2,
}


def bits_type(dtype: str) -> str:
    return "uint16" if dtype.endswith("16") else "uint8"


def every_value(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All bit patterns, and the float32 numbers they stand for."""
    patterns = np.arange(1 << (8 * np.dtype(bits_type(dtype)).itemsize), dtype=np.uint32).astype(bits_type(dtype))
    return patterns, patterns.view(NUMPY[dtype]).astype(np.float32)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", NUMPY)
def test_decode_every_pattern(dtype, lanes):
    patterns, want = every_value(dtype)
    got = kernel(BODIES["decode", dtype], [bits_type(dtype)], "float32", lanes)(patterns)
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got[~nan].view(np.uint32), want[~nan].view(np.uint32))  # zeros keep their sign


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", NUMPY)
def test_encode_rounds_to_nearest_even(dtype, lanes):
    _, values = every_value(dtype)
    finite = np.unique(values[np.isfinite(values)])
    halfway = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    past = np.float32(finite[-1] + (finite[-1] - finite[-2]) / 2) if dtype != "bfloat16" else np.float32(np.inf)
    beyond = np.array([past, np.nextafter(past, np.float32(0)), 2 * past, np.inf, 3.4028235e38, 1e-45, 0.0], np.float32)
    rng = np.random.default_rng(5)
    random = rng.integers(0, 1 << 32, 300_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([finite, halfway, beyond, -beyond, random, rng.normal(size=100_000).astype(np.float32)])
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
        want = x.astype(NUMPY[dtype])
    got = kernel(BODIES["encode", dtype], ["float32"], bits_type(dtype), lanes)(x)
    nan = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.view(NUMPY[dtype]).astype(np.float32)), nan)
    np.testing.assert_array_equal(got[~nan], want.view(bits_type(dtype))[~nan])


@pytest.mark.parametrize("dtype", NUMPY)
def test_a_round_trip_changes_nothing(dtype):
    patterns, values = every_value(dtype)

    def there_and_back(bits):
        return BODIES["encode", dtype](BODIES["decode", dtype](bits))

    got = kernel(there_and_back, [bits_type(dtype)], bits_type(dtype), lanes=4)(patterns)
    nan = np.isnan(values)
    np.testing.assert_array_equal(got[~nan], patterns[~nan])
    np.testing.assert_array_equal(np.isnan(got.view(NUMPY[dtype]).astype(np.float32)), nan)
