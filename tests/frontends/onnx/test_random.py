"""Random numbers, losses, counts of short sequences."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.op_errors import OpAttributeInvalid, OpNotImplemented
from tests.frontends.onnx.one_node import compare, one_node
from tests.frontends.onnx.onnx_models import imported, model, random


def drawn(op: str, *inputs: np.ndarray, **options: object) -> np.ndarray:
    graph, feed = one_node(op, list(inputs), **options)
    compiled = CompiledModel(graph, make_runner=interpreted)
    first = compiled.run(feed)[0]
    np.testing.assert_array_equal(first, compiled.run(feed)[0])
    return first


def test_uniform_and_normal_numbers():
    uniform = drawn("RandomUniform", shape=[40, 50], low=2.0, high=3.0, seed=1.0)
    assert uniform.dtype == np.float32 and 2 <= uniform.min() and uniform.max() < 3 and abs(uniform.mean() - 2.5) < 0.05
    assert (uniform != drawn("RandomUniform", shape=[40, 50], low=2.0, high=3.0, seed=2.0)).any()
    normal = drawn("RandomNormalLike", random(40, 50, dtype="float64"), mean=1.0, scale=2.0)
    assert normal.dtype == np.float64 and abs(normal.mean() - 1) < 0.2 and abs(normal.std() - 2) < 0.2


def test_nodes_without_a_seed_differ():
    graph = model(
        "() => (float[9] a, float[9] b) { a = RandomUniform<shape = [9]>() b = RandomUniform<shape = [9]>() }"
    )
    a, b = CompiledModel(graph, make_runner=interpreted).run()
    assert (a != b).any()


def test_ones_as_often_as_it_says():
    assert (drawn("Bernoulli", np.float32([[0, 1] * 50])) == np.float32([[0, 1] * 50])).all()
    assert 300 < drawn("Bernoulli", np.full(1000, 0.4, np.float32), dtype=6).sum() < 500


def test_indices_as_often_as_logarithms_say():
    found = drawn("Multinomial", np.log(np.float32([[0.1, 0.0001, 0.9]])), sample_size=200)
    assert found.shape == (1, 200) and found.dtype == np.int32
    assert np.bincount(found[0], minlength=3).argmax() == 2


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(op, reduction):
    x, target, weight = random(2, 3, 4), np.int64([[0, 1, 2, 1], [2, 2, 0, 1]]), np.float32([0.5, 1, 2])
    options = {"reduction": reduction, "outputs": 1 if op.startswith("N") else 2}
    compare(op, [x, target], **options)
    compare(op, [x, target, weight], ignore_index=1, **options)


def test_counts_of_short_sequences():
    options = {
        "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 3],
        "ngram_indexes": [0, 2, 1, 3, 4], "pool_int64s": [2, 3, 5, 2, 3, 3, 5], "weights": [0.5, 2.0, 1.0, 3.0, 1.5],
    }  # fmt: skip
    rows = np.int32([[2, 3, 5, 2, 3, 3], [5, 5, 2, 9, 3, 5]])
    for mode in ("TF", "IDF", "TFIDF"):
        compare("TfIdfVectorizer", [rows], mode=mode, **options)
        compare("TfIdfVectorizer", [rows[0]], mode=mode, **options)


def test_reductions_that_are_not_known_are_refused():
    graph, _ = one_node("NegativeLogLikelihoodLoss", [random(2, 3), np.int64([0, 1])], reduction="median")
    with pytest.raises(OpAttributeInvalid, match="reduction is 'median'"):
        imported(graph)


def test_texts_are_refused_with_a_reason():
    graph = model("(string[3] x) => (string[3] y) { y = StringConcat(x, x) }")
    with pytest.raises(OpNotImplemented, match="StringConcat") as caught:
        imported(graph)
    assert "texts are not computed with" in str(caught.value)
