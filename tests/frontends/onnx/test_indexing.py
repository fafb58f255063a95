"""NonZero of a single number, index tuples whose length is an open size, and different values of open sizes."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends import from_onnx
from loopwright.frontends.onnx.errors import BadNode
from tests.frontends.onnx.one_node import compare
from tests.frontends.onnx.onnx_models import model, run

X = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("value", [3.0, 0.0])
def test_nonzero_of_a_number(value):
    graph = model("(float x) => (int64[r, n] y) { y = NonZero(x) }")
    assert run(graph, np.array(value, "float32")).shape == (0, int(value != 0))
    constant = model(f"() => (int64[r, n] y) {{ x = Constant<value = float {{{value}}}>() y = NonZero(x) }}")
    assert run(constant).shape == (0, int(value != 0))
    compare("NonZero", [X - 3])


@pytest.mark.parametrize("indices", [[[0], [1]], [[0, 1], [1, 2]], [[0, 1, 3], [1, 2, 0]]], ids=str)
def test_index_tuples_of_an_open_length(indices):
    places = np.array(indices, "int64")
    at = tuple(places.T)
    gather = model("(float[2, 3, 4] x, int64[2, k] i) => (float y) { y = GatherND(x, i) }")
    np.testing.assert_array_equal(run(gather, X, places), X[at])
    updates = np.full_like(X[at], 99)
    names = ", ".join("abc"[: updates.ndim])
    scatter = model(
        f"(float[2, 3, 4] x, int64[2, k] i, float[{names}] u) => (float[2, 3, 4] y) {{ y = ScatterND(x, i, u) }}"
    )
    expected = X.copy()
    expected[at] = 99
    np.testing.assert_array_equal(run(scatter, X, places, updates), expected)


@pytest.mark.parametrize("sizes", ["a, b, c", "a, 3, c"])
def test_different_values_of_open_sizes(sizes):
    graph = model(f"(float[{sizes}] x) => (float[k] y) {{ y = Unique(x) }}")
    np.testing.assert_array_equal(run(graph, X % 7), np.arange(7))


@pytest.mark.parametrize("k", [0, -3, 1 << 40, -(1 << 40)])
@pytest.mark.parametrize("upper", [0, 1])
def test_the_triangle_of_a_large_matrix_needs_no_mask(monkeypatch, k, upper):
    graph = model(f"(float[4, 7] x) => (float[4, 7] y) <int64 k = {{{k}}}> {{ y = Trilu<upper = {upper}>(x, k) }}")
    x = np.arange(28, dtype="float32").reshape(4, 7) + 1
    expected = np.triu(x, k) if upper else np.tril(x, k)
    np.testing.assert_array_equal(run(graph, x), expected)
    monkeypatch.setattr("loopwright.frontends.onnx.ops.movement._LARGEST_MASK", 27)
    np.testing.assert_array_equal(run(graph, x), expected)
    # A matrix that no memory holds is imported all the same.
    large = "(float[300000, 200000] x) => (float[300000, 200000] y)"
    from_onnx(model(f"{large} <int64 k = {{{k}}}> {{ y = Trilu<upper = {upper}>(x, k) }}"))


def test_an_image_of_a_million_axes():
    graph = model("(float[1, 4, 4] x, int64[1000000] s, int64[2] b) => (float[a, c, h, w] y) { y = Col2Im(x, s, b) }")
    with pytest.raises(BadNode, match="an image of 1000000 axes"):
        from_onnx(graph)
