"""If, Loop, Scan: resolved while importing, unrolled, or loops of the graph; by the interpreter and natively."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.errors import ValueNeeded
from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadNode
from loopwright.ir import IRModule
from tests.frontends.onnx.onnx_models import imported, model, random, run

X = np.float32([1, 2, 3])

BRANCHES = """(float[3] x, bool c) => (float[N] y) {
  e = Exp(x)
  y = If(c) <then_branch = t () => (float[3] a) { a = Add(e, x) },
             else_branch = f () => (float[M] b) { b = %s }>
}"""

COUNTED = """(float[3] x, int64 n) => (float[3] y, float[N, 3] ys) {
  going = Constant<value = bool {1}>()
  w = Exp(x)
  y, ys = Loop(n, going, x) <body = b (int64 i, bool c, float[3] v) => (bool again, float[3] after, float[3] row) {
    again = Identity(c)
    half = Constant<value = float {0.5}>()
    less = Mul(v, half)
    after = Add(less, w)
    turn = Cast<to = 1>(i)
    row = Add(after, turn)
  }>
}"""

SEARCH = """(float[3] x) => (float[3] y%s) {
  going = Constant<value = bool {1}>()
  most = Constant<value = int64 {500}>()
  y%s = Loop(%s, going, x) <body = b (int64 i, bool c, float[3] v) => (bool again, float[3] after%s) {
    two = Constant<value = float {2.0}>()
    after = Mul(v, two)
    %s
    total = ReduceSum<keepdims = 0>(after)
    limit = Constant<value = float {100.0}>()
    again = Less(total, limit)
  }>
}"""


def counted(n: int) -> tuple[np.ndarray, np.ndarray]:
    value, rows = X, []
    for turn in range(n):
        value = value * np.float32(0.5) + np.exp(X)
        rows.append(value + np.float32(turn))
    return value, np.array(rows, np.float32).reshape(-1, 3)


def operators(mod: IRModule) -> str:
    return str(mod["main"])


def test_a_branch_that_is_known_is_the_only_one():
    text = operators(imported(model(BRANCHES % "Sub(e, x)"), values={"c": True}).mod)
    assert "if (" not in text and "add(" in text and "subtract(" not in text


@pytest.mark.parametrize("runner", [interpreted, None])
def test_a_branch_is_chosen_when_the_model_runs(runner):
    compiled = CompiledModel(model(BRANCHES % "Sub(e, x)"), make_runner=runner)
    np.testing.assert_allclose(compiled(X, True), np.exp(X) + X, rtol=1e-6)
    np.testing.assert_allclose(compiled(X, False), np.exp(X) - X, rtol=1e-6)
    assert len(compiled._variants) == 1


def test_branches_of_different_shapes_are_compiled_one_by_one():
    graph = model(BRANCHES % "Concat<axis = 0>(e, x)")
    compiled = CompiledModel(graph, make_runner=interpreted)
    assert compiled(X, True).shape == (3,)
    assert compiled(X, False).shape == (6,)
    # The graph itself may leave the size open.
    assert "?" in operators(imported(graph).mod)


def test_branches_of_different_ranks_need_the_condition():
    text = (BRANCHES % "ReduceSum<keepdims = 0>(e)").replace("float[N] y", "float y").replace("float[M] b", "float b")
    with pytest.raises(ValueNeeded, match=r"\(If\) needs the value of 'c'"):
        imported(model(text))


def test_few_turns_are_unrolled_and_many_are_a_loop():
    graph = model(COUNTED)
    assert "let %loop" not in operators(imported(graph, values={"n": 5}).mod)
    text = operators(imported(graph, values={"n": 600}).mod)
    assert "let %loop" in text
    # What is the same in every turn is computed before the loop.
    assert text.index("exp(") < text.index("let %loop")


@pytest.mark.parametrize("turns", [0, 1, 7, 300])
def test_counted_turns(turns):
    y, ys = CompiledModel(model(COUNTED), make_runner=interpreted).run([X, np.int64(turns)])
    wanted, rows = counted(turns)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    np.testing.assert_allclose(ys, rows, rtol=1e-6)


def test_counted_turns_natively():
    y, ys = CompiledModel(model(COUNTED), values={"n": 300}).run([X])
    wanted, rows = counted(300)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    np.testing.assert_allclose(ys, rows, rtol=1e-6)


@pytest.mark.parametrize("runner", [interpreted, None])
@pytest.mark.parametrize("most", ["", "most"])
def test_turns_until_a_condition_fails(runner, most):
    compiled = CompiledModel(model(SEARCH % ("", "", most, "", "")), make_runner=runner)
    np.testing.assert_array_equal(compiled(X), X * 32)


@pytest.mark.parametrize("limit", [500, 2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("most", ["", "most"])
def test_rows_of_the_turns_that_there_were(most, limit):
    text = SEARCH.replace("500", str(limit))
    graph = model(text % (", float[N, 3] ys", ", ys", most, ", float[3] row", "row = Identity(after)"))
    y, ys = CompiledModel(graph, make_runner=interpreted).run([X])
    np.testing.assert_array_equal(y, X * 32)
    np.testing.assert_array_equal(ys, X * np.float32([2, 4, 8, 16, 32])[:, None])


def test_a_value_that_grows():
    text = """(float[K] x) => (float[N] y) {
      going = Constant<value = bool {1}>()
      y = Loop(, going, x) <body = b (int64 i, bool c, float[M] v) => (bool again, float[M2] after) {
        after = Concat<axis = 0>(v, v)
        total = ReduceSum<keepdims = 0>(after)
        limit = Constant<value = float {100.0}>()
        again = Less(total, limit)
      }>
    }"""
    assert run(model(text), X).shape == (3 * 32,)


def test_a_body_that_needs_to_know_the_turn_is_unrolled():
    text = """(float[4] x) => (float[N] y) {
      n = Constant<value = int64 {4}>()
      none = Constant<value = float[0] {}>()
      going = Constant<value = bool {1}>()
      y = Loop(n, going, none) <body = b (int64 i, bool c, float[M] v) => (bool again, float[M2] after) {
        again = Identity(c)
        axes = Constant<value = int64[1] {0}>()
        begin = Unsqueeze(i, axes)
        one = Constant<value = int64[1] {1}>()
        end = Add(begin, one)
        part = Slice(x, begin, end)
        after = Concat<axis = 0>(v, part)
      }>
    }"""
    x = random(4)
    np.testing.assert_array_equal(run(model(text), x), x)


def test_a_loop_that_never_ends_is_refused():
    text = """(float[3] x) => (float[3] y) {
      y = Loop(, , x) <body = b (int64 i, bool c, float[3] v) => (bool again, float[3] after) {
        again = Identity(c)
        after = Add(v, v)
      }>
    }"""
    with pytest.raises(BadNode, match="the loop never ends"):
        imported(model(text))


def test_a_body_with_too_few_inputs_is_refused():
    text = "(float[3] x) => (float[3] y) { y = Loop(, , x) <body = b (int64 i, bool c) => (bool c) { d = Not(c) }> }"
    with pytest.raises(BadNode, match="its body has 2 inputs and 1 outputs for 1 values"):
        imported(model(text))


SUMS = """(float[3] s, float[T, 3] x) => (float[3] y, float[T, 3] ys) {
  y, ys = Scan<num_scan_inputs = 1%s, body = b (float[3] a, float[3] b) => (float[3] c, float[3] d) {
    c = Add(a, b)
    d = Mul(c, c)
  }>(s, x)
}"""


@pytest.mark.parametrize("runner", [interpreted, None])
def test_scan_of_a_length_that_has_a_name(runner):
    compiled = CompiledModel(model(SUMS % ""), make_runner=runner)
    for length in (1, 7):
        x = random(length, 3)
        y, ys = compiled.run([X, x])
        np.testing.assert_allclose(y, X + x.sum(0), rtol=1e-5)
        np.testing.assert_allclose(ys, (X + np.cumsum(x, 0)) ** 2, rtol=1e-5)
    assert len(compiled._variants) == 1


def test_scan_backwards_and_along_other_axes():
    text = SUMS.replace("float[T, 3] x", "float[3, 5] x").replace("float[T, 3] ys", "float[3, 5] ys")
    options = (
        ", scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [1]"
    )
    x = random(3, 5)
    y, ys = run(model(text % options), X, x)
    sums = X[:, None] + np.cumsum(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_allclose(y, sums[:, 0], rtol=1e-5)
    np.testing.assert_allclose(ys, sums**2, rtol=1e-5)


def test_scan_of_no_turns():
    y, ys = run(model((SUMS % "").replace("float[T, 3] x", "float[0, 3] x")), X, np.zeros((0, 3), np.float32))
    np.testing.assert_array_equal(y, X)
    assert ys.shape == (0, 3)
