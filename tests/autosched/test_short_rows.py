"""short_rows.py: results of rows too short for a vector, many at a time, each reduced in its own lane."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.ir import PrimFunc

WIDE = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=1"


def by_a_vector(batch: int, n: int, k: int, dtype: str) -> PrimFunc:
    """y[b, j] = sum of A[b, j, k] * x[b, k]"""
    a, x = te.placeholder((batch, n, k), dtype, name="A"), te.placeholder((batch, k), dtype, name="x")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([a, x, te.compute((batch, n), lambda b, j: te.sum(a[b, j, r] * x[b, r], axis=r), "y")])


def largest(shape: tuple[int, ...], dtype: str) -> PrimFunc:
    a = te.placeholder(shape, dtype, name="A")
    r = te.reduce_axis((0, shape[-1]), name="k")
    return te.create_prim_func([a, te.compute(shape[:-1], lambda *at: te.max(a[(*at, r)], axis=r), "y")])


@pytest.mark.parametrize("target", ["llvm -num-cores=1", "llvm -num-cores=2"])
@pytest.mark.parametrize(
    ("batch", "n", "k", "dtype"),
    [
        (1, 70, 2, "float32"),
        (3, 129, 3, "float32"),
        (1, 40000, 8, "float32"),
        (2, 37, 4, "float64"),
        (2, 99, 5, "int32"),
    ],
)
def test_matrices_with_short_rows_by_a_vector(batch: int, n: int, k: int, dtype: str, target: str) -> None:
    func = by_a_vector(batch, n, k, dtype)
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    random = np.random.default_rng(k)
    a, x = (random.integers(-9, 9, shape).astype(dtype) for shape in ((batch, n, k), (batch, k)))
    y = np.full((batch, n), 7, dtype)
    lw.build(plan.mod, target=target)(a, x, y)
    assert np.array_equal(y, np.einsum("bjk,bk->bj", a, x))  # of small integers every sum is exact


@pytest.mark.parametrize("shape", [(1000, 3), (5, 77, 2), (333, 8), (4, 100, 3)])
def test_largest_of_short_rows_keeps_nan(shape: tuple[int, ...]) -> None:
    plan = autosched.apply(largest(shape, "float32"), "llvm -num-cores=1")
    assert plan.schedule.is_proved
    a = np.random.default_rng(1).standard_normal(shape).astype("float32")
    a.reshape(-1)[::41] = np.nan
    y = np.zeros(shape[:-1], "float32")
    lw.build(plan.mod, target="llvm -num-cores=1")(a, y)
    assert np.array_equal(y, a.max(-1), equal_nan=True)


def test_who_is_in_the_lanes() -> None:
    assert "32 results at a time" in autosched.apply(by_a_vector(33, 10865, 3, "float32"), WIDE).explain()
    assert "16 results at a time" in autosched.apply(by_a_vector(1, 400, 5, "float32"), WIDE).explain()
    for func, target in [
        (by_a_vector(33, 10865, 3, "float32"), NEON),  # strided loads of four lanes save next to nothing
        (by_a_vector(1, 400, 15, "float32"), WIDE),  # a row fills a vector
        (by_a_vector(20, 5, 3, "float32"), WIDE),  # too few rows
        (largest((1000, 5, 3), "float32"), WIDE),
    ]:
        assert "results at a time" not in autosched.apply(func, target).explain()
