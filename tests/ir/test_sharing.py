"""Large repeated expressions are written with lets: the same values, in the same places of evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir.sharing import bind_large, bind_shared, tree_size
from loopwright.ir.verifier import verify
from loopwright.script import tir as T

x = tir.Var("x", "float32")


def chain(value, count):
    for _ in range(count):
        value = value * value * 0.5 + 0.25
    return value


def chained(value, count):
    for _ in range(count):
        value = value * value * np.float32(0.5) + np.float32(0.25)
    return value


def test_tree_size_counts_places():
    assert tree_size(x + x) == 3
    assert tree_size(chain(x, 1)) == 7
    assert tree_size(chain(x, 60)) > 2**60


def test_each_shared_part_gets_one_let():
    y = x + 1.0
    e = y * y
    assert repr(bind_shared(e)) == "T.Let(s * s, where={s: x + T.float32(1)})"
    assert bind_shared(y) is y
    z = (y * y) * 2.0
    assert repr(bind_shared(tir.Sub(z, z))).count("T.Let") == 2


def test_small_repetition_is_left_alone():
    store = tir.Evaluate(chain(x, 6))
    assert bind_large(store) is store
    assert bind_large(tir.Evaluate(chain(x, 20))) is not store


def test_deep_expressions_that_share_nothing_are_left_alone():
    value = x
    for k in range(5000):
        value = value + tir.Var(f"v{k}", "float32")
    stmt = tir.Evaluate(value)
    assert bind_large(stmt) is stmt


def test_a_guarded_load_stays_guarded():
    A = tir.decl_buffer((8,), name="A")
    i = tir.Var("i")
    load = A[i] + 1.0
    both = tir.if_then_else(i < 8, load, tir.if_then_else(i < 4, load * 2.0, 0.0))
    assert "T.Let" not in repr(bind_shared(both))  # outside, A[i] would be read where no side reads it
    one = tir.if_then_else(i < 8, load * load, 0.0)
    assert repr(bind_shared(one)).index("if_then_else") < repr(bind_shared(one)).index("Let")
    condition = tir.if_then_else(load > 0.0, load, 0.0)  # read anyway, by the condition
    assert repr(bind_shared(condition)).startswith("T.Let")
    harmless = x + 1.0
    nested = tir.if_then_else(i < 8, harmless, tir.if_then_else(i < 4, harmless, 0.0))
    assert repr(bind_shared(nested)).startswith("T.Let")


def test_divisions_that_could_fail_stay_guarded():
    i, n = tir.Var("i"), tir.Var("n")
    quotient = (i // n) + 1
    e = tir.if_then_else(n != 0, quotient, tir.if_then_else(i > 0, quotient, 0))
    assert "T.Let" not in repr(bind_shared(e))


def test_calls_with_effects_happen_as_often_as_before():
    call = tir.call_extern("float32", "next") + 1.0
    e = call * call
    assert bind_shared(e) is e


def test_what_uses_a_let_stays_inside_it():
    v = tir.Var("v", "float32")
    part = v + 1.0
    bound = bind_shared(tir.Let(v, x * 2.0, part * part))
    func = tir.PrimFunc([x], tir.Evaluate(bound))
    verify(func)
    assert isinstance(bound, tir.Let) and bound.var is v and isinstance(bound.body, tir.Let)


@pytest.mark.parametrize("count", [9, 20, 60])
def test_from_te_built_and_evaluated(count):
    A = te.placeholder((5,), name="A")
    func = te.create_prim_func([A, te.compute((5,), lambda i: chain(A[i], count), name="B")])
    a, b, c = np.linspace(0, 1, 5).astype("float32"), np.empty(5, "float32"), np.empty(5, "float32")
    lw.build(func)(a, b)
    evaluate(func, a, c)
    np.testing.assert_allclose(b, chained(a, count), rtol=2**-22)
    np.testing.assert_allclose(c, b, rtol=2**-22)


def test_from_te_with_a_reduction_and_padding_and_a_schedule():
    A = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((8,), lambda i: tir.if_then_else(i < 6, chain(A[i], 24), 0.0), name="B")
    C = te.compute((3,), lambda i: te.sum(chain(A[k], 24) * B[i], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    sch.compute_inline(sch.get_block("B"))
    a, c = np.linspace(0, 1, 6).astype("float32"), np.empty(3, "float32")
    lw.build(sch.mod)(a, c)
    values = chained(a.astype("float64"), 24)
    np.testing.assert_allclose(c, values.sum() * values[:3], rtol=2**-20)


def test_from_script():
    @T.prim_func
    def func(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
        for i in range(5):
            B[i] = chain(A[i], 24)

    a, b = np.linspace(0, 1, 5).astype("float32"), np.empty(5, "float32")
    lw.build(func)(a, b)
    np.testing.assert_allclose(b, chained(a, 24), rtol=2**-22)
    assert len(func.script()) < 5000


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    A = tir.decl_buffer((8,), name="A")
    i = tir.Var("i")
    pool = [A[i], x, tir.const(0.5), A[7 - i] * 0.25]
    for _ in range(int(rng.integers(3, 14))):
        a, b = (pool[int(k)] for k in rng.integers(0, len(pool), 2))
        kind = int(rng.integers(0, 6))
        if kind == 0:
            made = tir.if_then_else(i < int(rng.integers(0, 9)), a, b)
        elif kind == 1:
            made = tir.Select(a < b, a, b)
        elif kind == 2:
            v = tir.Var("v", "float32")
            made = tir.Let(v, a, v * b + v)
        else:
            made = [tir.Add, tir.Mul, tir.Sub][kind - 3](a, b)
        pool.append(made * 0.5)
    value = pool[-1] + pool[-2]
    B = tir.decl_buffer((8,), name="B")

    def function(e):
        return tir.PrimFunc([A, x, B], tir.For(i, 0, 8, 0, tir.BufferStore(B, e, [i])))

    inputs = rng.uniform(-1, 1, 8).astype("float32")
    before, after = np.empty(8, "float32"), np.empty(8, "float32")
    evaluate(function(value), inputs, 0.75, before)
    bound = bind_shared(value)
    verify(tir.stmt_functor.renew_defs(function(bound)))
    evaluate(function(bound), inputs, 0.75, after)
    np.testing.assert_array_equal(before, after)
