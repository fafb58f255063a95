"""narrow_data_type: index arithmetic in no more bits than its values need."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import BadIndexWidth, narrow_data_type
from tests.transform.before_after import check_all, unchanged


def test_loops_and_indices():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((40,))):
        for i in range(T.int64(8)):
            if i * T.int64(2) < T.int64(9):
                B[i * T.int64(4) + T.int64(1)] = A[i // T.int64(2)]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((40,))):
        for i in range(8):
            if i * 2 < 9:
                B[i * 4 + 1] = A[i // 2]

    check_all(narrow_data_type(32), before, after)


def test_what_does_not_fit_stays():
    @T.prim_func
    def before(A: T.Buffer((8,), "int64"), n: T.int64):
        for i in range(T.int64(8)):
            A[i] = i * T.int64(1000000000)
            if i * T.int64(1000000000) < T.int64(5000000000):
                A[i] = A[i] + n

    @T.prim_func
    def after(A: T.Buffer((8,), "int64"), n: T.int64):
        for i in range(8):
            A[i] = T.Cast("int64", i) * T.int64(1000000000)
            if T.Cast("int64", i) * T.int64(1000000000) < T.int64(5000000000):
                A[i] = A[i] + n

    check_all(narrow_data_type(32), before, after)


def test_lets_casts_and_vectors():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in range(8):
            with T.LetStmt(T.Cast("int64", i) * T.int64(8)) as base:
                B[T.Ramp(base, T.int64(1), 8)] = A[T.Ramp(base, T.int64(1), 8)]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in range(8):
            with T.LetStmt(i * 8) as base:
                B[T.Ramp(base, 1, 8)] = A[T.Ramp(base, 1, 8)]

    check_all(narrow_data_type(32), before, after)


def test_a_bound_that_is_only_known_later():
    @T.prim_func
    def func(A: T.Buffer((8,)), n: T.int64):
        for i in range(n):
            A[i] = T.float32(1)

    unchanged(narrow_data_type(32), func)


def test_a_width_that_is_none():
    with pytest.raises(BadIndexWidth, match="31 is no width of an integer"):
        narrow_data_type(31)
