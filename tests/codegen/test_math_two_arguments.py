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

OTHERS = [("atan2", "float64"), *(row for row in STATED if row[0] in ("hypot", "fmod"))]


def random_bits(count: int) -> np.ndarray:
    patterns = np.random.default_rng(count).integers(0, 1 << 32, count, dtype=np.uint64)
    return patterns.astype(np.uint32).view(np.float32)


def pow_arguments() -> tuple[np.ndarray, np.ndarray]:
    """Arguments whose power is a float32, over its whole range; small integers; any bits."""
    rng = np.random.default_rng(3)
    x = np.concatenate([np.exp(rng.uniform(-88, 88, 200_000)), rng.uniform(0.5, 2, 200_000)]).astype(np.float32)
    with np.errstate(divide="ignore"):
        y = (rng.uniform(-104, 89, len(x)) / np.log(x.astype(np.float64))).astype(np.float32)
    whole = rng.integers(-40, 40, (2, 100_000)).astype(np.float32)
    return (
        np.concatenate([x, whole[0], random_bits(200_000)]),
        np.concatenate([y, whole[1], random_bits(200_001)[1:]]),
    )


def test_pow_is_within_the_stated_bound():
    x, y = pow_arguments()
    with np.errstate(all="ignore"):
        errors = ulp_errors(function("pow", "float32")(x, y), EXACT["pow"](x.astype(np.float64), y.astype(np.float64)))
    at = int(np.argmax(errors))
    assert errors[at] <= STATED["pow", "float32"], f"pow({x[at]!r}, {y[at]!r}) is off by {errors[at]} ulp"


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
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long double is no wider than float64 here")
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


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_special_arguments(name):
    first, second = (np.array(part, np.float32) for part in zip(*itertools.product(SPECIAL, SPECIAL)))
    got = function(name, "float32", lanes=8)(first, second)
    with np.errstate(all="ignore"):
        exact = EXACT[name](first.astype(np.float64), second.astype(np.float64))
        errors = ulp_errors(got, exact)
    wrong = errors > STATED[name, "float32"]
    assert not wrong.any(), [*zip(first[wrong], second[wrong], got[wrong], exact[wrong])][:5]
