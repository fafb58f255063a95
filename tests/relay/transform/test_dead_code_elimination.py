"""DeadCodeElimination: unused lets go, impure ones stay, those used once may be inlined."""

from __future__ import annotations

from loopwright import relay
from loopwright.relay.transform import DeadCodeElimination
from tests.relay.transform.graphs import apply, assert_becomes, assert_unchanged


def _x() -> relay.Var:
    return relay.var("x", shape=(3,))


def _let(name: str, value: relay.Expr, body: object) -> relay.Let:
    var = relay.var(name)
    return relay.Let(var, value, body(var))


def test_an_unused_let_goes():
    x = _x()
    before = _let("a", relay.exp(x), lambda a: _let("b", relay.nn.relu(x), lambda b: b))
    assert_becomes(DeadCodeElimination(), before, _let("b", relay.nn.relu(x), lambda b: b))


def test_what_only_an_unused_let_uses_goes_too():
    x = _x()
    before = _let("a", relay.exp(x), lambda a: _let("b", relay.nn.relu(a), lambda b: x))
    assert_becomes(DeadCodeElimination(), before, x)


def test_a_let_that_is_used_stays():
    x = _x()
    assert_unchanged(DeadCodeElimination(), _let("a", relay.exp(x), lambda a: a + a))


def test_inline_what_is_used_once():
    x = _x()
    before = _let("a", relay.exp(x), lambda a: _let("b", relay.nn.relu(a), lambda b: b + b))
    after = _let("b", relay.nn.relu(relay.exp(x)), lambda b: b + b)
    assert_becomes(DeadCodeElimination(inline_once=True), before, after)


def test_writes_stay_unless_told_otherwise():
    x = _x()
    before = _let("r", relay.RefCreate(x), lambda r: _let("u", relay.RefWrite(r, x), lambda u: x))
    assert_unchanged(DeadCodeElimination(), before)
    assert_unchanged(DeadCodeElimination(inline_once=True), before)
    assert_becomes(DeadCodeElimination(ignore_impurity=True), before, x)


def test_calls_of_functions_that_write_stay():
    x = _x()
    y = relay.var("y", shape=(3,))

    def writes(r: relay.Var) -> relay.Expr:
        function = relay.Function([y], _let("u", relay.RefWrite(r, y), lambda u: y))
        return _let("f", function, lambda f: _let("v", f(x), lambda v: x))

    before = _let("r", relay.RefCreate(x), writes)
    assert_unchanged(DeadCodeElimination(), before)
    pure = _let("f", relay.Function([y], relay.exp(y)), lambda f: _let("v", f(x), lambda v: x))
    assert_becomes(DeadCodeElimination(), pure, x)


def test_an_unused_loop_goes():
    x, y = _x(), relay.var("y", shape=(3,))
    loop = relay.var("loop")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), loop(y + y), y)
    before = relay.Let(loop, relay.Function([y], body, relay.TensorType((3,), "float32")), x)
    assert_becomes(DeadCodeElimination(), before, x)


def test_a_loop_that_is_used_stays():
    x, y = _x(), relay.var("y", shape=(3,))
    loop = relay.var("loop")
    body = relay.If(relay.less(relay.sum(y), relay.const(9.0)), loop(relay.exp(y)), y)
    before = relay.Let(loop, relay.Function([y], body, relay.TensorType((3,), "float32")), loop(x))
    assert_unchanged(DeadCodeElimination(), before)
    assert_unchanged(DeadCodeElimination(inline_once=True), before)


def test_random_numbers_go():
    key = relay.random.threefry_key(0)
    x = _x()
    before = _let("a", relay.random.uniform(key, (3,)), lambda a: x)
    found = apply(DeadCodeElimination(), before).body
    assert found is x  # a key says which numbers are drawn: drawing them is no deed
