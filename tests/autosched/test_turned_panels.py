"""A matrix that lies across its panels: tiles of it are transposed in registers, right at every edge."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.rules.contraction.turned_panels import turned_tile
from loopwright.ir import PrimFunc
from tests.autosched.test_contraction import ONE, TWO, check, matmul, numbers, with_itself

NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=1"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def explained(func: PrimFunc, target: str = NEON) -> str:
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    return plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(11, 4, 60), (14, 5, 61), (7, 19, 36), (12, 16, 64), (9, 7, 13), (13, 23, 97)])
def test_every_edge(size: tuple[int, int, int]) -> None:
    func = matmul(*size, flips="B")
    assert "B transposed in registers" in explained(func, AVX512)
    check(func, flips="B")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32"])
def test_other_types(dtype: str) -> None:
    check(matmul(13, 14, 50, dtype, flips="B"), flips="B")


@pytest.mark.parametrize("target", [ONE, TWO])
def test_both_lie_across_in_batches(target: str) -> None:
    check(matmul(6, 17, 43, flips="AB", batch=3), target, flips="AB")
    check(matmul(40, 13, 300, flips="AB"), target, flips="AB")


def test_slabs() -> None:
    check(matmul(24, 2500, 130, flips="B"), flips="B")


def test_a_matrix_with_itself() -> None:
    func = with_itself(40, 11, False)
    a = numbers((40, 11), "float32", 1)
    c = np.empty((40, 40), "float32")
    lw.build(func, autosched=True)(a, c)
    assert np.allclose(c, a.astype("float64") @ a.T, atol=1e-5)


def test_an_epilogue() -> None:
    x, w = te.placeholder((14, 19), name="X"), te.placeholder((77, 19), name="W")
    bias, k = te.placeholder((77,), name="bias"), te.reduce_axis((0, 19), "k")
    y = te.compute((14, 77), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="Y")
    z = te.compute((14, 77), lambda i, j: te.max(y[i, j] + bias[j], 0.0), name="Z")
    func = te.create_prim_func([x, w, bias, z])
    data = [numbers(shape, "float32", 5) for shape in ((14, 19), (77, 19), (77,))]
    out = np.empty((14, 77), "float32")
    lw.build(func, autosched=True)(*data, out)
    assert np.allclose(out, np.maximum(data[0] @ data[1].T + data[2], 0), atol=1e-5)


def test_tiles_follow_the_length_of_the_reduction() -> None:
    assert turned_tile(3, "float32", 16) == 0
    assert turned_tile(4, "float32", 16) == 4
    assert turned_tile(14, "float32", 16) == 8
    assert turned_tile(19, "float32", 16) == 16
    assert turned_tile(19, "float32", 4) == 4
    assert turned_tile(19, "float16", 2) == 0
