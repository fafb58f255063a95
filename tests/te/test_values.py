"""What functions made by create_prim_func compute, against numpy; their text reads back as the same program."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import ir, te
from loopwright.evaluator import evaluate
from loopwright.ir.structural import assert_structural_equal
from loopwright.script import from_source


def _run(arguments, *arrays, index_dtype_override=None):
    """Make the function, check its text, run it; the arrays beyond those given are outputs and come back."""
    func = te.create_prim_func(arguments, index_dtype_override)
    assert_structural_equal(from_source(func.script()), func)
    sizes = {}
    for tensor, array in zip(arguments, arrays, strict=False):
        if isinstance(tensor, te.Tensor):
            sizes |= dict(zip(tensor.shape, array.shape, strict=True))
    outputs = []
    for tensor in arguments[len(arrays) :]:
        shape = [size.value if isinstance(size, ir.IntImm) else sizes[size] for size in tensor.shape]
        outputs.append(np.full(shape, 77, tensor.dtype.numpy()))
    evaluate(func, *arrays, *outputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _data(*shape, dtype="float32"):
    return np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("override", [None, "int64"])
@pytest.mark.parametrize(("n", "m", "l"), [(1, 1, 1), (2, 3, 5), (4, 4, 0), (0, 3, 2)])
def test_matmul(n, m, l, override):
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    a, b = _data(n, l), _data(l, m)
    np.testing.assert_array_equal(_run([A, B, C], a, b, index_dtype_override=override), a @ b)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_symbolic_sizes(dtype):
    n = te.size_var("n", dtype)
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    a = _data(5, 5)
    np.testing.assert_array_equal(_run([A, B], a), a.sum(1))


def test_one_axis_in_several_computes():
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: te.max(A[i, k] - B[i], axis=k), name="C")
    D = te.compute((4,), lambda i: te.min(A[i, k] * C[i], axis=k), name="D")
    a = _data(4, 6)
    c = (a - a.sum(1, keepdims=True)).max(1)
    np.testing.assert_array_equal(_run([A, D], a), (a * c[:, None]).min(1))


def test_softmax_like_chain_with_rank_0():
    A = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), name="k")
    top = te.compute((), lambda: te.max(A[k], axis=k), name="top")
    B = te.compute((6,), lambda i: A[i] - top, name="B")
    a = _data(6)
    np.testing.assert_array_equal(_run([A, B], a), a - a.max())


def test_two_reduce_axes_and_a_shifted_domain():
    A = te.placeholder((5, 6), name="A")
    r, s = te.reduce_axis((1, 4), name="r"), te.reduce_axis((2, 6), name="s")
    B = te.compute((), lambda: te.sum(A[r, s], axis=[r, s]), name="B")
    a = _data(5, 6)
    assert _run([A, B], a) == a[1:4, 2:6].sum()


def test_where_and_init():
    A, S = te.placeholder((4, 6), name="A"), te.placeholder((4,), name="S")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0, init=S[i]), name="B")
    C = te.compute((4,), lambda i: te.max(A[i, k], axis=k, init=3), name="C")
    D = te.compute((4,), lambda i: te.max(A[i, k], axis=k, where=k > 9), name="D")
    a, s = _data(4, 6), _data(4)
    b, c, d = _run([A, S, B, C, D], a, s)
    np.testing.assert_array_equal(b, s + np.where(a > 0, a, 0).sum(1))
    np.testing.assert_array_equal(c, np.maximum(a.max(1), 3))
    np.testing.assert_array_equal(d, [-np.inf] * 4)


def test_infinite_and_nan_inputs_of_min_and_max():
    A = te.placeholder((3, 2), name="A")
    k = te.reduce_axis((0, 2), name="k")
    low = te.compute((3,), lambda i: te.min(A[i, k], axis=k), name="low")
    high = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="high")
    a = np.array([[np.inf, np.inf], [-np.inf, -np.inf], [1, np.nan]], "float32")
    found = _run([A, low, high], a)
    np.testing.assert_array_equal(found[0], [np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(found[1], [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("swap", [False, True])
def test_argmax(swap):
    val = te.placeholder((4, 7), name="val")
    k = te.reduce_axis((0, 7), name="k")
    argmax = te.comm_reducer(
        lambda x, y: (ir.Select(x[1] >= y[1], x[0], y[0]), ir.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (ir.const(-1, index), te.min_value(value)),
        name="argmax",
    )
    order = slice(None, None, -1 if swap else 1)
    outputs = te.compute((4,), lambda i: argmax((k, val[i, k]), axis=k)[order], name="R")
    a = _data(4, 7)
    best, most = _run([val, *outputs], a)[order]
    np.testing.assert_array_equal(best, a.argmax(1))
    np.testing.assert_array_equal(most, a.max(1))


@pytest.mark.parametrize("override", [None, "int64"])
def test_indices_of_every_kind(override):
    n = te.size_var("n")
    A, X = te.placeholder((n, 4), name="A"), te.placeholder((n,), "int32", name="X")
    B = te.compute(
        (n,), lambda i: te.if_then_else(te.all(i > 0, i < 3), A[X[i], te.max(i - 1, 0) % 4] + i, A[i // 2, 0]), name="B"
    )
    a, x = _data(5, 4), np.array([4, 3, 2, 1, 0], "int32")
    expected = [a[x[i], (i - 1) % 4] + i if 0 < i < 3 else a[i // 2, 0] for i in range(5)]
    np.testing.assert_array_equal(_run([A, X, B], a, x, index_dtype_override=override), expected)


def test_several_outputs_and_one_left_out():
    A = te.placeholder((4,), name="A")
    p, q = te.compute((4,), lambda i: (A[i] + 1, A[i] * i), name="T")
    r = te.compute((4,), lambda i: p[i] - q[i], name="r")
    a = _data(4)
    found = _run([A, q, r], a)
    np.testing.assert_array_equal(found[0], a * np.arange(4))
    np.testing.assert_array_equal(found[1], a + 1 - a * np.arange(4))


def test_triangular_reduction():
    A = te.placeholder((4, 4), name="A")

    def row(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(A[i, k], axis=k)

    a = _data(4, 4)
    np.testing.assert_array_equal(_run([A, te.compute((4,), row, name="B")], a), np.tril(a).sum(1))


def test_scalar_parameters():
    n, alpha = te.size_var("n"), te.var("alpha", "float32")
    A = te.placeholder((n,), name="A")
    func = te.create_prim_func([A, alpha, B := te.compute((n,), lambda i: A[i] * alpha, name="B")])
    assert_structural_equal(from_source(func.script()), func)
    a, b = _data(3), np.zeros(3, "float32")
    evaluate(func, a, 2.5, b)
    np.testing.assert_array_equal(b, a * 2.5)
    assert B.ndim == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float64", "bfloat16"])
def test_sums_in_every_type(dtype):
    A = te.placeholder((5,), dtype, name="A")
    k = te.reduce_axis((0, 5), name="k")
    a = np.arange(5).astype(A.dtype.numpy())
    assert _run([A, te.compute((), lambda: te.sum(A[k], axis=k), name="S")], a) == 10


def test_a_block_with_unicode_and_dotted_names():
    A = te.placeholder((3,), name="in.put")
    B = te.compute((3,), lambda i: A[i] + 1, name="2nd out")
    np.testing.assert_array_equal(_run([A, B], _data(3)), _data(3) + 1)
