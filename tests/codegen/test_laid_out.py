"""Which programs leave LLVM no loop to vectorize or unroll, and that both ways of optimizing give the same results."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.codegen.llvm.laid_out import is_laid_out
from loopwright.script import tir as T


def laid_out(function):
    return is_laid_out(loopwright.lower(function))


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
        B[i] = B[i] * 2.0


@T.prim_func
def functions(A: T.Buffer(64), B: T.Buffer(64)):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = T.exp(A[i * 16 + j])


@T.prim_func
def no_loop(A: T.Buffer(1), B: T.Buffer(1)):
    B[0] = A[0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (vectors, True),
        (tile, True),
        (elements, False),
        (vectors_and_elements, False),
        (functions, False),
        (no_loop, False),
    ],
)
def test_what_is_laid_out(function, expected):
    assert laid_out(function) is expected


def test_a_tile_is_kept_in_registers():
    """What the tile adds up stays out of memory inside the loop, as after the whole pipeline."""
    a, b = np.random.default_rng(0).random((8, 16), np.float32), np.zeros(16, np.float32)
    module = loopwright.build(tile)
    module(a, b)
    expected = np.zeros(16, np.float32)
    for row in a:
        expected += row
    np.testing.assert_array_equal(b, expected)
    assert module.compiled.laid_out
