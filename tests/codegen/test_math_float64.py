"""The float64 functions: their stated error bounds against the long double of the C library."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tools.sweep_math import EXACT, OF_TWO, STATED, function, ulp_errors

pytestmark = pytest.mark.optimized

NAMES = [name for name, dtype in STATED if dtype == "float64" and name not in OF_TWO]
INF, NAN = math.inf, math.nan


def arguments() -> np.ndarray:
    rng = np.random.default_rng(11)
    some = [rng.normal(size=50_000), rng.uniform(-30, 30, 50_000), rng.uniform(-750, 715, 50_000)]
    some += [
        1 + rng.normal(size=50_000) * 1e-3,
        np.exp(rng.uniform(-708, 709, 50_000)) * rng.choice([-1.0, 1.0], 50_000),
    ]
    some += [rng.integers(0, 1 << 64, 50_000, dtype=np.uint64).view(np.float64)]
    some += [np.round(rng.uniform(-6e8, 6e8, 25_000)) * (np.pi / 2), rng.uniform(-1, 1, 50_000)]
    edges = [0.0, -0.0, INF, -INF, NAN, 5e-324, -5e-324, 1e-310, 709.78, 709.79, -708.4, -745.1, -745.2, 1.0, -1.0, 6.0]
    edges += [1023.999, 1024, -1074, -1075, 308.25, 308.26, -323.3, -323.4, 710.47, -710.48, 2.0**30, -(2.0**30), 1e308]
    return np.concatenate([*some, edges])


def test_large_arguments_of_some_lanes_leave_the_others_alone():
    """The C library's values for those alone: vectors of every lane count, two lanes included, find them."""
    x = np.tile([0.5, 1e300, -2.0, 7.0, 1.25, -3.5, 4.0, 2.0**31], 16)
    small = np.where(np.abs(x) < 2.0**30, x, 0.0)
    exact = np.sin(x.astype(np.longdouble))
    for lanes in (1, 2, 8):
        sine = function("sin", "float64", lanes=lanes)
        got, alone = sine(x), sine(small)
        assert ulp_errors(got, exact).max() <= STATED["sin", "float64"]
        np.testing.assert_array_equal(got[x == small], alone[x == small])


@pytest.mark.one_in(2)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long double is no wider than float64 here")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "erf"])
def test_error_is_within_the_stated_bound(name):
    x = arguments()
    with np.errstate(all="ignore"):
        errors = ulp_errors(function(name, "float64", lanes=8)(x), EXACT[name](x.astype(np.longdouble)))
    at = int(np.argmax(errors))
    assert errors[at] <= STATED[name, "float64"], f"{name}({x[at]!r}) is off by {errors[at]} ulp"


def test_erf_is_within_the_stated_bound_of_the_c_library():
    """Whose own error is below 1 ulp; against exact values ours was measured by hand (docs/math.md)."""
    x = arguments()[:250_000]
    x = np.concatenate([x, [0.0, -0.0, INF, -INF, NAN, 5e-324]])
    got, want = function("erf", "float64", lanes=8)(x), np.array([math.erf(value) for value in x.tolist()])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    known = ~np.isnan(want)
    places = np.abs(got.view(np.int64) - want.view(np.int64))[known]
    assert places.max() <= STATED["erf", "float64"] + 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_value_does_not_depend_on_the_lane_count(name):
    x = arguments()[::61]
    np.testing.assert_array_equal(function(name, "float64", lanes=8)(x), function(name, "float64", lanes=1)(x))
