"""Products of few columns, computed as their transpose where A lies along its rows."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.ir import PrimFunc
from tests.autosched.test_contraction import ONE, TWO, check, matmul, numbers

NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=1"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def explained(func: PrimFunc, target: str) -> str:
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    return plan.explain()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("flips", ["A", "AB"])
@pytest.mark.parametrize("size", [(97, 151, 2), (61, 240, 5), (130, 67, 3)])
def test_few_columns(size: tuple[int, int, int], flips: str) -> None:
    func = matmul(*size, flips=flips)
    for target in (NEON, AVX512):
        assert "computed as its transpose" in explained(func, target)
    check(func, flips=flips)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_types(dtype: str) -> None:
    check(matmul(45, 50, 3, dtype, flips="A"), flips="A")


@pytest.mark.parametrize("target", [ONE, TWO])
def test_batches_and_threads(target: str) -> None:
    check(matmul(41, 63, 2, flips="AB", batch=3), target, flips="AB")


def test_many_columns_stay_as_they_are() -> None:
    for size in ((97, 151, 64), (512, 9, 16), (14146, 19, 12)):
        assert "as its transpose" not in explained(matmul(*size, flips="A"), AVX512)


def test_where_rows_do_not_lie_so() -> None:
    assert "as its transpose" not in explained(matmul(97, 151, 2), AVX512)


@pytest.mark.parametrize("keeps", [False, True])
def test_an_epilogue(keeps: bool) -> None:
    a, b = te.placeholder((83, 70), name="A"), te.placeholder((3, 83), name="B")
    k = te.reduce_axis((0, 83), "k")
    c = te.compute((70, 3), lambda i, j: te.sum(a[k, i] * b[j, k], axis=k), name="C")
    d = te.compute((70, 3), lambda i, j: te.exp(c[i, j]), name="D")
    func = te.create_prim_func([a, b, c, d] if keeps else [a, b, d])
    assert "as its transpose" in explained(func, NEON)
    x, y = numbers((83, 70), "float32", 1), numbers((3, 83), "float32", 2)
    out = [np.empty((70, 3), "float32") for _ in range(1 + keeps)]
    lw.build(func, autosched=True)(x, y, *out)
    exact = x.T.astype("float64") @ y.T
    assert np.allclose(out[-1], np.exp(exact), rtol=1e-4)
    assert not keeps or np.allclose(out[0], exact, atol=1e-5)
