"""Floats without operators of their own: the codes of numbers are those of ml_dtypes, at every border."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.frontends.onnx.onnx_models import model, run

KINDS = {18: "float8_e4m3fnuz", 20: "float8_e5m2fnuz", 23: "float4_e2m1fn"}
NAMES = {18: "float8e4m3fnuz", 20: "float8e5m2fnuz", 23: "float4e2m1"}


def borders(kind) -> np.ndarray:
    """Every value, the middle between neighbours, and the numbers beside these."""
    bits = 4 if kind == ml_dtypes.float4_e2m1fn else 8
    values = np.arange(1 << bits, dtype=np.uint8).view(kind).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    points = np.concatenate([values, middles])
    return np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))])


@pytest.mark.parametrize("code", KINDS)
def test_numbers_are_rounded_to_the_nearest_code(code):
    kind = getattr(ml_dtypes, KINDS[code])
    x = borders(kind)
    largest = float(ml_dtypes.finfo(kind).max)
    graph = model(f"(float[n] x) => ({NAMES[code]}[n] y) {{ y = Cast<to = {code}>(x) }}", opset=24)
    found = run(graph, x).astype(np.float32)
    np.testing.assert_array_equal(found, np.clip(x, -largest, largest).astype(kind).astype(np.float32))


@pytest.mark.parametrize("code", [18, 20])
def test_numbers_that_are_too_large_without_saturation(code):
    kind = getattr(ml_dtypes, KINDS[code])
    largest = float(ml_dtypes.finfo(kind).max)
    x = np.float32([largest, largest * 1.01, largest * 2, -largest * 2, np.inf, -np.inf, np.nan])
    graph = model(f"(float[n] x) => ({NAMES[code]}[n] y) {{ y = Cast<to = {code}, saturate = 0>(x) }}", opset=24)
    np.testing.assert_array_equal(run(graph, x).astype("f"), x.astype(kind).astype("f"))


@pytest.mark.parametrize("code", KINDS)
def test_codes_become_their_values(code):
    kind = getattr(ml_dtypes, KINDS[code])
    codes = np.arange(16 if code == 23 else 256, dtype=np.uint8).view(kind)
    graph = model(f"({NAMES[code]}[n] x) => (float16[n] y) {{ y = Cast<to = 10>(x) }}", opset=24)
    np.testing.assert_array_equal(run(graph, codes), codes.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize(("to", "name", "bits"), [(22, "int4", 4), (21, "uint4", 4), (26, "int2", 2), (25, "uint2", 2)])
def test_small_integers_keep_the_lowest_bits(to, name, bits):
    x = np.arange(-20, 20, dtype=np.int32)
    graph = model(f"(int32[n] x) => ({name}[n] y) {{ y = Cast<to = {to}>(x) }}", opset=25)
    low = x & ((1 << bits) - 1)
    wanted = low if name[0] == "u" else np.where(low >> (bits - 1), low - (1 << bits), low)
    np.testing.assert_array_equal(run(graph, x).astype(int), wanted)


def test_what_is_carried_stays_so_through_a_transpose():
    x = np.array([[1, -2, 3], [-4, 5, -6]]).astype(ml_dtypes.int4)
    graph = model("(int4[2, 3] x) => (int4[3, 2] y) { y = Transpose(x) }", opset=24)
    found = run(graph, x)
    assert found.dtype == ml_dtypes.int4
    np.testing.assert_array_equal(found.astype(int), x.astype(int).T)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_powers_of_integers_are_exact(dtype):
    """Of negative exponents, 1 and -1 alone leave anything; a result that does not fit wraps around."""
    x = np.array([3, -7, 0, 0, 1, 1, -1, -1, 2, -2, 10], dtype)
    y = np.array([19, 3, 0, 5, -1, -64, -3, -2, -1, 31, 9], dtype)
    graph = model(f"({dtype}[11] x, {dtype}[11] y) => ({dtype}[11] z) {{ z = Pow(x, y) }}")
    want = np.array([3**19, -343, 1, 0, 1, 1, -1, 1, 0, -(2**31), 10**9]).astype(dtype)
    np.testing.assert_array_equal(run(graph, x, y), want)
    graph = model(f"({dtype}[10] x) => ({dtype}[10] z) {{ y = Constant<value = {dtype} {{4}}>() z = Pow(x, y) }}")
    np.testing.assert_array_equal(run(graph, x[:-1]), x[:-1] ** 4)
