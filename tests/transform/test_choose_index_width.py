"""choose_index_width: indices in 64 bits, data in its own type."""

from __future__ import annotations

import numpy as np

from loopwright.evaluator import evaluate
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import choose_index_width, lower
from tests.transform.before_after import check, same_at_every_stage, unchanged
from tests.transform.test_pipeline import keeps_the_contract


def test_loops_and_indices_widen_and_values_keep_their_type():
    @T.prim_func
    def before(A: T.Buffer((32,), "int32")):
        for i, j in T.grid(4, 8):
            if i + j < 9:
                A[i * 8 + j] = i * 3

    @T.prim_func
    def after(A: T.Buffer((32,), "int32")):
        for i, j in T.grid(T.int64(4), T.int64(8)):
            if i + j < T.int64(9):
                A[i * T.int64(8) + j] = T.Cast("int32", i) * 3

    check(choose_index_width, before, after)


def test_symbolic_extents():
    @T.prim_func
    def before(a: T.handle, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            A[i] = T.Cast("float32", m)

    @T.prim_func
    def after(a: T.handle, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(T.Cast("int64", n)):
            A[i] = T.Cast("float32", m)

    check(choose_index_width, before, after)


def test_loaded_indices_are_converted():
    @T.prim_func
    def before(I: T.Buffer((8,), "int32"), A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[I[i]] + A[I[i] + 1]

    @T.prim_func
    def after(I: T.Buffer((8,), "int32"), A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(T.int64(8)):
            B[i] = A[T.Cast("int64", I[i])] + A[T.Cast("int64", I[i] + 1)]

    check(choose_index_width, before, after)


def test_index_arithmetic_that_wraps_around_keeps_its_width():
    @T.prim_func
    def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = A[(i * 1103515245 + 12345) % 13]

    with_wide = choose_index_width(before)
    a = np.arange(16, dtype="int32")
    one, other = np.zeros(16, "int32"), np.zeros(16, "int32")
    evaluate(before, a, one)
    evaluate(with_wide, a, other)
    np.testing.assert_array_equal(one, other)


def test_vectors_and_lets():
    @T.prim_func
    def before(A: T.Buffer((32,)), I: T.Buffer((8,), "int32")):
        for i in range(4):
            with T.LetStmt(i * 8) as x:
                with T.LetStmt(I[i]) as y:
                    A[T.Ramp(x, 1, 8)] = T.Broadcast(T.Cast("float32", x + y), 8)

    @T.prim_func
    def after(A: T.Buffer((32,)), I: T.Buffer((8,), "int32")):
        for i in range(T.int64(4)):
            with T.LetStmt(i * T.int64(8)) as x:
                with T.LetStmt(I[i]) as y:
                    A[T.Ramp(x, T.int64(1), 8)] = T.Broadcast(T.Cast("float32", T.Cast("int32", x) + y), 8)

    check(choose_index_width, before, after)


def test_wide_indices_stay():
    @T.prim_func
    def func(A: T.Buffer((32,))):
        for i in range(T.int64(32)):
            A[i] = T.float32(1)

    unchanged(choose_index_width, func)


def test_pointers_of_32_bits_need_no_wider_index():
    @T.prim_func
    def func(A: T.Buffer((32,))):
        for i in range(32):
            A[i] = T.float32(1)

    unchanged(choose_index_width, func, Target("llvm -mtriple=armv7a-linux-gnueabihf"))


def test_every_index_is_wide_after_lowering():
    @T.prim_func
    def func(A: T.Buffer((6, 7)), B: T.Buffer((6, 7))):
        for i in range(6):
            for j in T.vectorized(7):
                B[i, j] = A[5 - i, j]

    keeps_the_contract(lower(func, "llvm")["func"])


def test_a_view_whose_size_depends_on_the_loop():
    @T.prim_func
    def func(A: T.Buffer((32,)), C: T.Buffer((8,))):
        for i in range(8):
            part = T.decl_buffer((4,), data=A.data, elem_offset=i * 4)
            C[i] = part[2]

    same_at_every_stage(func)


def test_a_named_vector_keeps_its_lanes():
    @T.prim_func
    def func(A: T.Buffer((32,)), N: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(2):
            for j in T.vectorized(4):
                n: T.int32 = N[i * 4 + j] * N[i * 4 + j]
                B[i * 4 + j] = A[T.max(T.min(n + i, 31), 0)]

    same_at_every_stage(func)
