"""ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm: names for everything, for some, for nothing."""

from __future__ import annotations

from typing import Any

from loopwright import ir, relay
from loopwright.relay.transform import ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm
from tests.relay.random_graphs import RandomGraph
from tests.relay.transform.graphs import apply, assert_becomes, assert_same_results, assert_unchanged, function


def _x(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(3,))


def _let(value: Any, body: Any) -> relay.Let:
    var = relay.var("v")
    return relay.Let(var, value, body(var))


def test_everything_has_a_name():
    x, y = _x(), _x("y")
    after = _let(relay.exp(x), lambda a: _let(a + y, lambda b: b))
    assert_becomes(ToANormalForm(), relay.exp(x) + y, after)


def test_shared_values_are_named_once():
    x = _x()
    shared = relay.exp(x)
    after = _let(relay.exp(x), lambda a: _let(a + a, lambda b: b))
    assert_becomes(ToANormalForm(), shared + shared, after)


def test_what_both_branches_use_comes_before_them():
    c, x = relay.var("c", "bool"), _x()
    shared = relay.exp(x)
    before = relay.If(c, relay.abs(shared), relay.negative(shared))
    after = _let(
        relay.exp(x),
        lambda a: _let(relay.If(c, _let(relay.abs(a), lambda b: b), _let(relay.negative(a), lambda b: b)), lambda r: r),
    )
    assert_becomes(ToANormalForm(), before, after)
    blocks = _let(relay.exp(x), lambda a: relay.If(c, relay.abs(a), relay.negative(a)))
    assert_becomes(ToBasicBlockNormalForm(), before, blocks)


def test_what_one_branch_uses_stays_in_it():
    c, x = relay.var("c", "bool"), _x()
    assert_unchanged(ToBasicBlockNormalForm(), relay.If(c, relay.abs(relay.exp(x)), x))
    found = apply(ToANormalForm(), relay.If(c, relay.abs(relay.exp(x)), x)).body
    assert isinstance(found.value, relay.If) and isinstance(found.value.true_branch, relay.Let)


def test_functions_have_blocks_of_their_own():
    x, y = _x(), _x("y")
    shared = relay.exp(x)
    inner = relay.Function([y], y + shared)
    before = relay.Tuple([relay.Call(inner, [shared]), shared])
    found = apply(ToBasicBlockNormalForm(), before).body
    assert isinstance(found, relay.Let) and found.value.op.name == "exp"
    assert_same_results(function(before), apply(ToANormalForm(), before))


def test_loops():
    x, y = _x(), _x("y")
    loop = relay.var("loop")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), loop(y + relay.const(4.0)), y)
    before = function(relay.Let(loop, relay.Function([y], body, relay.TensorType((3,), "float32")), loop(x)))
    for form in (ToANormalForm(), ToBasicBlockNormalForm(), ToGraphNormalForm()):
        assert_same_results(before, apply(form, before))
    ir.assert_structural_equal(apply(ToGraphNormalForm(), before), before)


def test_graph_form_has_no_lets():
    x = _x()
    before = _let(relay.exp(x), lambda a: _let(a + a, lambda b: b * a))
    shared = relay.exp(x)
    assert_becomes(ToGraphNormalForm(), before, (shared + shared) * shared)


def test_graph_form_keeps_what_writes():
    x = _x()
    before = _let(relay.RefCreate(x), lambda r: _let(relay.RefWrite(r, relay.exp(x)), lambda u: relay.RefRead(r)))
    assert_unchanged(ToGraphNormalForm(), before)


def test_there_and_back():
    for seed in range(5):
        graph = RandomGraph(seed)
        named = apply(ToANormalForm(), graph.function)
        assert_same_results(graph.function, named)
        back = apply(ToGraphNormalForm(), named)
        ir.assert_structural_equal(back, graph.function)


def test_long_chains():
    body = x = _x()
    for _ in range(3000):
        body = relay.abs(body)
    before = relay.Function([x], body)
    back = apply([ToANormalForm(), ToGraphNormalForm()], before)
    ir.assert_structural_equal(back, function(before))
    assert_unchanged(ToBasicBlockNormalForm(), before)
