"""specialize_full_vectors: guarded loops over lanes run as vectors where all lanes pass."""

from __future__ import annotations

import pytest

from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import specialize_full_vectors, vectorize_loops
from tests.transform.before_after import check, same_results, unchanged


def test_vectors_where_all_lanes_pass_and_lanes_elsewhere():
    @T.prim_func
    def before(A: T.Buffer((11,)), B: T.Buffer((11,))):
        for i in range(3):
            for v in T.vectorized(4):
                if i * 4 + v < 11:
                    B[i * 4 + v] = A[i * 4 + v]

    @T.prim_func
    def after(A: T.Buffer((11,)), B: T.Buffer((11,))):
        for i in range(3):
            if i * 4 + 3 < 11:
                for v in T.vectorized(4):
                    B[i * 4 + v] = A[i * 4 + v]
            else:
                for v in T.vectorized(4):
                    if i * 4 + v < 11:
                        B[i * 4 + v] = A[i * 4 + v]

    check(specialize_full_vectors, before, after, again=False)


def test_a_guard_at_a_multiple_is_one_for_all_lanes():
    @T.prim_func
    def before(A: T.Buffer((24,)), B: T.Buffer((24,))):
        for i in range(8):
            for v in T.vectorized(4):
                if i * 4 + v < 24 and i < 7:
                    B[i * 4 + v] = A[i * 4 + v]

    @T.prim_func
    def after(A: T.Buffer((24,)), B: T.Buffer((24,))):
        for i in range(8):
            if i < 7:
                if i * 4 < 24:
                    for v in T.vectorized(4):
                        B[i * 4 + v] = A[i * 4 + v]

    check(specialize_full_vectors, before, after)


GUARDS = [
    "i * 4 + v < 10",
    "i * 4 + v <= 10",
    "10 > i * 4 + v",
    "10 >= i * 4 + v",
    "i * 4 + v >= 2",
    "3 < i * 4 + v",
    "i * 4 + v <= 7",
    "i * 4 + v < 8",
    "7 - v > i",
    "i * 4 - v * 2 >= 3",
    "v * 3 + i < 9 and 1 <= v + i",
    "T.likely(i * 4 + v < 9) and i < 2",
    "v * v < i",
    "v // 2 < i",
    "i * 4 + v != 5",
    "i * 4 + v < C[i]",
    "i + v < 3 or v == 2",
]


@pytest.mark.parametrize("guard", GUARDS)
def test_every_guard_keeps_its_meaning(guard):
    func = from_source(f"""
@T.prim_func
def func(A: T.Buffer((64,)), B: T.Buffer((64,)), C: T.Buffer((64,), "int32")):
    for i in range(4):
        for v in T.vectorized(4):
            if {guard}:
                B[i * 4 + v] = A[i * 4 + v] + B[i * 4 + v]
""")
    got = specialize_full_vectors(func)
    same_results(func, got)
    same_results(func, vectorize_loops(got))


@pytest.mark.parametrize("guard", ["i * 4 + v < C[i]", "v * v < i", "v // 2 < i", "i + v < 3 or v == 2"])
def test_guards_that_are_no_bounds_of_the_lane_stay(guard):
    func = from_source(f"""
@T.prim_func
def func(A: T.Buffer((64,)), C: T.Buffer((64,), "int32")):
    for i in range(4):
        for v in T.vectorized(4):
            if {guard}:
                A[i * 4 + v] = T.float32(1)
""")
    unchanged(specialize_full_vectors, func)
