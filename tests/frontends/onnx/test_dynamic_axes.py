"""Axes, widths and counts that are inputs of the model: relay has operators that find them when the model runs."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from tests.frontends.onnx.onnx_models import model
from tests.frontends.onnx.strict_reference import reference_of

X = np.random.default_rng(0).integers(-4, 5, (2, 1, 3)).astype("float32")


def vector(*values: int) -> np.ndarray:
    return np.array(values, "int64")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = ReduceSum(x, a) }", {"a": vector(0, -1)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = ReduceMax<keepdims = 0>(x, a) }", {"a": vector(2)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = ReduceMean(x, a) }", {"a": vector(0)}),
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = ReduceL2(x, a) }", {"a": vector(0, 2)}),
        ("(float[2,1,3] x, int64[0] a) => (float[r] y) { y = ReduceSumSquare(x, a) }", {"a": vector()}),
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = Unsqueeze(x, a) }", {"a": vector(-1, 1)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = Squeeze(x, a) }", {"a": vector(-2)}),
        (
            "(float[2,1,3] x, int64[1] s, int64[1] e, int64[1] a, int64[1] b) => (float[r] y) "
            "{ y = Slice(x, s, e, a, b) }",
            {"s": vector(2), "e": vector(0), "a": vector(2), "b": vector(-1)},
        ),
        ("(float[2,1,3] x, int64[6] p) => (float[r] y) { y = Pad(x, p) }", {"p": vector(1, 0, 2, 0, 1, 0)}),
        (
            "(float[2,1,3] x, int64[2] p, float v, int64[1] a) => (float[r] y) { y = Pad(x, p, v, a) }",
            {"p": vector(1, 2), "v": np.float32(7), "a": vector(-1)},
        ),
        ("(float[2,1,3] x, int64 k) => (float[r] y) { y = Trilu(x, k) }", {"k": np.int64(1)}),
        ("(int64 b, int64 e, int64 s) => (int64[r] y) { y = Range(b, e, s) }",
         {"b": np.int64(1), "e": np.int64(8), "s": np.int64(3)}),
        ("(float[2,1,3] x, int64[1] k) => (float[r] y) { y, i = TopK(x, k) }", {"k": vector(2)}),
        ("(int64[3] n, int64 d, float[2] v) => (float[r] y) { y = OneHot(n, d, v) }",
         {"n": vector(0, -1, 2), "d": np.int64(4), "v": np.array([0.5, 2], "float32")}),
    ],
)  # fmt: skip
def test_what_is_found_when_the_model_runs(text, given):
    graph = model(text)
    inputs = {value.name: X if value.name == "x" else np.asarray(given[value.name]) for value in graph.graph.input}
    wanted = reference_of(graph, inputs)
    assert wanted.refusal is None
    module, _ = relay.frontend.from_onnx(graph)
    found = relay.create_executor("vm", module).evaluate()(*inputs.values())
    np.testing.assert_array_equal(np.asarray(found), wanted.results[0])
