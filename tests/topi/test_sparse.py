"""Sparse matrices and Fourier transforms: sizes that are variables, placeholders of matrices, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.testing.sparse import csr, to_dense


def test_matrices_of_any_size():
    m, k, n = te.size_var("m"), te.size_var("k"), te.size_var("n")
    matrix = topi.sparse.placeholder((m, k), name="A")
    x, y = te.placeholder((k, n), name="x"), te.placeholder((n, k), name="y")
    outputs = [topi.sparse.csrmm(matrix, x), topi.sparse.dense(matrix, y)]
    data, indices, indptr = csr(4, 6)
    a, b = np.arange(18, dtype="float32").reshape(6, 3), np.arange(18, dtype="float32").reshape(3, 6)
    data = np.round(data * 8)  # whole numbers: every order of adding gives the same
    results = [np.zeros((4, 3), "float32") for _ in outputs]
    parts = [matrix.data, matrix.indices, matrix.indptr]
    lw.build([*parts, x, y, *outputs], target="llvm")(data, indices, indptr, a, b, *results)
    dense = to_dense(data, indices, indptr, 6)
    assert np.array_equal(results[0], dense @ a)
    assert np.array_equal(results[1], dense @ b.T)
    assert matrix.stype == "csr"


def test_signals_of_any_length():
    b, n = te.size_var("b"), te.size_var("n")
    re, im = te.placeholder((b, n), name="re"), te.placeholder((b, n), name="im")
    outputs = topi.dft(re, im)
    x, y = (np.random.default_rng(k).integers(-4, 5, (2, 4)).astype("float32") for k in range(2))
    results = [np.zeros((2, 4), "float32") for _ in outputs]
    lw.build([re, im, *outputs], target="llvm", autosched=True)(x, y, *results)
    exact = np.fft.fft(x + 1j * y)
    bound = 8 * 4 * (8 + 10) * np.finfo("float32").eps
    assert np.abs(results[0] - exact.real).max() <= bound and np.abs(results[1] - exact.imag).max() <= bound


MATRIX = te.placeholder((3, 4), name="x")
LINE, INTS = te.placeholder((5,), name="line"), te.placeholder((5,), "int32", name="ints")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: topi.nn.sparse_dense(MATRIX, MATRIX, INTS, INTS), InvalidShapeError, "neither 1 nor 3 dimensions"),
        (lambda: topi.nn.sparse_dense(LINE, LINE, INTS, INTS), InvalidShapeError, "dense data line has shape"),
        (
            lambda: topi.nn.sparse_add(MATRIX, LINE, INTS, INTS),
            InvalidShapeError,
            "rows: 3 in the dense matrix, 4 in the sparse one",
        ),
        (lambda: topi.nn.sparse_conv2d(MATRIX, LINE, INTS, INTS, "HWNC"), UnsupportedLayout, "HWNC"),
        (lambda: topi.sparse.dense(MATRIX, MATRIX), InvalidShapeError, "one of data and weight is sparse"),
        (lambda: topi.sparse.csrmm(5, MATRIX), InvalidShapeError, "5 is no sparse matrix"),
        (lambda: topi.sparse.placeholder((5,)), InvalidShapeError, "give two sizes"),
        (lambda: topi.dft(INTS, INTS), UnsuitableType, "give a tensor of floating-point numbers"),
        (lambda: topi.dft(LINE, MATRIX), InvalidShapeError, "differ in shape or type"),
        (
            lambda: topi.stft(MATRIX, 4, 1, 5, LINE, False, True, (3, 3, 1, 2)),
            InvalidShapeError,
            "win_length 5 is more than n_fft 4",
        ),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
