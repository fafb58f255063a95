"""Nests of unrolled loops are written out: copies share addresses and values, and nothing that may differ."""

from __future__ import annotations

import re

import numpy as np

import loopwright
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.script import tir as T
from loopwright.target import Target, describe


def body_of(function):
    """The text of the function's body, without its entries."""
    text = emit_module(loopwright.lower(function, target="llvm"), describe(Target("llvm")))
    found = re.search(r"define internal i32 @.*?\n}", text, re.DOTALL)
    assert found is not None
    return found[0]


@T.prim_func
def micro_kernel(A: T.Buffer((64, 4)), B: T.Buffer((64, 32)), C: T.Buffer((4, 32))):
    sums = T.alloc_buffer((4, 32), scope="local")
    for i in T.unroll(4):
        for j in T.unroll(2):
            for v in T.vectorized(16):
                sums[i, j * 16 + v] = T.float32(0)
    for k in range(64):
        for i in T.unroll(4):
            for j in T.unroll(2):
                for v in T.vectorized(16):
                    sums[i, j * 16 + v] = sums[i, j * 16 + v] + A[k, i] * B[k, j * 16 + v]
    for i in T.unroll(4):
        for j in T.unroll(2):
            for v in T.vectorized(16):
                C[i, j * 16 + v] = sums[i, j * 16 + v]


def test_copies_share_what_they_read():
    text = body_of(micro_kernel)
    loop = text[text.index("loop.") :]
    assert len(re.findall(r"= load float,", loop)) == 4  # one for each row of A, not for each copy
    assert text.count("phi i64") == 1  # the loop over k: the others are written out
    assert "mul nsw i64" in text and text.count("mul nsw i64") <= 4  # rows of A and B begin somewhere once


def test_cells_of_a_tile_are_at_offsets_known_in_the_first_block():
    entry, _, rest = body_of(micro_kernel).partition("br label")
    assert entry.count("getelementptr") == 8
    assert "alloca" in entry and "alloca" not in rest


def test_a_tile_computes_the_same():
    rng = np.random.default_rng(0)
    a, b = rng.random((64, 4), "float32"), rng.random((64, 32), "float32")
    c = np.empty((4, 32), "float32")
    loopwright.build(micro_kernel)(a, b, c)
    np.testing.assert_allclose(c, a.T @ b, rtol=1e-5)


@T.prim_func
def guarded(A: T.Buffer(8), B: T.Buffer(8), n: T.int64):
    for i in T.unroll(8):
        if i >= 2:
            if i < n:
                B[i] = A[i % 4] * 2.0
            else:
                B[i] = A[i % 4] * 3.0


def test_guards_on_the_numbers_of_copies_are_decided():
    text = body_of(guarded)
    assert "icmp sge" not in text
    assert text.count("icmp slt") == 6  # those that depend on n
    for n in (0, 3, 5, 8):
        a, b = np.arange(1, 9, dtype="float32"), np.zeros(8, "float32")
        loopwright.build(guarded)(a, b, n)
        where = np.arange(8)
        np.testing.assert_array_equal(b, np.where(where < 2, 0, a[where % 4] * np.where(where < n, 2, 3)))


@T.prim_func
def in_place(A: T.Buffer(9)):
    for i in T.unroll(8):
        A[i + 1] = A[0] + A[i]


def test_what_a_tile_writes_is_read_each_time():
    a = np.ones(9, "float32")
    loopwright.build(in_place)(a)
    np.testing.assert_array_equal(a, np.arange(1, 10))


@T.prim_func
def overlapping(A: T.Buffer(8), B: T.Buffer(8)):
    T.func_attr({"tir.noalias": False})
    for i in T.unroll(8):
        B[i] = A[0] + 1.0


def test_what_others_may_write_is_read_each_time():
    assert body_of(overlapping).count("load float") == 8
    a = np.zeros(8, "float32")
    loopwright.build(overlapping)(a, a)
    np.testing.assert_array_equal(a, [1, 2, 2, 2, 2, 2, 2, 2])


@T.prim_func
def bound(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
    for i in T.unroll(8):
        with T.LetStmt(A[i]) as x:
            B[i] = x * 2.0
            C[i] = x * 2.0 + x


def test_names_are_bound_anew_in_each_copy():
    a = np.arange(8, dtype="float32")
    b, c = np.empty_like(a), np.empty_like(a)
    loopwright.build(bound)(a, b, c)
    np.testing.assert_array_equal(b, 2 * a)
    np.testing.assert_array_equal(c, 3 * a)


@T.prim_func
def chosen(A: T.Buffer(16), B: T.Buffer(8), n: T.int64):
    for i in T.unroll(8):
        B[i] = T.if_then_else(n > i, A[n], T.float32(0)) + T.if_then_else(n > 3, A[n], T.float32(1))


def test_what_one_branch_read_is_not_taken_for_known_in_another():
    a = np.arange(16, dtype="float32")
    for n in (0, 2, 3, 4, 7, 9):
        b = np.empty(8, "float32")
        loopwright.build(chosen)(a, b, n)
        np.testing.assert_array_equal(b, np.where(n > np.arange(8), a[n], 0) + (a[n] if n > 3 else 1))


@T.prim_func
def rows(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    for i in T.unroll(4):
        for j in range(8):
            B[i, j] = A[i, j] + 1.0


def test_an_unrolled_loop_around_others_is_left_to_llvm():
    assert body_of(rows).count("load float") == 1
