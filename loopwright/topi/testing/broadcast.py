"""The operators of two operands in numpy, and what they are tried on."""

from __future__ import annotations

import numpy as np

from loopwright.topi.registry import Sample, ulps
from loopwright.topi.samples import whole_numbers

_SHAPES = [
    ((4, 3), (4, 3)),
    ((4, 1), (3,)),
    ((3,), (2, 4, 3)),
    ((1, 1), (5, 7)),
    ((0, 3), (3,)),
    ((), (5,)),
    ((2,), ()),
]


def _pairs(dtype: str, low: int, high: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(whole_numbers(a, dtype, low, high), whole_numbers(b, dtype, low, high)) for a, b in _SHAPES]


def arithmetic_samples(shapes: int = 2) -> list[Sample]:
    """Shapes, types, NaN and infinities, numbers on either side; one rounding, so all is exact."""
    samples = [Sample(pair) for pair in _pairs("float32", -9, 9)[:shapes]]
    samples += [Sample(_pairs(dtype, 0, 9)[0]) for dtype in ("float64", "float16", "int8", "uint8")]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 0.1, 3e38], "float32")
    return [*samples, Sample((special[:, None], special)), Sample((3, whole_numbers((2, 3), "float32")))]


def power_python(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """base ** exponent; the power of integers wraps."""
    return np.power(base, exponent)


def power_samples() -> list[Sample]:
    """Floats within 1.5 units in the last place, of which half is the rounding; integers exactly."""
    base = np.array([[0.1, 1.0, 2.5, 100.0]], "float32")
    exponent = np.array([[-3.5], [0.0], [0.5], [2.0], [7.25]], "float32")
    samples = [Sample((base, exponent), {}, ulps(1.0, "float32")), Sample((base, 2.0), {}, ulps(1.0, "float32"))]
    samples.append(Sample((base.astype("float64"), exponent.astype("float64")), {}, ulps(2.0, "float64")))
    samples.append(Sample((np.array([-2.0, 0.0, np.inf, np.nan], "float32"), 3.0), {}, ulps(1.0, "float32")))
    samples.append(Sample((base.astype("float16"), np.array([2.0], "float16")), {}, ulps(1.5, "float32")))
    for dtype in ("int32", "int64", "uint8"):
        samples.append(Sample((np.array([[0, 1, 2, 3, 11]], dtype), np.array([[0], [1], [5], [9]], dtype))))
    samples.append(Sample((np.array([-1, 0, 1], "int32"), np.array([[101], [102]], "int32"))))
    return [*samples, Sample((np.array([-1, -2, -3], "int32"), np.array([[3], [2]], "int32")))]


def division_samples(floats: bool = True, exact: bool = False) -> list[Sample]:
    """Every combination of signs; `exact`: no infinite operands, of which numpy says otherwise than C."""
    a, b = np.array([-7, -4, -1, 0, 1, 4, 7])[:, None], np.array([-3, -2, -1, 1, 2, 3])
    samples = [Sample((a.astype(dtype), b.astype(dtype))) for dtype in ("int32", "int8")]
    samples.append(Sample((np.abs(a).astype("uint8"), np.abs(b).astype("uint8"))))
    samples += [Sample((a.astype("int32"), 2)), Sample((7, b.astype("int32"))), Sample((a[:0].astype("int32"), 3))]
    if floats:
        samples += [Sample((a.astype(dtype) * 0.5, b.astype(dtype))) for dtype in ("float32", "float64", "float16")]
        samples.append(Sample(_pairs("float32", 1, 9)[1]))
        samples.append(Sample((np.array([7.5, -7.5, np.nan], "float32"), 0.0)) if not exact else samples[0])
    return samples


def divide_python(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """True division of floats, integers towards zero."""
    if np.result_type(a, b).kind not in "iub":
        return np.divide(a, b)
    return (np.sign(a) * np.sign(b)) * (np.abs(a) // np.abs(b))


def float_floor_divide_python(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient rounded down."""
    return np.floor(np.divide(a, b)) if np.result_type(a, b).kind not in "iub" else np.floor_divide(a, b)


def mod_python(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainder with the sign of the dividend."""
    return np.fmod(a, b)


def shift_samples() -> list[Sample]:
    """Shifts within the width."""
    x = np.array([-100, -1, 0, 1, 77])[:, None]
    samples = [Sample((x.astype(dtype), np.arange(5).astype(dtype))) for dtype in ("int32", "int8", "int64")]
    return [*samples, Sample((np.abs(x).astype("uint8"), np.arange(5, dtype="uint8"))), Sample((x.astype("int32"), 3))]


def integer_samples() -> list[Sample]:
    """Shapes and types of integers, and truth values."""
    samples = [Sample(pair) for pair in _pairs("int32", -99, 99)[:2]]
    samples += [Sample(_pairs(dtype, 0, 99)[1]) for dtype in ("int8", "uint8", "int64")]
    return [*samples, *logic_samples()[:2], Sample((whole_numbers((3,), "int32"), 12))]


def logic_samples() -> list[Sample]:
    """Truth values of several shapes."""
    both = np.array([True, False])
    empty = np.zeros((0, 2), bool)
    return [Sample((both[:, None], both)), Sample((both, both)), Sample((both, True)), Sample((empty, both))]


def comparison_samples() -> list[Sample]:
    """Shapes, types, NaN and infinities."""
    samples = [Sample(pair) for pair in _pairs("float32", -2, 2)[1:2]]
    samples += [Sample(_pairs(dtype, 0, 3)[1]) for dtype in ("float16", "int8", "uint8")]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "float32")
    return [
        *samples,
        Sample((special[:, None], special)),
        Sample((special, 0.0)),
        Sample((1, whole_numbers((5,), "int32"))),
    ]


def broadcast_to_samples() -> list[Sample]:
    """New dimensions in front, dimensions of 1, none at all."""
    calls = [((3,), (2, 3)), ((3, 1), (3, 4)), ((), (2, 2)), ((1, 3), (0, 3)), ((2, 3), (2, 3)), ((1,), (2, 1, 5))]
    samples = [Sample((whole_numbers(shape), wanted)) for shape, wanted in calls]
    return [*samples, Sample((np.array([True, False]), (3, 2))), Sample((whole_numbers((1, 5), "int8"), (7, 5)))]


def where_samples() -> list[Sample]:
    """Three shapes; conditions of several types; NaN on the side that is not taken."""
    condition = np.arange(12).reshape(4, 3) % 3 > 0
    x, y = whole_numbers((4, 3)), whole_numbers((3,))
    samples = [
        Sample((condition, x, y)),
        Sample((condition[:, :1].copy(), x, y)),
        Sample((condition, y, whole_numbers((4, 1)))),
    ]
    samples += [Sample((condition.astype(dtype), x, y)) for dtype in ("int32", "float32", "uint8")]
    samples += [Sample((condition, x.astype(dtype), y.astype(dtype))) for dtype in ("int8", "float16", "bool")]
    samples.append(Sample((condition, np.full((4, 3), np.nan, "float32"), x)))
    empty = Sample((np.zeros((0, 3), bool), np.zeros((0, 3), "float32"), y))
    return [*samples, empty, Sample((condition, x, 2.0)), Sample((np.array(True), x, y))]
