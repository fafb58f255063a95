"""force_narrow_index_to_int32: sizes, loops and indices become 32 bits wide."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import IndexTooWide, force_narrow_index_to_int32
from tests.transform.before_after import check_all, same_native, same_results, unchanged


def test_blocks_loops_and_shapes():
    @T.prim_func
    def before(A: T.Buffer((T.int64(8), T.int64(4)), "int64"), B: T.Buffer((T.int64(32),), "int64")):
        for i, j in T.grid(T.int64(8), T.int64(4)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(8), i)
                vj = T.axis.spatial(T.int64(4), j)
                B[vi * T.int64(4) + vj] = A[vi, vj] + vi

    @T.prim_func
    def after(A: T.Buffer((8, 4), "int64"), B: T.Buffer((32,), "int64")):
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(4, j)
                B[vi * 4 + vj] = A[vi, vj] + T.Cast("int64", vi)

    check_all(force_narrow_index_to_int32, before, after)


def test_symbolic_sizes_and_scalars():
    @T.prim_func
    def before(a: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int64")
        for i in range(n):
            with T.LetStmt(n - T.int64(1) - i) as j:
                if j < n:
                    A[j] = A[j] + k

    got = force_narrow_index_to_int32(before)
    text = got.script()
    assert "n = T.int32()" in text and "k: T.int64" in text and "range(n)" in text
    same_results(before, got)
    same_native(before, got)


def test_nothing_to_do():
    @T.prim_func
    def func(A: T.Buffer((8,), "int64")):
        for i in range(8):
            A[i] = A[i] + T.int64(3)

    unchanged(force_narrow_index_to_int32, func)


def test_a_number_that_does_not_fit():
    @T.prim_func
    def func(A: T.Buffer((T.int64(3000000000),), "int8")):
        A[T.int64(0)] = T.int8(1)

    with pytest.raises(IndexTooWide, match="3000000000 needs more than 32 bits"):
        force_narrow_index_to_int32(func)
