"""plain_form.py: reductions whose axis starts anywhere, or that leave points out, are scheduled like any other."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, tir
from loopwright.autosched.plain_form import plain_form
from loopwright.evaluator import evaluate
from tests.autosched.same_results import check_same_bits

N, WINDOW = 50, 5


def window(start, where, reduce=te.sum, dtype="float32"):
    X = te.placeholder((N + WINDOW,), dtype, name="X")
    k = te.reduce_axis((start, start + WINDOW), name="k")
    condition = (lambda i: X[i + k - start] > 3) if where else lambda i: None
    return te.create_prim_func(
        [X, te.compute((N,), lambda i: reduce(X[i + k - start], axis=k, where=condition(i)), name="S")]
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min], ids=["sum", "max", "min"])
@pytest.mark.parametrize(
    ("start", "where", "dtype"), [(-2, False, "float32"), (0, True, "int32"), (3, True, "float32")]
)
def test_the_same_bits_by_a_rule(start, where, dtype, reduce):
    func = window(start, where, reduce, dtype)
    x = np.random.default_rng(0).integers(-9, 9, N + WINDOW).astype(dtype)
    plan = check_same_bits(func, [x, np.zeros(N, dtype)])
    assert plan.decisions[0].rule in ("pooling", "reduction")


def test_the_least_that_changes_nothing():
    """A sum that starts at -0 and leaves every point out is -0; nothing outside of a buffer is read."""
    X = te.placeholder((N,), name="X")
    k = te.reduce_axis((-2, 3), name="k")
    inside = lambda i: te.all(i + k >= 0, i + k < N, X[i] > 99)
    S = te.compute((N,), lambda i: te.sum(X[i + k], axis=k, where=inside(i), init=te.const(-0.0)), name="S")
    func = te.create_prim_func([X, S])
    out = np.ones(N, "float32")
    lw.build(func, autosched=True)(np.ones(N, "float32"), out)
    assert np.signbit(out).all() and not out.any()


def test_text():
    text = plain_form(window(-2, True)).script()
    assert "for i, k in T.grid(50, 5):" in text
    assert "S[v_i] + T.Select(X[v_i + v_k] > T.float32(3), X[v_i + v_k], T.float32(-0.0))" in text


def test_what_is_plain_stays_the_same_object():
    func = window(0, False)
    assert plain_form(func) is func
    module = lw.IRModule({"main": func})
    assert plain_form(module) is module


def test_scans_stay_as_they_are():
    state = te.placeholder((8, 4), name="state")
    first = te.compute((1, 4), lambda _, i: te.const(1.0))
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] * 2.0)
    func = te.create_prim_func([te.scan(first, update, state)])
    assert plain_form(func) is func


def test_of_what_stays_it_is_said_why():
    def argmax(x, y):
        keep = x[1] >= y[1]
        return tir.Select(keep, x[0], y[0]), tir.Select(keep, x[1], y[1])

    reducer = te.comm_reducer(argmax, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    X = te.placeholder((4, 8), name="X")
    k = te.reduce_axis((0, 8), name="k")
    best = te.compute((4,), lambda i: reducer((k, X[i, k]), axis=k, where=X[i, k] < 3), name="B")
    told = autosched.apply(te.create_prim_func([X, *best])).explain()
    assert "B: left as written" in told
    assert "te.if_then_else inside the reduction would be scheduled" in told


def test_the_meaning_is_the_same_by_the_evaluator():
    func = window(-3, True)
    x = np.random.default_rng(1).standard_normal(N + WINDOW).astype("float32") * 4
    ways = [evaluate(way, x, np.zeros(N, "float32")) for way in (func, plain_form(func))]
    assert repr(ways[0]) == repr(ways[1])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_reduction_of_one_point_is_element_wise(dtype):
    X, W = te.placeholder((3, 5, 7), dtype, name="X"), te.placeholder((5, 1), dtype, name="W")
    k = te.reduce_axis((0, 1), name="k")
    S = te.compute((3, 5, 7), lambda n, c, i: te.sum(X[n, c, i + k] * W[c, k], axis=k), name="S")
    Y = te.compute(S.shape, lambda *at: te.max(S(*at), te.const(0, dtype)), name="Y")
    x = np.random.default_rng(0).integers(-9, 9, (3, 5, 7)).astype(dtype)
    w = np.random.default_rng(1).integers(-9, 9, (5, 1)).astype(dtype)
    x[0] = -0.0 if dtype == "float32" else 0  # a sum starts at 0: 0 + -0 is 0
    for last in (S, Y):
        plan = check_same_bits(te.create_prim_func([X, W, last]), [x, w, np.zeros(x.shape, dtype)])
        assert plan.decisions[-1].rule == "element-wise"
    assert [decision.rule for decision in plan.decisions] == ["inlined", "element-wise"]


@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min], ids=["sum", "max", "min"])
def test_one_point_of_any_kind(reduce):
    X, k = te.placeholder((6, 1), name="X"), te.reduce_axis((0, 1), name="k")
    x = np.array([[1], [-np.inf], [np.nan], [-0.0], [np.inf], [-3]], "float32")
    func = te.create_prim_func([X, te.compute((6,), lambda i: reduce(X[i, k], axis=k), name="M")])
    assert check_same_bits(func, [x, np.zeros(6, "float32")]).decisions[0].rule == "element-wise"
