"""rules/interleaved.py: what is taken from several rows in turn arrives where it belongs, in vectors."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, tir, topi
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def shuffled(count, features, rows, columns, shift, dtype="float32", less=0):
    shape = (count * count * features, rows + 1, columns + 1)
    A = te.placeholder(shape, dtype, name="A")

    def cell(o, y, x):
        y, x = y + shift, x + shift
        return A[(y % count * count + x % count) * features + o, y // count, x // count]

    new = (features, rows * count - less, columns * count - less)
    return function(A, te.compute(new, cell, name="C")), [numbers(*shape, dtype=dtype), numbers(*new, dtype=dtype)]


@pytest.mark.parametrize(
    "count, features, rows, columns, shift, less",
    [(2, 3, 4, 8, 0, 0), (2, 1, 3, 9, 1, 1), (3, 2, 2, 5, 2, 1), (4, 2, 3, 17, 3, 0), (8, 1, 2, 4, 5, 3)],
)
def test_shapes(count, features, rows, columns, shift, less):
    plan = check_same_bits(*shuffled(count, features, rows, columns, shift, less=less))
    assert "interleaved rows" in plan.explain()


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint16", "float16", "bool"])
def test_types(dtype):
    assert "interleaved rows" in check_same_bits(*shuffled(2, 3, 4, 19, 1, dtype)).explain()


def test_sums_under_conditions():
    A = te.placeholder((3, 4, 11), name="A")

    def cell(o, x):
        near = tir.if_then_else(x // 2 < 11, A[x % 2, o, x // 2], 0.0)
        return near + tir.if_then_else(tir.all(x % 2 + 2 < 3, x // 2 >= 1), A[x % 2 + 2, o, x // 2 - 1], 0.0)

    plan = check_same_bits(
        function(A, te.compute((4, 23), cell, name="C")), [numbers(3, 4, 11), numbers(4, 23)]
    )
    assert "interleaved rows" in plan.explain() and "2 phases written out" in plan.explain()


def test_rows_of_other_dimensions():
    A = te.placeholder((6, 5, 21), name="A")

    def cell(y, x):
        return tir.if_then_else(y % 3 < 2, A[y % 3 * 2, y // 3, x] * 2.0, A[5, y // 3, x])

    plan = check_same_bits(function(A, te.compute((14, 21), cell, name="C")), [numbers(6, 5, 21), numbers(14, 21)])
    assert "interleaved rows" in plan.explain() and "all is contiguous" in plan.explain()


def test_stores_of_other_machines():
    func, _ = shuffled(2, 3, 4, 40, 1)
    assert "vectors of 16" in planned(func, AVX512).explain()


def test_upsampling_is_none():
    A = te.placeholder((3, 8, 8), name="A")
    repeated = te.compute((3, 16, 16), lambda c, y, x: A[c, y // 2, x // 2], name="C")
    tiled = topi.tile(A, (1, 1, 3))
    for result in (repeated, tiled):
        assert "interleaved" not in planned(function(A, result)).explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("times", [2, 3, 5, 7, 9])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_cells_that_are_repeated(times, dtype):
    X = te.placeholder((3, 17), dtype, name="X")
    func = te.create_prim_func([X, te.compute((3, 17 * times), lambda i, j: X[i, j // times], name="Y")])
    x = np.random.default_rng(times).integers(0, 99, (3, 17)).astype(dtype)
    check_same_bits(func, [x, np.zeros((3, 17 * times), dtype)])
