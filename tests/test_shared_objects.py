"""Expressions that hold one object in many places: forty objects, and more places than anybody could visit.

Every operation either takes time by objects or says that the expression is too large when it is written out.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import arith, ir, relay, te, tir
from loopwright.analysis.queries import undefined_vars
from loopwright.arith import Analyzer, IntervalSet
from loopwright.evaluator import evaluate
from loopwright.ir.program_size import TooLarge
from loopwright.ir.verifier import verify
from loopwright.script import from_source

LEVELS = 40
V = ir.Var("v")


def grown(e: ir.Expr, step: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    for _ in range(LEVELS):
        e = step(e)
    return e


GROWTHS: dict[str, Callable[[ir.Expr], ir.Expr]] = {
    "sum": lambda e: ir.Add(e, e),
    "product": lambda e: ir.Mul(e, e),
    "product of sums": lambda e: ir.Mul(ir.Add(e, ir.const(1)), ir.Add(e, ir.const(2))),
    "quotient": lambda e: ir.FloorDiv(ir.Add(ir.Mul(e, ir.const(3)), e), ir.const(2)),
    "remainder": lambda e: ir.FloorMod(ir.Mul(e, e), ir.Add(e, ir.const(5))),
    "least": lambda e: ir.Min(e, ir.Sub(e, ir.FloorMod(e, ir.const(7)))),
    "choice": lambda e: ir.Select(ir.LT(e, ir.const(5)), e, ir.Mul(e, e)),
}


@pytest.fixture(params=GROWTHS)
def shared(request) -> ir.Expr:
    return grown(V, GROWTHS[request.param])


@pytest.fixture(autouse=True)
def places(monkeypatch):
    """A walk gives up after fewer places than usual: to the usual end it takes seconds."""
    for module in ("program_size", "sharing", "structural", "visitor"):
        monkeypatch.setattr(f"loopwright.ir.{module}.MOST_PLACES", 100_000)
    monkeypatch.setattr("loopwright.script.printer.expressions.MOST_PLACES", 100_000)


@pytest.fixture(autouse=True)
def soon():
    """CPU seconds; the machine may be busy."""
    started = thread_time()
    yield
    assert thread_time() - started < 30


def copy_of(e: ir.Expr) -> ir.Expr:
    """The same shape, of other objects."""
    made: ir.Expr = ir.substitute(e, {V: ir.Var("other")})
    return made


QUESTIONS: dict[str, Callable[[ir.Expr], Any]] = {
    "repr": repr,
    "str": str,
    "script": lambda e: e.script(),
    "html": lambda e: e._repr_html_(),
    "hash": ir.structural_hash,
    "equal": lambda e: ir.structural_equal(e, copy_of(e), map_free_vars=True),
    "substitute": lambda e: ir.substitute(e, {V: ir.const(3)}),
    "variables": lambda e: [ir.variables_in(e), undefined_vars(e), ir.uses_var(e, lambda var: var is V)],
    "json": lambda e: ir.load_json(ir.save_json(e)),
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "simplify": lambda e: Analyzer().simplify(e),
    "prove": lambda e: Analyzer().can_prove(e >= 0),
    "bounds": lambda e: [Analyzer().const_int_bound(e), Analyzer().modular_set(e)],
    "linear": lambda e: [arith.detect_linear_equation(e, [V]), arith.detect_clip_bound(e > 3, [V])],
    "iterators": lambda e: arith.detect_iter_map([e], {V: ir.Range(0, 8)}),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("question", QUESTIONS)
def test_by_objects_and_not_by_places(shared, question):
    QUESTIONS[question](shared)


@pytest.mark.parametrize("growth", ["sum", "product", "remainder"])
def test_the_set_of_values(growth):
    Analyzer().int_set(grown(V, GROWTHS[growth]), {V: IntervalSet(0, 3)})
    arith.deduce_bound(V, grown(V, GROWTHS[growth]) > 5, {V: IntervalSet(0, 3)}, {})


def test_text_names_what_is_repeated():
    text = repr(grown(V, GROWTHS["sum"]))
    assert text.startswith("T.Let(s + s, where={s: T.Let(s_1 + s_1, where={s_1: ")
    assert len(text) < 3000


def test_difference_is_shown():
    with pytest.raises(ValueError, match=r"the programs differ at a\.a\.a"):
        ir.assert_structural_equal(grown(V, GROWTHS["sum"]), grown(ir.Add(V, ir.const(1)), GROWTHS["sum"]))


def test_a_function_of_it():
    A, B, i = ir.decl_buffer((4,), "int32", "A"), ir.decl_buffer((4,), "int32", "B"), ir.Var("i")

    def function(value: ir.Expr) -> ir.PrimFunc:
        return ir.PrimFunc([A, B], ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.BufferStore(B, value, [i])))

    for growth in ("sum", "product", "least"):
        made = function(grown(ir.BufferLoad(A, [i]), GROWTHS[growth]))
        verify(made)
        ir.assert_structural_equal(from_source(made.script()), made)
        a, wanted, found = np.arange(4, dtype="int32"), np.zeros(4, "int32"), np.zeros(4, "int32")
        evaluate(made, a, wanted)
        lw.build(made)(a, found)
        np.testing.assert_array_equal(found, wanted)


def test_statements_that_hold_each_other():
    body: ir.Stmt = ir.Evaluate(0)
    for _ in range(LEVELS):
        body = ir.IfThenElse(ir.Var("c", "bool"), body, body)
    with pytest.raises(TooLarge, match="the program has more than 100,000 nodes when it is written out"):
        ir.PrimFunc([], body)


def test_what_cannot_be_bound_is_refused():
    """A call with effects must happen as often as it stands there."""
    x: ir.Expr = tir.call_packed("some.function")
    x = grown(ir.Cast("int32", x), GROWTHS["sum"])
    with pytest.raises(TooLarge, match=r"an expression of type int32 has [\d,]+ nodes when it is written out"):
        ir.PrimFunc([], ir.Evaluate(x))
    assert "which cannot be printed: an expression of type int32 has" in repr(x)
    with pytest.raises(TooLarge, match="nodes when it is written out"):
        x.script()


def test_shapes_are_refused():
    n = ir.Var("n")
    A, B = ir.decl_buffer((n,), "int32", "A"), ir.decl_buffer((grown(n, GROWTHS["sum"]),), "int32", "B")
    function = ir.PrimFunc([A, B], ir.BufferStore(B, ir.const(1), [0]))
    with pytest.raises(TooLarge, match="nodes when it is written out"):
        lw.build(function)
    assert "which cannot be printed" in repr(function)


def test_walks_by_place_have_an_end(monkeypatch):
    monkeypatch.undo()
    with pytest.raises(TooLarge, match="has more than 2,000,000 nodes when it is written out"):
        ir.pre_order_visit(grown(V, GROWTHS["sum"]), lambda node: None)
    assert not ir.reads_memory(grown(V, GROWTHS["sum"]))


def test_tensor_expressions_and_graphs():
    A = te.placeholder((4,), "int32", name="A")
    C = te.compute((4,), lambda i: grown(A[i], GROWTHS["sum"]), name="C")
    assert "T.Let" in repr(C.op.body)
    lw.lower(te.create_schedule(C.op), [A, C])
    x = relay.var("x", shape=(4,), dtype="float32")
    y = x
    for _ in range(LEVELS):
        y = relay.add(y, y)
    function = relay.Function([x], y)
    assert len(function.astext().splitlines()) < LEVELS + 10
    assert ir.structural_equal(function, ir.load_json(ir.save_json(function)))


def test_products_have_bounds_with_an_end():
    B, x = ir.decl_buffer((8,), "int32", "B"), ir.Var("x", "int32")
    product = grown(x, lambda value: value * value)
    handle = ir.Var("B_handle", "handle")
    made = lw.lower(tir.PrimFunc([x, handle], ir.BufferStore(B, product, [0]), None, {handle: B}))
    assert "main" in str(made)
