"""Values that are known only when the model runs: operators that find them then."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.frontends import from_onnx
from tests.frontends.onnx.onnx_models import model, random

X = random(2, 3, 4)
CASES = [
    ("(float[2, 3, 4] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }", [X, [4, 6]], X.reshape(4, 6)),
    ("(float[2, 3, 4] x, int64[3] s) => (float[a, b, c] y) { y = Tile(x, s) }", [X, [2, 1, 2]], np.tile(X, (2, 1, 2))),
    (
        "(float[2, 1, 4] x, int64[3] s) => (float[a, b, c] y) { y = Expand(x, s) }",
        [X[:, :1], [2, 3, 4]],
        np.broadcast_to(X[:, :1], (2, 3, 4)),
    ),
    (
        "(float[2, 3, 4] x, int64[1] s, int64[1] e) => (float[a, b, c] y) <int64[1] k = {1}> { y = Slice(x, s, e, k) }",
        [X, [1], [-1]],
        X[:, 1:-1],
    ),
    ("(int64[2] s) => (float[a, b] y) { y = ConstantOfShape(s) }", [[2, 5]], np.zeros((2, 5), "f")),
    ("(float[2, 3, 4] x) => (int64[3, n] y) { y = NonZero(x) }", [X], np.array(np.nonzero(X))),
    (
        "(float[2, 3, 4] x) => (float[m] y) { n = NonZero(x) t = Transpose(n) y = GatherND(x, t) }",
        [X],
        X.reshape(-1),
    ),
    ("(float[4] x, bool[3] c) => (float[m] y) { y = Compress(x, c) }", [X[0, 0], [True, False, True]], X[0, 0, [0, 2]]),
]


@pytest.mark.parametrize(("text", "inputs", "wanted"), CASES)
def test_shapes_are_found_when_the_model_runs(text, inputs, wanted):
    mod, _ = from_onnx(model(text))
    found = relay.create_executor("debug", mod=mod).evaluate()(*[np.asarray(one) for one in inputs])
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_a_transformer_block_keeps_the_names_of_its_sizes():
    graph = model(
        """(float[batch, seq, 8] x, float[8, 24] w) => (float[batch, seq, 8] y)
        <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}, int64[3] tail = {3, 2, 4}, int64[1] width = {8},
         int64 first = {0}, int64 second = {1}, int64 third = {2}, float half = {0.5}> {
            p = MatMul(x, w)
            s = Shape(x)
            b = Gather(s, zero)
            n = Gather(s, one)
            b1 = Unsqueeze(b, at)
            n1 = Unsqueeze(n, at)
            apart = Concat<axis = 0>(b1, n1, tail)
            qkv = Reshape(p, apart)
            moved = Transpose<perm = [2, 0, 3, 1, 4]>(qkv)
            q = Gather<axis = 0>(moved, first)
            k = Gather<axis = 0>(moved, second)
            v = Gather<axis = 0>(moved, third)
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            scores = MatMul(q, kt)
            scaled = Mul(scores, half)
            weights = Softmax<axis = -1>(scaled)
            seen = MatMul(weights, v)
            back = Transpose<perm = [0, 2, 1, 3]>(seen)
            together = Concat<axis = 0>(b1, n1, width)
            y = Reshape(back, together)
        }"""
    )
    mod, _ = from_onnx(graph)
    assert str(mod["main"].body.checked_type) == "Tensor[(batch, seq, 8), float32]"
    run = relay.create_executor("debug", mod=mod).evaluate()
    w = random(8, 24, seed=1)
    for batch, seq in ((1, 1), (2, 5)):
        x = random(batch, seq, 8, seed=2)
        q, k, v = (x.astype("d") @ w).reshape(batch, seq, 3, 2, 4).transpose(2, 0, 3, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) * 0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = (weights / weights.sum(-1, keepdims=True)) @ v
        # An error in a score is one of the same size, relative, in its weight; 8 + 4 products make such a score.
        size = 0.5 * (np.abs(q) @ np.abs(k).transpose(0, 1, 3, 2)).max()
        bound = 2 * (8 + 4 + seq + 8) * np.finfo("f").eps * (1 + size) * np.abs(v).max()
        found = np.asarray(run(x, w))
        assert np.abs(found - wanted.transpose(0, 2, 1, 3).reshape(batch, seq, 8)).max() <= bound
