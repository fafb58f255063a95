"""Extremes over the lanes that a condition chooses: the others keep what they have."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.ir import const
from loopwright.script import tir as T

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


def program(dtype, least, neutral):
    extremum, unchosen = T.min if least else T.max, const(neutral, dtype)

    @T.prim_func
    def chosen(A: T.Buffer((40, 64), dtype), C: T.Buffer((40, 64), "int32"), B: T.Buffer(64, dtype)):
        for i in range(40):
            for j in T.vectorized(64):
                B[j] = extremum(B[j], T.Select(C[i, j] > 0, A[i, j], unchosen))

    return chosen


@pytest.mark.parametrize("least", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_neutral", [True, False])
def test_lanes_that_are_not_chosen_stay(dtype, least, is_neutral):
    limits, random = np.iinfo(dtype), np.random.default_rng(7)
    neutral = (int(limits.max) if least else int(limits.min)) if is_neutral else 5
    a = random.integers(limits.min, limits.max, (40, 64), dtype, endpoint=True)
    a[0, :4] = limits.max, limits.min, neutral, 0
    c = random.integers(-1, 2, (40, 64)).astype("int32")
    b = np.full(64, limits.max if least else limits.min, dtype)
    expected = np.where(c > 0, a, np.array(neutral, dtype))
    expected = expected.min(axis=0) if least else expected.max(axis=0)
    loopwright.build(program(dtype, least, neutral))(a, c, b)
    np.testing.assert_array_equal(b, expected)


def test_the_choice_comes_last():
    text = loopwright.build(program("int32", True, (1 << 31) - 1)).get_source("llvm")
    body = text[text.index("define internal i32 @lw.body") :]
    assert body.index("@llvm.smin.v") < body.index("select <")
