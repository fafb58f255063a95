"""When two graphs are the same."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import ir, relay, te

X = relay.var("x", shape=(2, 3))
Y = relay.var("y", shape=(2, 3))


def same(one, other, map_free_vars=False) -> bool:
    """Both directions agree, and equal graphs have equal hashes."""
    found = ir.structural_equal(one, other, map_free_vars)
    assert found == ir.structural_equal(other, one, map_free_vars)
    if found:
        assert ir.structural_hash(one, map_free_vars) == ir.structural_hash(other, map_free_vars)
    return found


def test_names_of_variables_do_not_matter_but_their_types_do():
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 4))
    f = relay.Function([X], relay.exp(X))
    assert same(f, relay.Function([a], relay.exp(a)))
    assert not same(f, relay.Function([b], relay.exp(b)))
    untyped = relay.var("u")
    assert not same(f, relay.Function([untyped], relay.exp(untyped)))


def test_which_variable_is_used_where_matters():
    assert not same(relay.Function([X, Y], X - Y), relay.Function([X, Y], Y - X))
    assert same(relay.Function([X, Y], X - Y), relay.Function([Y, X], Y - X))


def test_free_variables_are_themselves_unless_they_are_mapped():
    assert same(relay.exp(X), relay.exp(X))
    assert not same(relay.exp(X), relay.exp(Y))
    assert same(relay.exp(X), relay.exp(Y), map_free_vars=True)
    assert not same(X - X, X - Y, map_free_vars=True)


def test_a_call_made_twice_is_not_a_call_used_twice():
    once = relay.exp(X)
    assert not same(relay.Function([X], once + once), relay.Function([X], relay.exp(X) + relay.exp(X)))


def test_tuples_projections_and_constants_are_compared_by_value():
    pair = relay.Tuple([X, Y])
    shared = relay.TupleGetItem(pair, 0)
    one = relay.Function([X, Y], shared + shared)
    other = relay.Function([X, Y], relay.TupleGetItem(pair, 0) + relay.TupleGetItem(relay.Tuple([X, Y]), 0))
    assert same(one, other)
    assert same(X + relay.const(1.0), X + relay.const(1.0))


def test_attributes_by_value_and_type():
    assert same(relay.sum(X, axis=1), relay.sum(X, axis=1))
    assert not same(relay.sum(X, axis=1), relay.sum(X, axis=0))
    assert not same(relay.sum(X, axis=1, keepdims=True), relay.sum(X, axis=1))
    f = relay.Function([X], X)
    assert not same(f.with_attr("k", 1), f.with_attr("k", True))
    assert not same(f.with_attr("k", 1), f.with_attr("k", 1.0))
    assert not same(f.with_attr("k", 1), f)
    assert same(f.with_attr("k", [1, 2]), f.with_attr("k", (1, 2)))
    assert same(f.with_attr("k", float("nan")), f.with_attr("k", float("nan")))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bfloat16"])
def test_constants_by_their_bytes(dtype):
    made = relay.const([0, 1, 2], dtype)
    assert same(made, relay.const([0, 1, 2], dtype))
    assert not same(made, relay.const([0, 1, 3], dtype))
    assert not same(made, relay.const([[0, 1, 2]], dtype))
    assert same(made, relay.Constant(np.asarray(relay.const([0, 9, 1, 9, 2, 9], dtype).data)[::2]))


def test_constants_of_other_types_and_signs_differ():
    assert not same(relay.const(1, "int32"), relay.const(1, "int64"))
    assert not same(relay.const(0.0), relay.const(-0.0))
    assert same(relay.const(np.zeros((0, 3), "float32")), relay.const(np.zeros((0, 3), "float32")))


def test_let_if_and_refs():
    def graph(value, branch):
        v = relay.var("v")
        choice = relay.If(relay.const(branch), v, relay.RefRead(relay.RefCreate(v)))
        return relay.Function([X], relay.Let(v, value(X), choice))

    assert same(graph(relay.exp, True), graph(relay.exp, True))
    assert not same(graph(relay.exp, True), graph(relay.sqrt, True))
    assert not same(graph(relay.exp, True), graph(relay.exp, False))


def test_sizes_correspond_one_to_one():
    def of(*shape):
        x = relay.var("x", shape=shape)
        return relay.Function([x], relay.exp(x))

    n, m, k, q = te.var("n"), te.var("m"), te.size_var("k"), te.var("q", "int64")
    assert same(of(n, m), of(k, n))
    assert not same(of(n, m), of(k, k))
    assert not same(of(n), of(q))
    assert same(of(n, n * 2), of(m, m * 2)) and not same(of(n, n * 2), of(m, m * 3))
    assert same(of(relay.AnyDim()), of(relay.AnyDim())) and not same(of(relay.AnyDim()), of(n))


def test_types_are_compared_too():
    t = relay.TensorType((2, 3))
    assert same(t, relay.TensorType((2, 3), "float32")) and not same(t, relay.TensorType((2, 3), "int8"))
    assert same(relay.TupleType([t, t]), relay.TupleType([t, relay.TensorType((2, 3))]))
    assert not same(relay.FuncType([t], t), relay.FuncType([t, t], t))
    assert same(relay.RefType(t), relay.RefType(t))
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    assert same(relay.FuncType([a], a, [a]), relay.FuncType([b], b, [b]))
    assert not same(relay.FuncType([a, b], a, [a, b]), relay.FuncType([a, b], b, [a, b]))


def test_result_types_matter_where_they_are_declared():
    t = relay.TensorType((2, 3))
    assert not same(relay.Function([X], X, t), relay.Function([X], X))
    assert not same(relay.Function([X], X, t), relay.Function([X], X, relay.TensorType((2, relay.AnyDim()))))


def test_inferred_types_do_not_matter():
    f = relay.Function([X], relay.exp(X))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(f))
    a = relay.var("a", shape=(2, 3))
    assert same(mod, relay.IRModule.from_expr(relay.Function([a], relay.exp(a))))


def test_modules():
    f, g = relay.Function([X], relay.exp(X)), relay.Function([X], relay.sqrt(X))
    assert same(relay.IRModule({"main": f, "g": g}), relay.IRModule({"g": g, "main": f}))
    assert not same(relay.IRModule({"main": f}), relay.IRModule({"main": g}))
    assert not same(relay.IRModule({"main": f}), relay.IRModule({"f": f}))
    call_f, call_g = relay.GlobalVar("f")(X), relay.GlobalVar("g")(X)
    assert not same(call_f, call_g) and same(call_f, relay.GlobalVar("f")(X))


def test_the_first_difference_is_named_and_shown():
    one = relay.IRModule.from_expr(relay.Function([X], relay.sqrt(relay.sum(X, axis=1))))
    other = relay.IRModule.from_expr(relay.Function([X], relay.sqrt(relay.sum(X, axis=0))))
    with pytest.raises(AssertionError) as caught:
        ir.assert_structural_equal(one, other)
    message = str(caught.value)
    assert message.startswith('the programs differ at ["main"].body.args[0]: sum(axis=(1,)')
    assert "  %0 = sum(%x, axis=[1]);" in message and "^^^" in message
    assert str(ir.get_first_structural_mismatch(X - Y, Y - X)[0]) == "<root>.args[0]"


def test_a_graph_is_no_loop_program():
    a = te.placeholder((2,), name="A")
    func = te.create_prim_func([a, te.compute((2,), lambda i: a[i] + 1.0)])
    assert not ir.structural_equal(relay.IRModule({"main": relay.Function([X], X)}), ir.IRModule({"main": func}))


def test_a_type_that_was_inferred_is_as_good_as_one_that_was_declared():
    x, declared, learned = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4)), relay.var("w")
    one = relay.Function([x, declared], relay.nn.dense(x, declared, units=3))
    other = relay.Function([x, learned], relay.nn.dense(x, learned, units=3))
    assert not ir.structural_equal(one, other)
    relay.transform.InferType()(relay.IRModule.from_expr(other))
    assert ir.structural_equal(one, other)
