"""Which programs leave LLVM no loop to vectorize or unroll, and that all ways of optimizing give the same results."""

from __future__ import annotations

import platform
from importlib import import_module

import ml_dtypes  # noqa: F401  (numpy learns bfloat16)
import numpy as np
import pytest

import loopwright
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.effort_for import effort_for
from loopwright.codegen.llvm.engine import compile_text
from loopwright.script import tir as T
from loopwright.target import describe

pytestmark = pytest.mark.optimized

is_x86 = platform.machine() == "x86_64"


@T.prim_func
def vectors(A: T.Buffer(64), B: T.Buffer(64)):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[i * 16 + j] + 1.0


@T.prim_func
def tile(A: T.Buffer((8, 16)), B: T.Buffer(16)):
    for k in range(8):
        for j in T.unroll(2):
            for v in T.vectorized(8):
                B[j * 8 + v] = B[j * 8 + v] + A[k, j * 8 + v]


@T.prim_func
def elements(A: T.Buffer(64), B: T.Buffer(64)):
    for i in range(64):
        B[i] = A[i] + 1.0


@T.prim_func
def vectors_and_elements(A: T.Buffer(64), B: T.Buffer(64)):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[i * 16 + j] + 1.0
    for i in range(64):
        B[i] = A[i] * 2.0


@T.prim_func
def functions(A: T.Buffer(64), B: T.Buffer(64)):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = T.exp(A[i * 16 + j])


@T.prim_func
def vectors_and_what_they_leave(A: T.Buffer(64), B: T.Buffer(64), n: T.int64):
    for i in range(n // 16):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[i * 16 + j] + 1.0
    for i in range(n - n // 16 * 16):
        B[n // 16 * 16 + i] = A[n // 16 * 16 + i] + 1.0


@T.prim_func
def vectors_and_few_elements(A: T.Buffer(64), B: T.Buffer(67)):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[i * 16 + j] + 1.0
    for i in range(3):
        B[64 + i] = A[i] * 2.0


@T.prim_func
def no_loop(A: T.Buffer(1), B: T.Buffer(1)):
    B[0] = A[0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (vectors, Effort.SIMPLIFY),
        (tile, Effort.SIMPLIFY),
        (elements, Effort.SEARCH),
        (vectors_and_elements, Effort.SEARCH),
        (vectors_and_what_they_leave, Effort.SIMPLIFY),
        (vectors_and_few_elements, Effort.SIMPLIFY),
        (functions, Effort.REUSE),
        (no_loop, Effort.SEARCH),
    ],
)
def test_what_is_left_to_look_for(function, expected):
    assert effort_for(loopwright.lower(function)) is expected


def test_all_efforts_give_the_same_bits():
    """What bodies of functions have in common is computed once, and changes nothing."""

    @T.prim_func
    def functions_of_a_tile(A: T.Buffer((8, 16)), B: T.Buffer((2, 16))):
        for k in range(8):
            for j in T.unroll(2):
                for v in T.vectorized(16):
                    B[j, v] = B[j, v] + T.exp(A[k, v]) * T.erf(A[k, 15 - v])

    a = np.random.default_rng(2).standard_normal((8, 16), np.float32)
    lowered, results = loopwright.lower(functions_of_a_tile), []
    chosen_in = import_module("loopwright.codegen.llvm.make_module")
    for effort in Effort:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chosen_in, "effort_for", lambda _, effort=effort: effort)
            module = loopwright.build(lowered)
        assert module.compiled.effort is effort
        results.append(np.zeros((2, 16), np.float32))
        module(a, results[-1])
        assert "lw.math" not in module.get_source("ll")
    for result in results[1:]:
        np.testing.assert_array_equal(result.view(np.uint32), results[0].view(np.uint32))


@pytest.mark.parametrize("function", [vectors, tile])
def test_every_effort_writes_out_what_is_to_be(function):
    text = loopwright.build(function).get_source("llvm")
    for effort in Effort:
        compiled = compile_text(text, describe("llvm"), effort=effort)
        assert compiled.effort is effort and "unroll.full" not in compiled.optimized_ll()


def test_a_tile_is_kept_in_registers():
    """What the tile adds up stays out of memory inside the loop, as after the whole pipeline."""
    a, b = np.random.default_rng(0).random((8, 16), np.float32), np.zeros(16, np.float32)
    module = loopwright.build(tile)
    module(a, b)
    expected = np.zeros(16, np.float32)
    for row in a:
        expected += row
    np.testing.assert_array_equal(b, expected)
    assert module.compiled.effort is Effort.SIMPLIFY


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_conversions_are_inlined_and_the_tile_around_them_is_written_out(dtype):
    """LLVM does not unroll a loop that calls what it could inline, and would print a warning about it."""

    @T.prim_func
    def sums(A: T.Buffer((40, 64), dtype), B: T.Buffer(64)):
        for k in range(40):
            for i in T.unroll(4):
                for j in T.vectorized(16):
                    B[i * 16 + j] = B[i * 16 + j] + T.cast(A[k, i * 16 + j], "float32")

    module = loopwright.build(sums, target="llvm -mcpu=x86-64" if is_x86 else "llvm")
    assert module.compiled.effort is Effort.SIMPLIFY
    optimized = module.get_source("ll")
    assert "lw.math" not in optimized and "unroll.full" not in optimized
    a, b = np.random.default_rng(1).random((40, 64)).astype(np.dtype(dtype)), np.zeros(64, np.float32)
    module(a, b)
    expected = np.zeros(64, np.float32)
    for row in a.astype(np.float32):
        expected += row
    np.testing.assert_array_equal(b, expected)


def text_of(function):
    text = loopwright.build(function).get_source("llvm")
    return text[text.index("define internal i32 @lw.body") :].split("\n}")[0]


def test_only_a_tile_of_vectors_is_kept_from_becoming_calls_of_memset_and_memcpy():
    @T.prim_func
    def with_tile(A: T.Buffer((8, 16)), B: T.Buffer(16)):
        S = T.decl_buffer((16,), scope="local")
        for j in T.vectorized(16):
            S[j] = 0.0
        for k in range(8):
            for v in T.vectorized(16):
                S[v] = S[v] + A[k, v]
        for j in T.vectorized(16):
            B[j] = S[j]

    @T.prim_func
    def with_cells(A: T.Buffer((8, 16)), B: T.Buffer(16)):
        S = T.decl_buffer((16,), scope="local")
        for j in range(16):
            S[j] = A[0, j]
        for j in T.vectorized(16):
            B[j] = S[j] + 1.0

    assert "no-builtins" in text_of(with_tile)
    assert "no-builtins" not in text_of(with_cells) and "no-builtins" not in text_of(vectors)


@pytest.mark.parametrize("extent", [0, 1, 2, 7])
def test_a_loop_that_surely_runs_asks_at_its_end(extent):
    @T.prim_func
    def known(A: T.Buffer(8)):
        for i in range(extent):
            A[i] = A[i] + 1.0

    a = np.zeros(8, np.float32)
    loopwright.build(known)(a)
    np.testing.assert_array_equal(a, np.arange(8) < extent)
    if extent > 1:
        assert f"icmp eq i64 %loop.1.next, {extent}" in text_of(known)


def test_a_loop_that_may_not_run_asks_first():
    @T.prim_func
    def unknown(A: T.Buffer(8), n: T.int32):
        for i in range(T.min(n, 8)):
            A[i] = A[i] + 1.0

    module = loopwright.build(unknown)
    for n in (-1, 0, 1, 8):
        a = np.zeros(8, np.float32)
        module(a, n)
        np.testing.assert_array_equal(a, np.arange(8) < n)
