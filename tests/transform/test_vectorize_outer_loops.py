"""vectorize_outer_loops: where an innermost loop makes no good vectors, a loop around it with unit stride does."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.build import build
from loopwright.ir import For, ForKind, PrimFunc, pre_order_visit
from loopwright.script import tir as T
from loopwright.transform import vectorize_outer_loops
from loopwright.transform.pipeline import lower
from tests.transform.before_after import PLAIN, check, same_at_every_stage, same_native, unchanged

# PLAIN computes 4 lanes of float32 at a time; 4 registers side by side make 16.


def test_a_sum_over_rows_is_vectors_over_columns():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((8, 16)), C: T.Buffer((4, 16))):
        for i in range(4):
            for j in range(16):
                C[i, j] = 0.0
                for k in range(8):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((8, 16)), C: T.Buffer((4, 16))):
        for i in range(4):
            for j in T.vectorized(16):
                C[i, j] = 0.0
                for k in range(8):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    check(vectorize_outer_loops, before, after)
    same_native(before, after)


def test_what_is_left_becomes_shorter_vectors_and_single_iterations():
    @T.prim_func
    def before(A: T.Buffer((8, 47)), B: T.Buffer((47,))):
        for j in range(47):
            B[j] = 0.0
            for k in range(8):
                B[j] = B[j] + A[k, j]

    @T.prim_func
    def after(A: T.Buffer((8, 47)), B: T.Buffer((47,))):
        for j_chunk in range(2):
            for j in T.vectorized(16):
                B[j_chunk * 16 + j] = 0.0
                for k in range(8):
                    B[j_chunk * 16 + j] = B[j_chunk * 16 + j] + A[k, j_chunk * 16 + j]
        for j in T.vectorized(8):
            B[32 + j] = 0.0
            for k in range(8):
                B[32 + j] = B[32 + j] + A[k, 32 + j]
        for j in T.vectorized(4):
            B[40 + j] = 0.0
            for k in range(8):
                B[40 + j] = B[40 + j] + A[k, 40 + j]
        for j in range(3):
            B[44 + j] = 0.0
            for k in range(8):
                B[44 + j] = B[44 + j] + A[k, 44 + j]

    check(vectorize_outer_loops, before, after)
    same_native(before, after)


def test_columns_walked_innermost():
    @T.prim_func
    def before(A: T.Buffer((9, 8)), B: T.Buffer((8, 16)), C: T.Buffer((9, 16))):
        for j in range(16):
            for k in range(8):
                for i in range(9):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    @T.prim_func
    def after(A: T.Buffer((9, 8)), B: T.Buffer((8, 16)), C: T.Buffer((9, 16))):
        for j in T.vectorized(16):
            for k in range(8):
                for i in range(9):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    check(vectorize_outer_loops, before, after)
    same_native(before, after)


def test_taps_of_a_window_are_too_few_for_vectors():
    @T.prim_func
    def before(A: T.Buffer((18,)), W: T.Buffer((3,)), B: T.Buffer((16,))):
        for x in range(16):
            B[x] = 0.0
            for t in T.unroll(3):
                B[x] = B[x] + A[x + t] * W[t]

    @T.prim_func
    def after(A: T.Buffer((18,)), W: T.Buffer((3,)), B: T.Buffer((16,))):
        for x in T.vectorized(16):
            B[x] = 0.0
            for t in T.unroll(3):
                B[x] = B[x] + A[x + t] * W[t]

    check(vectorize_outer_loops, before, after)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 15, 16, 17, 31, 40, 97])
def test_a_size_that_is_not_known(n):
    size = te.size_var("n")
    A = te.placeholder((5, size), name="A")
    k = te.reduce_axis((0, 5), "k")
    B = te.compute((size,), lambda j: te.sum(A[k, j], axis=k), name="B")
    func = te.create_prim_func([A, B])
    lowered = lower(func, PLAIN, stop_after="vectorize_outer_loops")["main"]
    assert _vector_loops(lowered) == [16, 4]
    same_at_every_stage(func)
    a = np.random.default_rng(0).standard_normal((5, n)).astype("float32")
    b = np.full(n, np.nan, "float32")
    build(func)(a, b)
    expected = np.zeros(n, "float32")
    for row in a:
        expected = expected + row
    np.testing.assert_array_equal(b, expected)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int32", "int8", "uint8"])
@pytest.mark.parametrize("columns", [1, 7, 64, 129])
def test_every_type_gives_what_the_loops_give(dtype, columns):
    A = te.placeholder((6, columns), name="A", dtype=dtype)
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((columns,), lambda j: te.sum(A[k, j], axis=k), name="B")
    func = te.create_prim_func([A, B])
    same_at_every_stage(func)


def test_a_short_innermost_loop_stays_in_registers():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((8, 12)), C: T.Buffer((4, 12))):
        for i, k, j in T.grid(4, 8, 12):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((8, 12)), C: T.Buffer((4, 12))):
        for i, k in T.grid(4, 8):
            for j in T.vectorized(8):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]
            for j in T.vectorized(4):
                C[i, 8 + j] = C[i, 8 + j] + A[i, k] * B[k, 8 + j]

    check(vectorize_outer_loops, before, after)
    same_native(before, after)


def test_a_long_unit_stride_innermost_is_left_to_the_code_generator():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((8, 100)), C: T.Buffer((4, 100))):
        for i in range(4):
            for k in range(8):
                for j in range(100):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    unchanged(vectorize_outer_loops, func)


def test_what_a_schedule_said_stays():
    @T.prim_func
    def func(A: T.Buffer((8, 32)), B: T.Buffer((32,)), C: T.Buffer((32,))):
        for j in T.parallel(32):
            for k in range(8):
                B[j] = B[j] + A[k, j]
        for j in range(32):
            for k in range(2):
                for l in T.vectorized(4):
                    C[j] = C[j] + A[k * 4 + l, j]

    unchanged(vectorize_outer_loops, func)


def test_no_vectors_where_iterations_share_a_cell():
    @T.prim_func
    def scan(A: T.Buffer((8, 32)), B: T.Buffer((33,))):
        for j in range(32):
            for k in range(8):
                B[j + 1] = B[j] + A[k, j]

    @T.prim_func
    def window(A: T.Buffer((40,)), B: T.Buffer((40,))):
        for x in range(32):
            for t in range(3):
                B[x + t] = B[x + t] + A[x]

    @T.prim_func
    def two_shapes(a: T.handle, A: T.Buffer((8, 32))):
        B = T.match_buffer(a, (32,))
        C = T.decl_buffer((4, 8), data=B.data)
        for j in range(32):
            for k in range(8):
                B[j] = C[0, 0] + A[k, j]

    for func in (scan, window, two_shapes):
        unchanged(vectorize_outer_loops, func)


def test_no_vectors_where_lanes_would_gather_or_need_conditions():
    @T.prim_func
    def rows(A: T.Buffer((32, 32)), B: T.Buffer((32,))):
        for i in range(32):
            for k in range(32):
                B[i] = B[i] + A[i, k]

    @T.prim_func
    def triangle(A: T.Buffer((32, 32)), B: T.Buffer((32,))):
        for i in range(32):
            for k in range(i):
                B[i] = B[i] + A[k, i]

    @T.prim_func
    def guarded(A: T.Buffer((8, 32)), B: T.Buffer((32,))):
        for j in range(32):
            for k in range(8):
                if A[k, j] > 0.0:
                    B[j] = B[j] + A[k, j]

    @T.prim_func
    def divided(A: T.Buffer((8, 32), "int32"), B: T.Buffer((32,), "int32")):
        for j in range(32):
            for k in range(3):
                B[j] = B[j] + T.floordiv(A[k, j], A[7, j])

    @T.prim_func
    def indirect(A: T.Buffer((8, 32)), I: T.Buffer((32,), "int32"), B: T.Buffer((32,))):
        for j in range(32):
            for k in range(8):
                B[j] = B[j] + A[k, I[j]]

    for func in (rows, triangle, guarded, divided, indirect):
        unchanged(vectorize_outer_loops, func)


def test_arguments_that_may_overlap_keep_their_loops():
    @T.prim_func
    def func(A: T.Buffer((8, 32)), B: T.Buffer((32,))):
        T.func_attr({"tir.noalias": False})
        for j in range(32):
            for k in range(8):
                B[j] = B[j] + A[k, j]

    unchanged(vectorize_outer_loops, func)


def _vector_loops(func: PrimFunc) -> list[int]:
    found: list[int] = []

    def look(node: object) -> None:
        if isinstance(node, For) and node.kind is ForKind.VECTORIZED:
            found.append(node.extent.value)

    pre_order_visit(func.body, look)
    return found


@pytest.mark.parametrize("n", [-9, -3, -1, 0, 1, 3])
def test_a_negative_extent_is_no_iterations(n):
    """No remainder of it either: `-3 % 16` is 13."""

    @T.prim_func
    def func(C: T.Buffer((6, 8), "int32"), n: T.int32):
        for j in range(n * 2):
            for k in range(6):
                C[k, j] = 7

    around = np.zeros((18, 8), "int32")
    build(func)(around[6:12], n)
    wanted = np.zeros((18, 8), "int32")
    wanted[6:12, : max(n * 2, 0)] = 7
    np.testing.assert_array_equal(around, wanted)
