"""How far a correct kernel may be from the float64 result: bounds derived from the algorithm, for any order of sums.

A rounding to nearest changes a value by at most `unit` of itself; n of them, one after another, by `gamma(n)`. The
errors of our functions are the stated ones of docs/math.md, in ulp, and an ulp is at most two units.
"""

from __future__ import annotations

import numpy as np

from benchmarks.bench.case import Array

ULP = {"exp": 1.0, "log": 1.0, "tanh": 3.0, "erf": 1.5, "sigmoid": 2.5, "rsqrt": 1.5}
# The float64 reference is rounded too, and libraries are a few ulp off in float64; far below a unit of float32.
SLACK = 1 + 2.0**-20


def unit(dtype: str = "float32") -> float:
    """The largest relative error of one rounding."""
    return float(np.finfo(dtype).eps) / 2


def gamma(count: int, dtype: str = "float32") -> float:
    """The largest relative error of `count` roundings in a row."""
    u = unit(dtype)
    return count * u / (1 - count * u) * SLACK


def ulps(function: str, dtype: str = "float32") -> float:
    """The relative error of a function whose argument is exact."""
    return 2 * ULP[function] * unit(dtype) * SLACK


def wide(x: Array) -> Array:
    """The same values in the type that references compute in."""
    return x.astype("float64")
