"""Shapes of graphs: when they match, and what is done with what is found."""

from __future__ import annotations

import pytest

from loopwright import ir, relay
from loopwright.relay.dataflow_pattern import (
    DFPatternCallback,
    FunctionPattern,
    RewriteDoesNotEnd,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from loopwright.relay.op.registry import Kind

X, Y, Z = (relay.var(name, shape=(2, 3)) for name in "xyz")
ONE = relay.const(1.0)


# -- matching ----------------------------------------------------------------------------------------------------------


def test_leaves():
    assert wildcard().match(X) and wildcard().match(X + Y)
    assert is_var().match(X) and is_var("x").match(X) and not is_var("y").match(X) and not is_var().match(ONE)
    assert is_constant().match(ONE) and not is_constant().match(X)
    assert is_expr(X).match(X) and not is_expr(X).match(Y)
    assert is_expr(relay.const(1.0)).match(ONE) and is_expr(X + ONE).match(X + relay.const(1.0))


def test_calls():
    pattern = is_op("subtract")(is_var("x"), wildcard())
    assert pattern.match(X - Y) and not pattern.match(Y - X) and not pattern.match(X + Y)
    assert is_op("exp")(None).match(relay.exp(X)) and not is_op("exp")(None).match(relay.sqrt(X))
    assert not is_op("add")(wildcard()).match(X + Y)
    assert wildcard()(wildcard()).match(relay.exp(X)) and not wildcard()(wildcard()).match(X)


@pytest.mark.parametrize("op", ["add", "multiply"])
def test_operands_in_either_order(op):
    make = getattr(relay, op)
    pattern = is_op(op)(is_op("exp")(wildcard()), is_constant())
    assert pattern.match(make(relay.exp(X), ONE)) and pattern.match(make(ONE, relay.exp(X)))
    assert not pattern.match(make(ONE, X))


def test_both_orders_are_tried_deep_inside():
    x = wildcard()
    pattern = is_op("add")(is_op("add")(x, is_constant()), is_op("exp")(x))
    assert pattern.match(relay.exp(X) + (ONE + X)) and not pattern.match(relay.exp(Y) + (ONE + X))


def test_signs_between_patterns():
    assert (wildcard() + is_constant()).match(ONE + X)
    assert (wildcard() * wildcard()).match(X * Y) and (wildcard() - wildcard()).match(X - Y)
    assert (wildcard() / is_constant()).match(X / ONE) and not (wildcard() / is_constant()).match(X / Y)


def test_a_pattern_that_stands_twice_is_one_value():
    x = wildcard()
    assert (x + x).match(X + X) and not (x + x).match(X + Y)


def test_products_and_quotients_in_another_order():
    a, b, c = is_var("x"), is_var("y"), is_var("z")
    for wanted in ((a * b) / c, (a / c) * b, (b / c) * a):
        for given in ((X * Y) / Z, (Y * X) / Z, (X / Z) * Y, Y * (X / Z), X * (Y / Z)):
            assert wanted.match(given), (wanted, given)
        assert not wanted.match((X * Z) / Y)


def test_alternatives_and_options():
    either = is_op("exp")(wildcard()) | is_op("sqrt")(wildcard())
    assert either.match(relay.exp(X)) and either.match(relay.sqrt(X)) and not either.match(relay.tanh(X))
    maybe = is_op("exp")(wildcard()).optional(lambda x: is_op("sqrt")(x))
    assert maybe.match(relay.exp(X)) and maybe.match(relay.sqrt(relay.exp(X))) and not maybe.match(relay.sqrt(X))
    outer = is_op("tanh")(maybe)
    assert outer.match(relay.tanh(relay.exp(X))) and outer.match(relay.tanh(relay.sqrt(relay.exp(X))))


def test_tuples_and_fields():
    pair = relay.Tuple([X, relay.exp(Y)])
    assert is_tuple([wildcard(), is_op("exp")(wildcard())]).match(pair) and is_tuple(None).match(pair)
    assert not is_tuple([wildcard()]).match(pair) and not is_tuple(None).match(X)
    assert is_tuple_get_item(is_tuple(None), 1).match(relay.TupleGetItem(pair, 1))
    assert not is_tuple_get_item(is_tuple(None), 1).match(relay.TupleGetItem(pair, 0))
    assert is_tuple_get_item(wildcard()).match(relay.TupleGetItem(pair, 0))


def test_functions_ifs_and_lets():
    f = relay.Function([X, Y], X + Y)
    a, b = is_var(), is_var()
    assert FunctionPattern([a, b], a + b).match(f) and FunctionPattern(None, wildcard()).match(f)
    assert not FunctionPattern([a], wildcard()).match(f)
    assert FunctionPattern(None, wildcard()).has_attr({"Composite": "add"}).match(f.with_attr("Composite", "add"))
    assert FunctionPattern(None, wildcard())(wildcard(), wildcard()).match(f(X, Y))
    c = relay.var("c", "bool")
    assert is_if(is_var(), wildcard(), is_op("exp")(None)).match(relay.If(c, X, relay.exp(X)))
    assert not is_if(is_constant(), wildcard(), wildcard()).match(relay.If(c, X, X))
    v = relay.var("v")
    assert is_let(is_var("v"), is_op("exp")(None), wildcard()).match(relay.Let(v, relay.exp(X), v))


def test_attributes_of_calls_and_operators():
    total = is_op("sum")(wildcard())
    made = relay.sum(X, axis=1, keepdims=True)
    assert total.has_attr({"keepdims": True}).match(made) and not total.has_attr({"keepdims": False}).match(made)
    assert not total.has_attr({"nothing": 1}).match(made)
    assert has_attr({"keepdims": True}).match(made)
    elementwise = wildcard().has_attr({"TOpPattern": int(Kind.ELEMWISE)})(None)
    assert elementwise.match(relay.exp(X)) and not elementwise.match(relay.sum(X))


def test_types():
    assert has_type(relay.TensorType((2, 3))).match(relay.exp(X))
    assert not has_type(relay.TensorType((3, 2))).match(relay.exp(X))
    assert has_dtype("float32").match(X + Y) and not has_dtype("int8").match(X + Y)
    assert has_shape((2, 3)).match(X + Y) and not has_shape((2,)).match(X)
    assert is_op("exp")(wildcard()).has_shape((2, 3)).match(relay.exp(X))
    assert wildcard().has_dtype("float32").match(X) and wildcard().has_type(relay.TensorType((2, 3))).match(X)


def test_a_wildcard_that_is_redirected_repeats():
    more = wildcard()
    chain = is_op("exp")(more) | is_var()
    more.redirect_to(chain)
    assert chain.match(relay.exp(relay.exp(relay.exp(X)))) and not chain.match(relay.exp(relay.sqrt(X)))


UNARY = wildcard().has_attr({"TOpPattern": int(Kind.ELEMWISE)})(wildcard())


def test_dominators():
    pattern = dominates(is_op("sum")(wildcard()), UNARY, is_op("add")(wildcard(), wildcard()))
    s = relay.sum(X, axis=0, keepdims=True)
    diamond = relay.exp(s) + relay.tanh(relay.sqrt(s))
    assert pattern.match(diamond)
    assert UNARY.dominates(is_op("sum")(wildcard())).match(relay.exp(s))
    # Two sums; a way around the sum; something else on the way; no sum.
    assert not pattern.match(relay.exp(s) + relay.tanh(relay.sum(X, axis=0, keepdims=True)))
    assert not pattern.match(relay.exp(s) + relay.tanh(X))
    assert not pattern.match(relay.exp(s) + relay.tanh(relay.sqrt(s) * ONE))
    assert not pattern.match(relay.exp(X) + relay.tanh(X))


# -- partition ---------------------------------------------------------------------------------------------------------


def test_partition_makes_functions():
    pattern = is_op("exp")(is_op("add")(wildcard(), wildcard()))
    made = pattern.partition(relay.Function([X, Y], relay.sqrt(relay.exp(X + Y))), {"Composite": "exp_add"})
    call = made.body.args[0]
    assert call.op.attrs == {"Composite": "exp_add", "PartitionedFromPattern": "add_exp_"}
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3))
    inner = relay.Function([a, b], relay.exp(a + b), attrs=call.op.attrs)
    ir.assert_structural_equal(made, relay.Function([X, Y], relay.sqrt(inner(X, Y))))
    assert [param.name_hint for param in call.op.params] == ["FunctionVar_0_0", "FunctionVar_0_1"]


def test_partition_takes_places_from_the_end_and_never_twice():
    pattern = is_op("exp")(is_op("exp")(wildcard()))
    e = X
    for _ in range(5):
        e = relay.exp(e)
    made = pattern.partition(e)
    assert isinstance(made.op, relay.Function) and isinstance(made.args[0].op, relay.Function)
    assert made.args[0].args[0].op.name == "exp"


def test_what_is_used_outside_stays_outside():
    pattern = is_op("exp")(is_op("sqrt")(wildcard()))
    inner = relay.sqrt(X)
    both = relay.Tuple([relay.exp(inner), inner])
    assert pattern.partition(both) is both


def test_constants_that_the_pattern_asks_for_stay_inside():
    e = X + ONE
    inside = (wildcard() + is_constant()).partition(e)
    assert len(inside.args) == 1 and inside.op.body.args[1] is ONE
    assert len((wildcard() + wildcard()).partition(e).args) == 2


def test_one_value_given_twice_is_one_argument():
    assert len((wildcard() * wildcard()).partition(X * X).args) == 1


def test_partition_asks_check():
    pattern = is_op("sum")(wildcard())
    e = relay.sum(relay.sum(X, axis=1), axis=0)
    made = pattern.partition(e, check=lambda call: call.attrs.axis in (1, (1,)))
    assert made.op.name == "sum" and isinstance(made.args[0].op, relay.Function)


def test_names_of_tuples_in_what_a_function_computes():
    pattern = is_op("exp")(is_tuple_get_item(is_tuple([wildcard(), wildcard()]), 1))
    made = pattern.partition(relay.exp(relay.TupleGetItem(relay.Tuple([X, Y]), 1)))
    assert made.op.attrs["PartitionedFromPattern"] == "Tuple_TupleGetItem1_exp_"


# -- rewriting ---------------------------------------------------------------------------------------------------------


class ReplaceBy(DFPatternCallback):
    """Put `make(*matched)` where the pattern of these inputs matched."""

    def __init__(self, pattern, inputs, make, **options):
        super().__init__(**options)
        self.pattern, self.inputs, self.make = pattern, inputs, make

    def callback(self, pre, post, node_map):
        return self.make(*(node_map[one][0] for one in self.inputs))


def drop_double_negative(**options):
    x = wildcard()
    return ReplaceBy(is_op("negative")(is_op("negative")(x)), [x], lambda x: x, **options)


def test_rewrite_until_nothing_changes():
    e = X
    for _ in range(9):
        e = relay.negative(e)
    ir.assert_structural_equal(rewrite(drop_double_negative(), e), relay.negative(X))
    ir.assert_structural_equal(drop_double_negative().rewrite(e), relay.negative(X))
    assert rewrite(drop_double_negative(), X) is X


def test_rewrite_once():
    a, b = wildcard(), wildcard()
    swap = ReplaceBy(is_op("subtract")(a, b), [a, b], lambda a, b: b - a, rewrite_once=True)
    ir.assert_structural_equal(rewrite(swap, (X - Y) - Z), Z - (Y - X))


def test_several_callbacks_work_together():
    x = wildcard()
    to_power = ReplaceBy(is_op("exp")(x), [x], relay.negative)
    ir.assert_structural_equal(rewrite([to_power, drop_double_negative()], relay.exp(relay.exp(X))), X)


def test_post_and_node_map_have_what_was_rewritten_before():
    seen = []

    class Look(DFPatternCallback):
        def __init__(self):
            super().__init__(rewrite_once=True)
            self.x = wildcard()
            self.pattern = is_op("exp")(self.x)

        def callback(self, pre, post, node_map):
            seen.append((pre.args[0], node_map[self.x][0], post.args[0], node_map[self.pattern][0]))
            return relay.sqrt(node_map[self.x][0])

    inner = relay.exp(X)
    made = rewrite(Look(), relay.exp(inner))
    ir.assert_structural_equal(made, relay.sqrt(relay.sqrt(X)))
    pre, matched, post, root = seen[1]
    assert pre is inner and matched is post is made.args[0] and root.args[0] is matched


def test_a_rewrite_that_gives_an_equal_graph_ends():
    x = wildcard()
    again = ReplaceBy(is_op("exp")(x), [x], relay.exp)
    ir.assert_structural_equal(rewrite(again, relay.exp(X)), relay.exp(X))


def test_a_rewrite_without_end_is_told():
    x = wildcard()
    grow = ReplaceBy(is_op("exp")(x), [x], lambda x: relay.exp(x + ONE))
    with pytest.raises(RewriteDoesNotEnd, match="ReplaceBy still replaced something after 100 rounds"):
        rewrite(grow, relay.exp(X))
    double = ReplaceBy(is_op("exp")(x), [x], lambda x: relay.exp(relay.exp(x)))
    with pytest.raises(RewriteDoesNotEnd, match=r"after 14 rounds; the graph has 16385 values now"):
        rewrite(double, relay.exp(X))


def test_a_callback_must_return_an_expression():
    x = wildcard()
    with pytest.raises(TypeError, match=r"what ReplaceBy\.callback returns is an int, not an expression"):
        rewrite(ReplaceBy(is_op("exp")(x), [x], lambda x: 3), relay.exp(X))
    with pytest.raises(NotImplementedError, match="DFPatternCallback has no callback"):
        DFPatternCallback().callback(X, X, {})


def test_types_are_there_when_a_callback_needs_them():
    shapes = []

    class Shapes(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True)
            self.pattern = is_op("sum")(wildcard())

        def callback(self, pre, post, node_map):
            shapes.append(pre.args[0].checked_type.concrete_shape)
            return relay.mean(post.args[0], axis=1)

    rewrite(Shapes(), relay.Function([X], relay.sum(relay.exp(X), axis=1)))
    assert shapes == [(2, 3)]


def test_types_of_functions_of_a_module():
    g = relay.Function([X], relay.exp(X))
    mod = relay.transform.InferType()(relay.IRModule({"g": g}))
    x = wildcard()
    by_type = ReplaceBy(is_op("negative")(x.has_shape((2, 3))), [x], lambda x: x)
    call = mod.get_global_var("g")(Y)
    made = rewrite(by_type, relay.Function([Y], relay.negative(call)), mod)
    assert made.body is call


def test_rewriting_a_long_chain():
    e = X
    for _ in range(3000):
        e = relay.negative(e)
    assert rewrite(drop_double_negative(), e) is X
