"""Results against the reference: rounding is allowed, anything else is not."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.tune.measure.compare import reference, rounding_count
from tests.tune.measure.programs import add_one


def matmul(k: int, dtype: str = "float32"):
    a, b = te.placeholder((8, k), dtype, "a"), te.placeholder((k, 8), dtype, "b")
    axis = te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((8, 8), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis))])


def test_roundings_are_those_of_sums():
    assert rounding_count(matmul(500)) == 516
    assert rounding_count(add_one) == 17


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_another_order_of_a_sum_is_right(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 500)).astype(dtype), rng.standard_normal((500, 8)).astype(dtype)
    known = reference(matmul(500, dtype), [_in_order(a, b)], [_in_order(abs(a), abs(b))])
    assert known.difference([_in_order(a[:, ::-1], b[::-1])]) is None
    wrong = _in_order(a, b)
    wrong[3, 5] += wrong.dtype.type(16 if dtype == "float16" else 0.1)
    assert known.difference([wrong]).startswith("element [3, 5] is ")


def _in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        total += np.outer(a[:, k], b[k])
    return total


def test_integers_are_compared_exactly():
    known = reference(matmul(5, "int32"), [np.arange(64).reshape(8, 8)], None)
    assert known.difference([np.arange(64).reshape(8, 8)]) is None
    other = np.arange(64).reshape(8, 8)
    other[7, 7] += 1
    assert known.difference([other]) == "element [7, 7] is 64, expected 63 (1 of 64 are wrong)"


def test_the_same_infinities_and_nans_are_right():
    value = np.array([np.nan, np.inf, -np.inf, 1], "float32")
    known = reference(add_one, [value], None)
    assert known.difference([value.copy()]) is None
    for position, wrong in ((0, 1.0), (1, -np.inf), (2, np.nan), (3, np.nan)):
        other = value.copy()
        other[position] = wrong
        assert known.difference([other]).startswith(f"element [{position}] is ")


def test_an_absolute_run_that_overflows_allows_no_garbage():
    value = np.array([1.0, 2.0], "float32")
    known = reference(add_one, [value], [np.array([np.inf, np.inf], "float32")])
    assert known.difference([value * np.float32(1 + 1e-4)]) is None
    assert known.difference([value * np.float32(1.01)]) is not None


def test_several_outputs_are_numbered():
    values = [np.zeros(2, "int32"), np.zeros((), "int32")]
    known = reference(add_one, values, None)
    assert known.difference([np.zeros(2, "int32"), np.ones((), "int32")]) == (
        "output 2: element [] is 1, expected 0 (1 of 1 are wrong)"
    )
