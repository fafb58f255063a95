"""unify_lanes: comparisons that all lanes of a vector agree on."""

from __future__ import annotations

import pytest

from loopwright.arith import Analyzer
from loopwright.ir import Var, substitute
from loopwright.script import tir as T
from loopwright.transform import unify_lanes
from loopwright.transform.parts.lanes_agree import lanes_agree
from tests.transform.before_after import check, unchanged


def test_parts_that_are_whole_vectors_long():
    @T.prim_func
    def before(A: T.Buffer(64), C: T.Buffer(32), B: T.Buffer(96)):
        for i in range(24):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.if_then_else(i * 4 + j < 64, A[i * 4 + j], C[i * 4 + j - 64])

    @T.prim_func
    def after(A: T.Buffer(64), C: T.Buffer(32), B: T.Buffer(96)):
        for i in range(24):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.if_then_else(i * 4 < 64, A[i * 4 + j], C[i * 4 + j - 64])

    check(unify_lanes, before, after)


def test_parts_that_are_not():
    @T.prim_func
    def func(A: T.Buffer(62), C: T.Buffer(34), B: T.Buffer(96)):
        for i in range(24):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.if_then_else(i * 4 + j < 62, A[i * 4 + j], C[i * 4 + j - 62])
        for i in range(96):
            B[i] = T.if_then_else(i < 48, B[i], T.float32(0))

    unchanged(unify_lanes, func)


@pytest.mark.parametrize("count", [2, 4])
def test_lanes_agree_where_they_do(count):
    lane, other = Var("lane", "int32"), Var("other", "int32")
    agreed = 0
    for limit in range(-5, 6):
        for index in (other * count + lane, other * (2 * count) - lane, (other % 3) * count + lane + limit):
            for compared in (index < limit, index <= limit, index > limit, index >= limit):
                if not lanes_agree(compared, lane, count, Analyzer()):
                    continue
                agreed += 1
                for value in range(-4, 5):
                    outcomes = {
                        Analyzer().simplify(substitute(compared, {lane: T.int32(at), other: T.int32(value)})).value
                        for at in range(count)
                    }
                    assert len(outcomes) == 1, (compared, value)
    assert agreed >= 20


def test_a_vector_of_no_lanes_agrees_on_nothing():
    i, j = Var("i", "int32"), Var("j", "int32")
    assert not lanes_agree(i * 4 + j < 8, j, 0, Analyzer())
