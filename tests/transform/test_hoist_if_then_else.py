"""hoist_if_then_else: a branch that a loop's iterations agree on is taken once."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import hoist_if_then_else
from tests.transform.before_after import check_all, same_at_every_stage, unchanged


def test_out_of_the_loop_it_does_not_depend_on():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), n: T.int32):
        for i in range(8):
            for j in range(8):
                if i < n:
                    B[i, j] = A[i, j]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), n: T.int32):
        for i in range(8):
            if i < n:
                for j in range(8):
                    B[i, j] = A[i, j]

    check_all(hoist_if_then_else, before, after)


def test_out_of_all_loops_and_both_ways():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), n: T.int32):
        for i in T.parallel(8):
            for j in T.vectorized(8):
                if n < 3:
                    B[i, j] = A[i, j]
                else:
                    B[i, j] = A[j, i]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), n: T.int32):
        if n < 3:
            for i in T.parallel(8):
                for j in T.vectorized(8):
                    B[i, j] = A[i, j]
        else:
            for i in T.parallel(8):
                for j in T.vectorized(8):
                    B[i, j] = A[j, i]

    check_all(hoist_if_then_else, before, after)


def test_what_reads_memory_or_may_fail_stays():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if A[0] < 3:
                A[i] = B[i]
        for i in range(8):
            if 8 // n < 3:
                A[i] = B[i]
        for i in range(8):
            if i < 3:
                A[i] = B[i]
        for i in range(8):
            B[i] = A[i]
            if n < 3:
                A[i] = B[i]

    unchanged(hoist_if_then_else, func)


@pytest.mark.parametrize("n", [0, 1, 5, 8, 13])
def test_tiles_with_two_guards(n):
    @T.prim_func
    def func(A: T.Buffer((n, n)), B: T.Buffer((n, n))):
        for i_0, j_0, i_1 in T.grid((n + 3) // 4, (n + 3) // 4, 4):
            for j_1 in T.vectorized(4):
                if i_0 * 4 + i_1 < n and j_0 * 4 + j_1 < n:
                    B[i_0 * 4 + i_1, j_0 * 4 + j_1] = A[j_0 * 4 + j_1, i_0 * 4 + i_1]

    same_at_every_stage(func)


def test_a_number_that_leaves_64_bits_is_asked_for_only_where_the_loop_runs():
    @T.prim_func
    def func(C: T.Buffer((5, 0), "int32")):
        for i, j in T.grid(5, 0):
            if T.Mul(T.int64(8589934592), T.int64(8589934592)) % T.int64(7) <= T.int64(3):
                C[i, j] = 1
            else:
                C[i, j] = 2

    same_at_every_stage(func)
