"""Inline, LambdaLift, EtaExpand, RemoveUnusedFunctions, PartialEvaluate: passes about functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import ir, relay
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.infer_type import infer_module
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import EtaExpand, Inline, LambdaLift, PartialEvaluate, RemoveUnusedFunctions
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import (
    apply,
    assert_becomes,
    assert_same_results,
    assert_unchanged,
    function,
    operators,
)

TYPE = relay.TensorType((3,), "float32")


def _x(name: str = "x") -> relay.Var:
    return relay.var(name, TYPE)


def _let(name: str, value: Any, body: Any) -> relay.Let:
    var = relay.var(name)
    return relay.Let(var, value, body(var))


def _module(**functions: relay.Function) -> IRModule:
    return infer_module(IRModule(functions))


def _run(mod: IRModule, *args: np.ndarray) -> Any:
    return evaluate(mod["main"], list(args), mod)


DATA = np.array([1.0, -2.0, 3.0], "float32")


def test_inline():
    x, y = _x(), _x("y")
    f = GlobalVar("f")
    mod = _module(
        f=relay.Function([y], _let("v", relay.exp(y), lambda v: v + y), attrs={"Inline": 1}),
        main=relay.Function([x], relay.Call(f, [relay.Call(f, [x])])),
    )
    found = Inline()(mod)
    assert [var.name for var in found] == ["main"]
    np.testing.assert_array_equal(_run(found, DATA), _run(mod, DATA))


def test_inline_leaves_functions_that_call_themselves():
    x, y = _x(), _x("y")
    f = GlobalVar("f")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), relay.Call(f, [y + relay.const(4.0)]), y)
    mod = _module(f=relay.Function([y], body, TYPE, attrs={"Inline": 1}), main=relay.Function([x], relay.Call(f, [x])))
    assert Inline()(mod) is mod


def test_remove_unused_functions():
    x, y = _x(), _x("y")
    mod = _module(
        f=relay.Function([y], relay.exp(y)),
        g=function(relay.abs(_x("z"))),
        main=relay.Function([x], relay.Call(GlobalVar("f"), [x])),
    )
    assert sorted(var.name for var in RemoveUnusedFunctions()(mod)) == ["f", "main"]
    assert sorted(var.name for var in RemoveUnusedFunctions(["g"])(mod)) == ["g"]


def _inner_functions(mod: IRModule) -> int:
    return sum(isinstance(each, relay.Function) for one in mod.values() for each in post_order(one.body))


def test_lambda_lift_gives_what_was_captured():
    x, y = _x(), _x("y")
    body = _let("f", relay.Function([y], y * x), lambda f: f(f(relay.exp(x))))
    mod = _module(main=relay.Function([x], body))
    found = LambdaLift()(mod)
    assert sorted(var.name for var in found) == ["lifted_f", "main"]
    assert len(found["lifted_f"].params) == 2 and _inner_functions(found) == 0
    np.testing.assert_array_equal(_run(found, DATA), _run(mod, DATA))


def test_lambda_lift_of_loops():
    x, y = _x(), _x("y")
    loop = relay.var("loop")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), loop(y + x), y)
    mod = _module(main=relay.Function([x], relay.Let(loop, relay.Function([y], body, TYPE), loop(x))))
    found = LambdaLift()(mod)
    assert _inner_functions(found) == 0
    np.testing.assert_array_equal(_run(found, DATA), _run(mod, DATA))


def test_lambda_lift_of_calls_at_once():
    x, y = _x(), _x("y")
    mod = _module(main=relay.Function([x], relay.Call(relay.Function([y], y + x), [x])))
    found = LambdaLift()(mod)
    assert _inner_functions(found) == 0
    np.testing.assert_array_equal(_run(found, DATA), _run(mod, DATA))


def test_eta_expand():
    x, y = _x(), _x("y")
    f = GlobalVar("f")
    mod = _module(f=relay.Function([y], relay.exp(y)), main=relay.Function([x], relay.Tuple([f, relay.Call(f, [x])])))
    found = EtaExpand(expand_global_var=True)(mod)["main"].body
    assert isinstance(found.fields[0], relay.Function) and found.fields[1].op is not found.fields[0]
    assert EtaExpand()(mod)["main"] is mod["main"]


def test_partial_evaluation_of_calls():
    x, y = _x(), _x("y")
    before = _let("f", relay.Function([y], relay.exp(y)), lambda f: f(f(x)))
    assert_becomes(PartialEvaluate(), before, relay.exp(relay.exp(x)))


def test_partial_evaluation_of_choices_and_tuples():
    x = _x()
    pair = relay.Tuple([relay.const(1.0), relay.const(2.0)])
    choice = relay.If(relay.less(relay.TupleGetItem(pair, 0), relay.const(2.0)), relay.exp(x), x)
    assert_becomes(PartialEvaluate(), choice, relay.exp(x))


def test_partial_evaluation_of_loops():
    """x squared three times: the count is known."""
    x, y = _x(), _x("y")
    i = relay.var("i", relay.TensorType((), "int32"))
    loop = relay.var("loop")
    body = relay.If(relay.less(i, relay.const(3)), loop(i + relay.const(1), y * y), y)
    before = relay.Let(loop, relay.Function([i, y], body, TYPE), loop(relay.const(0), x))
    found = apply(PartialEvaluate(), before)
    assert operators(found) == ["multiply"] * 3
    assert_same_results(function(before), found)


def test_loops_whose_end_is_not_known_stay():
    x, y = _x(), _x("y")
    loop = relay.var("loop")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), loop(y + relay.const(4.0)), y)
    before = function(relay.Let(loop, relay.Function([y], body, TYPE), loop(x)))
    found = apply(PartialEvaluate(), before)
    ir.assert_structural_equal(found, before)


def test_long_loops():
    x, y = _x(), _x("y")
    i = relay.var("i", relay.TensorType((), "int32"))
    loop = relay.var("loop")
    body = relay.If(relay.less(i, relay.const(400)), loop(i + relay.const(1), relay.abs(y)), y)
    before = relay.Let(loop, relay.Function([i, y], body, TYPE), loop(relay.const(0), x))
    assert operators(apply(PartialEvaluate(), before)) == ["abs"] * 400


def test_what_writes_stays():
    x = _x()
    before = _let(
        "r", relay.RefCreate(x), lambda r: _let("u", relay.RefWrite(r, relay.exp(x)), lambda u: relay.RefRead(r))
    )
    assert_unchanged(PartialEvaluate(), before)
