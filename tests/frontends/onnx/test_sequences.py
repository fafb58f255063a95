"""Sequences and optionals: gone when the model is imported."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.onnx.errors import BadNode
from tests.frontends.onnx.onnx_models import imported, model, random, run

A, B = random(2, 3), random(2, 3, seed=1)


def pair(rest: str, outputs: str = "float[N, M] y") -> object:
    return model(f"(float[2, 3] a, float[2, 3] b) => ({outputs}) {{ s = SequenceConstruct(a, b) {rest} }}")


@pytest.mark.parametrize(("place", "wanted"), [(0, A), (1, B), (-1, B)])
def test_an_element(place, wanted):
    found = run(pair(f"k = Constant<value = int64 {{{place}}}>() y = SequenceAt(s, k)"), A, B)
    np.testing.assert_array_equal(found, wanted)


def test_an_element_whose_place_is_found_when_the_model_runs():
    graph = model("""(float[2, 3] a, float[2, 3] b, int64 k) => (float[2, 3] y) {
      s = SequenceConstruct(a, b)
      y = SequenceAt(s, k)
    }""")
    np.testing.assert_array_equal(run(graph, A, B, np.int64(-1)), B)
    np.testing.assert_array_equal(run(graph, A, B, np.int64(0)), A)


def test_inserted_erased_counted():
    rest = """
      one = Constant<value = int64 {1}>()
      t = SequenceInsert(s, b, one)
      u = SequenceErase(t)
      n = SequenceLength(t)
      y = ConcatFromSequence<axis = 0>(u)
    """
    n, y = run(pair(rest, "int64 n, float[N, M] y"), A, B)
    assert n == 3
    np.testing.assert_array_equal(y, np.concatenate([A, B]))


def test_stacked_along_a_new_axis():
    y = run(pair("y = ConcatFromSequence<axis = -1, new_axis = 1>(s)", "float[2, 3, 2] y"), A, B)
    np.testing.assert_array_equal(y, np.stack([A, B], axis=-1))


@pytest.mark.parametrize(
    ("split", "sizes"), [("int64 {2}", (2, 2, 1)), ("int64[2] {1, 4}", (1, 4)), ("int64[1] {5}", (5,))]
)
def test_split_to_sequence(split, sizes):
    text = f"(float[5, 2] x) => (seq(float[N, 2]) y) {{ k = Constant<value = {split}>() y = SplitToSequence(x, k) }}"
    x = random(5, 2)
    found = run(model(text), x)
    assert tuple(part.shape[0] for part in found) == sizes
    np.testing.assert_array_equal(np.concatenate(found), x)


def test_split_of_a_size_with_a_name_is_compiled_for_each_size():
    graph = model("(float[n, 2] x) => (int64 y) { s = SplitToSequence(x) y = SequenceLength(s) }")
    assert run(graph, random(3, 2)) == 3
    assert run(graph, random(4, 2)) == 4


def test_a_graph_for_each_element():
    rest = """t = SequenceMap(s, a) <body = g (float[2, 3] e, float[2, 3] o) => (float[2, 3] r) { r = Sub(e, o) }>
      y = ConcatFromSequence<axis = 0>(t)"""
    np.testing.assert_array_equal(run(pair(rest), A, B), np.concatenate([A - A, B - A]))


def test_optionals():
    text = """(float[3] x) => (bool a, bool b, float[3] y) {
      o = Optional(x)
      a = OptionalHasElement(o)
      b = OptionalHasElement()
      y = OptionalGetElement(o)
    }"""
    a, b, y = run(model(text), np.float32([1, 2, 3]))
    assert a and not b
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_a_place_outside_is_refused():
    with pytest.raises(BadNode, match="place 2 is outside a sequence of 2"):
        imported(pair("k = Constant<value = int64 {2}>() y = SequenceAt(s, k)"))


def test_nothing_to_erase_is_refused():
    text = "() => (seq(float[N]) y) { s = SequenceEmpty() y = SequenceErase(s) }"
    with pytest.raises(BadNode, match="no element to take out"):
        imported(model(text))
