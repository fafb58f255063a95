"""Folding: a batch of rows times one matrix is one product of all its rows."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.ir import PrimFunc
from tests.autosched.test_contraction import ONE, TWO, numbers


def layer(lead: tuple[int, ...], k: int, n: int, flipped: bool, relu: bool, dtype: str = "float32") -> PrimFunc:
    """Y = X · W, or X · Wᵀ, of rows with several axes."""
    x = te.placeholder((*lead, k), dtype, name="X")
    w = te.placeholder((n, k) if flipped else (k, n), dtype, name="W")
    r = te.reduce_axis((0, k), "k")
    y = te.compute(
        (*lead, n), lambda *at: te.sum(x[(*at[:-1], r)] * (w[at[-1], r] if flipped else w[r, at[-1]]), axis=r), name="Y"
    )
    z = te.compute((*lead, n), lambda *at: te.max(y(*at), 0.0), name="Z") if relu else y
    return te.create_prim_func([x, w, z])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(
    ("lead", "k", "n", "relu", "target"),
    [
        ((3, 5), 33, 20, False, ONE),
        ((2, 7), 17, 9, True, ONE),
        ((7, 1), 40, 13, False, ONE),
        ((4, 50), 64, 70, True, TWO),
    ],
)
def test_rows_of_several_axes(lead: tuple[int, ...], k: int, n: int, relu: bool, target: str, flipped: bool) -> None:
    func = layer(lead, k, n, flipped, relu)
    plan = autosched.apply(func, target)
    assert [decision.rule for decision in plan.decisions] == ["packed GEMM"] and plan.schedule.is_proved
    assert "are one axis" in plan.explain()
    x, w = numbers((*lead, k), "float32", 1), numbers((n, k) if flipped else (k, n), "float32", 2)
    y = np.full((*lead, n), 7, "float32")
    lw.build(plan.mod, target=target)(x, w, y)
    exact = x.astype("float64") @ (w.T if flipped else w)
    bound = (k + 1) * np.finfo("float32").eps * (np.abs(x).astype("float64") @ np.abs(w.T if flipped else w))
    assert np.all(np.abs(y - (np.maximum(exact, 0) if relu else exact)) <= bound)


def test_rows_with_a_seam_stay_apart() -> None:
    """Each batch has a matrix of its own, or rows that do not follow those of the one before."""
    r = te.reduce_axis((0, 24), "k")
    x, w = te.placeholder((3, 5, 24), name="X"), te.placeholder((3, 24, 16), name="W")
    own = te.compute((3, 5, 16), lambda b, i, j: te.sum(x[b, i, r] * w[b, r, j], axis=r), name="Y")
    v, m = te.placeholder((5, 3, 24), name="V"), te.placeholder((24, 16), name="M")
    turned = te.compute((3, 5, 16), lambda b, i, j: te.sum(v[i, b, r] * m[r, j], axis=r), name="Y")
    for func in (te.create_prim_func([x, w, own]), te.create_prim_func([v, m, turned])):
        assert "are one axis" not in autosched.apply(func, ONE).explain()


def test_rows_times_one_column_are_not_folded():
    """A product with a single column is a sum of each row."""
    a, b = te.placeholder((3, 4, 5, 18), name="A"), te.placeholder((18, 1), name="B")
    c = topi.einsum("bijc,cd->bijd", a, b)
    plan = autosched.apply(te.create_prim_func([a, b, c]), "llvm")
    assert plan.schedule.is_proved
    x, y = (np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in ((3, 4, 5, 18), (18, 1)))
    out = np.empty((3, 4, 5, 1), "float32")
    lw.build(plan.mod, target="llvm")(x, y, out)
    np.testing.assert_allclose(out, x.astype("float64") @ y, rtol=0, atol=1e-5)
