"""The element-wise operators in numpy, and what they are tried on.

A function of float64 is held against one of a longer type where the machine has it: numpy's own may be off by more
than ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from loopwright.runtime.dtype import DataType
from loopwright.topi.registry import Sample, ulps

_SPECIAL: Final = (0.0, -0.0, float("inf"), float("-inf"), float("nan"))


def wide(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """`function` computed in long floats and rounded once to float64."""
    return lambda x: np.asarray(function(np.asarray(x).astype(np.longdouble))).astype(np.float64)


def function_samples(stated: float, lo: float, hi: float) -> list[Sample]:
    """A function of floating-point numbers from `lo` to `hi`, off by `stated` units in the last place at most."""
    # Half a unit is the rounding of the exact result, which every sample is granted. float16 is computed in float32.
    # float64 falls back to the C library where we have no body of our own: it stays within a unit.
    slack = {
        "float32": ulps(stated - 0.5, "float32"),
        "float16": ulps(stated, "float32"),
        "float64": ulps(stated, "float64"),
    }
    x = np.linspace(lo, hi, 23)
    samples = [Sample((x.astype(dtype),), {}, bound) for dtype, bound in slack.items()]
    inside = [value for value in _SPECIAL if not lo <= value <= hi or value != value or value == 0]
    samples.append(Sample((np.array(inside, "float32"),), {}, slack["float32"]))
    shapes: list[tuple[int, ...]] = [(0, 3), (1, 1), (3, 1, 7), ()]
    samples += [Sample((np.full(shape, (lo + hi) / 2, "float32"),), {}, slack["float32"]) for shape in shapes]
    return samples


def exact_samples(*more: str, only: bool = False) -> list[Sample]:
    """Operators whose results are exact: numbers of each type, those of the types `more` as well (or `only` those)."""
    arrays = [] if only else [
        np.array([-2.7, -1.5, -0.5, -0.25, 0.0, -0.0, 0.3, 0.75, 1.5, 2.5, 3e9, *_SPECIAL], "float32"),
        np.linspace(-4.1, 4.3, 15).reshape(3, 5),
        np.linspace(-4.1, 4.3, 7).astype("float16").reshape(7, 1),
        np.array([[-(2**31) + 1, -7, 0, 1, 2**31 - 1]], "int32"),
        np.array([-127, -1, 0, 1, 127], "int8"),
        np.array([0, 1, 128, 255], "uint8"),
        np.zeros((0, 3), "float32"),
    ]  # fmt: skip
    for dtype in more:
        arrays.append(np.arange(12).reshape(3, 4) % 3 > 0 if dtype == "bool" else np.arange(-5, 6).astype(dtype))
    return [Sample((array,)) for array in arrays]


def erf_python(x: np.ndarray) -> np.ndarray:
    """The error function."""
    return np.vectorize(lambda value: math.erf(float(value)), otypes=[np.float64])(x)


def sigmoid_python(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def round_python(x: np.ndarray) -> np.ndarray:
    """The nearest integer, halves away from zero."""
    if x.dtype.kind in "iub":
        return x
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def clip_python(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """At most `high`, then at least `low`."""
    if x.dtype.kind in "iu":
        kind = np.iinfo(x.dtype)
        low, high = [int(min(max(bound, int(kind.min)), int(kind.max))) for bound in (low, high)]
    return np.maximum(np.minimum(x, high), low)


def clip_samples() -> list[Sample]:
    """Limits inside, outside and crossed, of each type."""
    limits = [(-1.5, 2.5), (0.0, 6.0), (0, 1), (-8, 100), (-300, 4), (2, 300), (0.0, 1.0)]
    samples = [Sample((sample.args[0], *pair)) for sample, pair in zip(exact_samples(), limits, strict=True)]
    crossed = Sample((np.array([-5, 0, 5], "float32"), 2.0, -2.0))
    return [*samples, crossed, Sample((np.array([-5, 0, 5], "int32"), float("-inf"), float("inf")))]


def cast_python(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats are cut to integers, and become truth values where they are not 0."""
    return x.astype(DataType(dtype).numpy())


def cast_samples() -> list[Sample]:
    """Between integers, floats and truth values, in both directions."""
    floats = np.array([-2.7, -1.0, -0.5, 0.0, 0.25, 1.0, 100.3], "float32")
    integers = np.array([-128, -1, 0, 1, 77, 127], "int8")
    wanted = "float32 float64 float16 bfloat16 int8 int32 int64 bool".split()
    samples = [Sample((floats, dtype)) for dtype in wanted]
    samples += [Sample((integers, dtype)) for dtype in ("float32", "uint8", "int64", "bool", "float16")]
    samples += [Sample((np.array([True, False]), dtype)) for dtype in ("float32", "int8", "bool")]
    samples += [Sample((np.array([2**40 + 3, -1], "int64"), dtype)) for dtype in ("int32", "float32", "uint16")]
    return [*samples, Sample((np.zeros((0, 2), "float32"), "int32"))]


def reinterpret_samples() -> list[Sample]:
    """Integers that are other integers; the reference is their bits."""
    bits = np.array([0, 1, 127, 128, 255], "uint8")
    return [
        Sample((bits, "int8")),
        Sample((bits.view("int8"), "uint8")),
        Sample((np.arange(6, dtype="int32"), "uint32")),
    ]


def _multiply_shift(x: int, y: int, left: int, right: int) -> int:
    product = (x << left) * y
    return (product + (1 << (30 + right))) >> (31 + right)


def fixed_point_multiply_python(x: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    """x · multiplier · 2^(shift - 31), halves up."""
    each = np.vectorize(lambda v: _multiply_shift(int(v), multiplier, max(shift, 0), max(-shift, 0)), otypes=[object])
    return each(x).astype(np.int64) if x.size else x


def fixed_point_multiply_samples() -> list[Sample]:
    """Factors below and above 1, negative numbers, halves."""
    x = np.array([-(2**20), -1000, -3, -1, 0, 1, 2, 3, 999, 2**20 + 1], "int32")
    factors = [(1 << 30, 1), (1 << 30, 0), (1395864371, -3), (2**31 - 1, 2), (1 << 30, -8)]
    samples = [Sample((x, factor, shift)) for factor, shift in factors]
    return [*samples, Sample((np.zeros((0, 2), "int32"), 1 << 30, 1)), Sample((x.reshape(2, 5), 1 << 30, -1))]


def fixed_point_multiply_per_axis_python(
    x: np.ndarray,
    y: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    use_left: int,
    use_right: int,
    axes: Sequence[int],
) -> np.ndarray:
    """The same with factors and shifts for each place along `axes`."""
    result = np.zeros(x.shape, np.int64)
    for index in np.ndindex(*x.shape):
        at = tuple([index[axis] for axis in axes])
        shifts = int(left[at]) if use_left else 0, int(right[at]) if use_right else 0
        result[index] = _multiply_shift(int(x[index]), int(y[at]), *shifts)
    return result


def fixed_point_multiply_per_axis_samples() -> list[Sample]:
    """Along one axis and along two, with each of the shifts."""
    x = np.arange(-12, 12, dtype="int32").reshape(2, 3, 4) * 1001
    y = np.array([1 << 30, 1395864371, 2**31 - 1], "int32")
    left, right = np.array([0, 1, 2], "int32"), np.array([3, 0, 1], "int32")
    samples = [Sample((x, y, left, right, a, b, [1])) for a, b in ((1, 1), (1, 0), (0, 1), (0, 0))]
    grid = np.tile(y[:, None], (1, 4)), np.tile(left[:, None], (1, 4)), np.tile(right[:, None], (1, 4))
    return [*samples, Sample((x, *grid, 1, 1, [-2, 2]))]


def ceil_log2_python(x: np.ndarray) -> np.ndarray:
    """log2 rounded up."""
    if x.dtype.kind == "f":
        return np.ceil(np.log2(x))
    return np.array([int(value - 1).bit_length() for value in x])


def ceil_log2_samples() -> list[Sample]:
    """Around powers of two."""
    numbers = [1, 2, 3, 4, 5, 7, 8, 9, 100]
    samples = [Sample((np.array(numbers, dtype),)) for dtype in ("int32", "int8", "uint8", "float32")]
    return [*samples, Sample((np.array([2**40, 2**40 + 1, 2**62 + 1], "int64"),))]


def elemwise_sum_samples() -> list[Sample]:
    """One, two and three tensors."""
    x = [np.arange(6, dtype="float32").reshape(2, 3) * scale for scale in (1, 2, -4)]
    integers = [np.array([100, -100], "int8")] * 3
    empty = [np.zeros((0, 2), "float32")] * 2
    return [Sample((value,)) for value in (x[:1], x[:2], x, integers, empty)]


def full_samples() -> list[Sample]:
    """Shapes and types."""
    calls = [((2, 3), "float32", 1.5), ((0, 2), "float32", 1.0), ((), "int32", 7), ((4,), "int8", -3)]
    return [Sample(call) for call in [*calls, ((2, 2), "bool", True), ((3,), "float64", 0.1)]]


def full_like_samples() -> list[Sample]:
    """Shapes and types of another tensor."""
    like = [np.ones((2, 3), "float32"), np.ones((0,), "int32"), np.ones((5,), "uint8"), np.ones((), "float64")]
    return [Sample((x, 3)) for x in like]


def trilu_python(data: np.ndarray, k: np.ndarray | int, upper: bool) -> np.ndarray:
    """numpy's triu and tril."""
    return np.triu(data, int(k)) if upper else np.tril(data, int(k))


def trilu_samples() -> list[Sample]:
    """Diagonals above, below and outside; `k` as a number and as a tensor."""
    x = np.arange(1, 31, dtype="float32").reshape(2, 3, 5)
    samples = [Sample((x, k, upper)) for k in (0, 1, -2, 7) for upper in (True, False)]
    empty = Sample((np.zeros((0, 3), "int32"), 0, True))
    return [*samples, Sample((x.astype("int8"), np.array(-1, "int64"), False)), empty]
