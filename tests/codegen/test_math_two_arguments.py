"""pow, atan2, hypot, fmod: bounds on random arguments, and every pair of special ones as the C standard has it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tools.sweep_math import EXACT, STATED, function, ulp_errors

pytestmark = pytest.mark.optimized

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-45, -1e-45, 1e38, -1e38, INF, -INF, NAN]
SPECIAL += [16777215.0, -16777215.0, 16777216.0, 8388607.5, 0.99999994, 1.0000001]
SPECIAL_FLOAT64 = [5e-324, -5e-324, 1e-310, 1e308, -1e308, 2.0**53 - 1, 1 - 2.0**53, 2.0**53, 2.0**52 + 0.5]
SPECIAL_FLOAT64 += [1 - 2.0**-53, 1 + 2.0**-52]

OTHERS = [("atan2", "float64"), *(row for row in STATED if row[0] in ("hypot", "fmod"))]


def random_bits(count: int) -> np.ndarray:
    patterns = np.random.default_rng(count).integers(0, 1 << 32, count, dtype=np.uint64)
    return patterns.astype(np.uint32).view(np.float32)


WIDER = {"float32": np.float64, "float64": np.longdouble}
LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 60
DTYPES = ["float32", *(["float64"] if LONG_DOUBLE else [])]


def pow_arguments(dtype: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Arguments whose power is in the range of the type, ends included; denormals; small integers; any bits."""
    rng = np.random.default_rng(3)
    info, bits = np.finfo(dtype), {"float32": np.uint32, "float64": np.uint64}[dtype]
    most, least = np.log(float(info.max)), np.log(float(info.smallest_normal)) - info.nmant
    x = np.concatenate([np.exp(rng.uniform(-most, most, count)), rng.uniform(0.5, 2, count)]).astype(dtype)
    with np.errstate(divide="ignore", over="ignore"):
        y = (rng.uniform(least, most + 1, len(x)) / np.log(x.astype(np.float64))).astype(dtype)
    denormal = np.exp(-rng.uniform(0, info.nmant, count // 4)) * float(info.smallest_normal)
    small = denormal, rng.uniform(-1, 2, count // 4)
    whole = rng.integers(-40, 40, (2, count // 2))
    patterns = rng.integers(0, np.iinfo(bits).max, (2, count), dtype=bits).view(dtype)
    parts = zip((x, y), small, whole, patterns)
    first, second = (np.concatenate([part.astype(dtype) for part in argument]) for argument in parts)
    return first, second


@pytest.mark.parametrize("dtype", DTYPES)
def test_pow_is_within_the_stated_bound(dtype):
    x, y = pow_arguments(dtype, 200_000 if dtype == "float32" else 5_000)
    wider = WIDER[dtype]
    with np.errstate(all="ignore"):
        errors = ulp_errors(function("pow", dtype, lanes=8)(x, y), EXACT["pow"](x.astype(wider), y.astype(wider)))
    at = int(np.argmax(errors))
    assert errors[at] <= STATED["pow", dtype], f"pow({x[at]!r}, {y[at]!r}) is off by {errors[at]} ulp"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_power_does_not_depend_on_what_is_in_other_lanes(dtype):
    """A vector with one special lane is finished by another rule, and a scalar by itself: the bits are the same."""
    x, y = pow_arguments(dtype, 1_000)
    alone = function("pow", dtype, lanes=1)(x, y)
    np.testing.assert_array_equal(function("pow", dtype, lanes=8)(x, y), alone)
    usual = np.isfinite(alone) & (x > 0)
    np.testing.assert_array_equal(function("pow", dtype, lanes=2)(x[usual], y[usual]), alone[usual])


def test_atan2_is_within_the_stated_bound():
    rng = np.random.default_rng(4)
    y = np.concatenate([random_bits(300_000), rng.normal(size=300_000).astype(np.float32)])
    x = np.concatenate([random_bits(300_001)[1:], rng.normal(size=300_000).astype(np.float32)])
    with np.errstate(all="ignore"):
        errors = ulp_errors(function("atan2", "float32")(y, x), np.arctan2(y.astype(np.float64), x.astype(np.float64)))
    at = int(np.argmax(errors))
    assert errors[at] <= STATED["atan2", "float32"], f"atan2({y[at]!r}, {x[at]!r}) is off by {errors[at]} ulp"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "dtype"), OTHERS)
@pytest.mark.skipif(not LONG_DOUBLE, reason="long double is no wider than float64 here")
def test_other_functions_of_two_are_within_the_stated_bound(name, dtype):
    rng = np.random.default_rng(6)
    special = np.array(SPECIAL).astype(dtype)
    pairs = [part.ravel() for part in np.meshgrid(special, special)]
    bits = {"float32": np.uint32, "float64": np.uint64}[dtype]
    any_bits = rng.integers(0, np.iinfo(bits).max, (2, 50_000), dtype=bits).view(dtype)
    near = rng.normal(size=(2, 50_000)).astype(dtype)
    whole = rng.integers(1, 1000, (2, 20_000)).astype(dtype)  # quotients that are integers, and beside them
    beside = whole[:, :1] * whole * np.array([[1], [1 + np.finfo(dtype).eps]], dtype)
    y, x = (np.concatenate([*part]) for part in zip(pairs, any_bits, near, whole, beside))
    with np.errstate(all="ignore"):
        exact = EXACT[name](y.astype(np.longdouble), x.astype(np.longdouble))
        errors = ulp_errors(function(name, dtype, lanes=8)(y, x), exact)
    at = int(np.argmax(errors))
    assert errors[at] <= STATED[name, dtype], f"{name}({y[at]!r}, {x[at]!r}) is off by {errors[at]} ulp"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_special_arguments(name, dtype):
    special = SPECIAL + (SPECIAL_FLOAT64 if dtype == "float64" else [])
    first, second = (np.array(part, dtype) for part in zip(*itertools.product(special, special)))
    got = function(name, dtype, lanes=8)(first, second)
    with np.errstate(all="ignore"):
        exact = EXACT[name](first.astype(WIDER[dtype]), second.astype(WIDER[dtype]))
        errors = ulp_errors(got, exact)
    wrong = errors > STATED[name, dtype]
    assert not wrong.any(), [*zip(first[wrong], second[wrong], got[wrong], exact[wrong])][:5]
