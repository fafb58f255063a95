"""Tiles that only searches try: the rule picks what it picked, and every one of them is a proved schedule."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.choices import Choices
from loopwright.ir import PrimFunc, structural_equal

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")])


@pytest.mark.parametrize("size", [(64, 96, 128), (49, 80, 300), (8, 512, 512)])
def test_the_rule_picks_the_same_with_more_to_pick_from(size):
    own = autosched.apply(matmul(*size), TARGET)
    with Choices() as choices:
        again = autosched.apply(matmul(*size), TARGET)
    (point,) = choices.points
    assert point.picked == point.usual
    assert len(point.candidates) > 100
    assert {fields["panels_first"] for fields in point.candidates} == {False, True}
    assert len({fields["unroll"] for fields in point.candidates}) > 2
    assert structural_equal(own.mod, again.mod)


def test_no_candidate_comes_twice():
    with Choices() as choices:
        autosched.apply(matmul(64, 96, 128), TARGET)
    (point,) = choices.points
    assert len({str(fields) for fields in point.candidates}) == len(point.candidates)


@pytest.mark.parametrize("seed", range(4))
def test_they_compute_the_same(seed):
    func, target = matmul(37, 80, 600), "llvm -num-cores=1"
    random = np.random.default_rng(seed)
    with Choices() as choices:
        autosched.apply(func, target)
    (point,) = choices.points
    a, b = random.random((37, 600), np.float32), random.random((600, 80), np.float32)
    for number in random.integers(len(point.candidates), size=3):
        with Choices({point.key: point.candidates[number]}):
            plan = autosched.apply(func, target)
        assert plan.schedule.is_proved
        assert [decision.rule for decision in plan.decisions] == ["packed GEMM"]
        result = np.empty((37, 80), np.float32)
        lw.build(plan.mod, target=target)(a, b, result)
        np.testing.assert_allclose(result, a @ b, rtol=1e-4)
