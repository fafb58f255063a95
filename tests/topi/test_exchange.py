"""Sorting networks: all sequences of zeros and ones, and rows of lengths where the code changes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.ordering.exchange import halvings, merge_exchange


def _run(pairs, rows):
    for i, j in pairs:
        rows[:, i], rows[:, j] = np.minimum(rows[:, i], rows[:, j]), np.maximum(rows[:, i], rows[:, j])
    return rows


def _zeros_and_ones(size):
    return (np.arange(1 << size)[:, None] >> np.arange(size)) & 1


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 11, 16])
def test_merge_exchange_sorts_zeros_and_ones(size):
    """What sorts them sorts everything (Knuth, volume 3, 5.3.4)."""
    rows = _zeros_and_ones(size)
    assert np.array_equal(_run(merge_exchange(size), rows.copy()), np.sort(rows))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_halvings_sort_bitonic_sequences(size):
    rows = _zeros_and_ones(size)
    rows = rows[(rows != np.roll(rows, 1, axis=1)).sum(1) <= 2]
    assert np.array_equal(_run(halvings(size), rows.copy()), np.sort(rows))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [17, 32, 33, 40, 48, 63, 65, 89, 130, 300, 521, 1100])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_in_lanes(size, axis):
    rng = np.random.default_rng(size)
    x = rng.integers(-3, 4, (11, size)).astype("float32")
    x[rng.random(x.shape) < 0.05] = np.nan
    x = x if axis else np.ascontiguousarray(x.T)
    data = te.placeholder(x.shape, "float32", name="data")
    in_order, places = topi.sort(data, axis, True), topi.argsort(data, None, axis, True, "int64")
    result, found = np.zeros_like(x), np.zeros(x.shape, "int64")
    lw.build([data, in_order, places], target="llvm")(x, result, found)
    assert np.array_equal(result, np.sort(x, axis), equal_nan=True)
    assert np.array_equal(found, np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_pairs_of_keys_and_places(dtype):
    x = np.random.default_rng(3).integers(-4, 5, (5, 77)).astype(dtype)
    data = te.placeholder(x.shape, dtype, name="data")
    found = np.zeros(x.shape, "int64")
    lw.build([data, topi.argsort(data, None, 1, False, "int64")], target="llvm")(x, found)
    assert np.array_equal(found, np.argsort(-x, 1, kind="stable"))
