"""Ways to write graphs: ScopeBuilder, while_loop, copies with fields replaced, graphs as JSON."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from loopwright import ir, relay, te
from loopwright.relay.interpreter import evaluate

X = relay.var("x", shape=(2,))


# -- ScopeBuilder ------------------------------------------------------------------------------------------------------


def test_lets_and_branches():
    sb = relay.ScopeBuilder()
    y = sb.let("y", relay.exp(X))
    z = sb.let(("z", relay.TensorType((2,))), y + y)
    with sb.if_scope(relay.const(True)):
        inner = sb.let(relay.var("inner"), z + y)
        sb.ret(inner)
    with sb.else_scope():
        sb.ret(z)
    expected = relay.parse_expr(
        "free_var %x: Tensor[(2), float32]; let %y = exp(%x); let %z: Tensor[(2), float32] = add(%y, %y);"
        "if (True) { let %inner = add(%z, %y); %inner } else { %z }"
    )
    ir.assert_structural_equal(sb.get(), expected, map_free_vars=True)
    assert sb.type_of(z) == z.type_annotation and str(sb.type_of(relay.exp(X))) == "Tensor[(2), float32]"


def test_what_a_scope_builder_refuses():
    sb = relay.ScopeBuilder()
    with pytest.raises(RuntimeError, match=r"end it with ret\(value\)"):
        sb.get()
    with pytest.raises(RuntimeError, match="else_scope must follow an if_scope"), sb.else_scope():
        pass
    with sb.if_scope(relay.const(True)):
        sb.ret(X)
    with pytest.raises(RuntimeError, match="has no else_scope"):
        sb.get()
    with sb.else_scope():
        sb.ret(X)
    with pytest.raises(RuntimeError, match="a block has one value"):
        sb.ret(X)
    with pytest.raises(TypeError, match="the value of a let is an int"):
        sb.let("a", 3)
    with pytest.raises(ValueError, match="given as two, not 3"):
        sb.let(("a", None, None), X)


# -- while_loop --------------------------------------------------------------------------------------------------------


def test_a_loop_counts():
    i, total = relay.var("i", "int32"), relay.var("total", "int32")
    loop = relay.loops.while_loop(
        lambda i, total: i < relay.const(10), [i, total], lambda i, total: [i + relay.const(1), total + i]
    )
    main = relay.Function([], loop(relay.const(0), relay.const(0)))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(main))
    assert str(mod["main"].body.checked_type) == "(int32, int32)"
    assert [int(value) for value in evaluate(mod["main"], [], mod)] == [10, 45]
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)


def test_a_loop_needs_variables_and_as_many_values():
    i = relay.var("i", "int32")
    with pytest.raises(ValueError, match="is no variable"):
        relay.loops.while_loop(lambda i: i, [relay.const(1)], lambda i: [i])
    with pytest.raises(ValueError, match="there are 1 variables, and the body returns 2 values"):
        relay.loops.while_loop(lambda i: i < i, [i], lambda i: [i, i])


# -- copies ------------------------------------------------------------------------------------------------------------


def test_copies_with_fields_replaced():
    f = relay.Function([X], relay.exp(X), attrs={"k": 1})
    assert relay.FunctionWithFields(f) is f and relay.FunctionWithFields(f, [X], f.body) is f
    changed = relay.FunctionWithFields(f, body=X)
    assert changed.body is X and changed.attrs == f.attrs
    call = relay.sum(X, axis=0)
    assert relay.CallWithFields(call, args=[X]) is call
    assert relay.CallWithFields(call, op=relay.op.get("exp")).attrs.op_name == "exp"
    assert relay.CallWithFields(call, args=[relay.exp(X)]).attrs is call.attrs
    pair = relay.Tuple([X, X])
    assert relay.TupleWithFields(pair, [X, X]) is pair and len(relay.TupleWithFields(pair, [X])) == 1
    get = relay.TupleGetItem(pair, 0)
    assert relay.TupleGetItemWithFields(get, index=0) is get and relay.TupleGetItemWithFields(get, index=1).index == 1
    v = relay.var("v")
    let = relay.Let(v, X, v)
    assert relay.LetWithFields(let) is let and relay.LetWithFields(let, body=X).body is X
    branch = relay.If(relay.const(True), X, X)
    assert relay.IfWithFields(branch, true_branch=X) is branch
    assert relay.IfWithFields(branch, false_branch=v).false_branch is v
    assert relay.VarWithFields(X, "x") is X and relay.VarWithFields(X, "y").type_annotation is X.type_annotation
    one = relay.const(1)
    assert relay.ConstantWithFields(one) is one and relay.ConstantWithFields(one, np.zeros(2)).data.shape == (2,)
    ref = relay.RefCreate(X)
    assert relay.RefCreateWithFields(ref, X) is ref and relay.RefCreateWithFields(ref, v).value is v
    read, write = relay.RefRead(ref), relay.RefWrite(ref, X)
    assert relay.RefReadWithFields(read) is read and relay.RefReadWithFields(read, v).ref is v
    assert relay.RefWriteWithFields(write) is write and relay.RefWriteWithFields(write, value=v).value is v
    placed = relay.CallWithFields(call, virtual_device="cpu", span="layer1")
    assert placed.virtual_device_ == "cpu" and placed.span == "layer1"


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_modules_as_json_and_pickles():
    n = te.var("n")
    p = relay.var("p", shape=(n, n * 2, relay.AnyDim()))
    r = relay.var("r", relay.RefType(relay.TensorType((2,), "int8")))
    f = relay.Function([p, r], relay.Tuple([relay.exp(p), relay.RefRead(r), relay.const(np.ones((2, 0), "float16"))]))
    g = relay.GlobalVar("g")
    functions = {"main": relay.Function([p, r], g(p, r)), g: f.with_attr("Primitive", 1)}
    mod = relay.IRModule(functions, attrs={"a": [1, None]})
    for loaded in (ir.load_json(ir.save_json(mod)), pickle.loads(pickle.dumps(mod))):
        ir.assert_structural_equal(loaded, mod)
        assert loaded["main"].body.op is loaded.get_global_var("g")
        assert loaded["g"].params[0].name_hint == "p"


def test_every_kind_of_expression_as_json():
    v, c = relay.var("v"), relay.var("c", "bool")
    a = relay.TypeVar("A")
    e = relay.Function(
        [X, c],
        relay.Let(v, relay.RefCreate(relay.sum(X, axis=0)), relay.If(c, relay.TupleGetItem(relay.Tuple([X]), 0), X)),
        relay.FuncType([a], relay.TupleType([]), [a]),
        [a],
        {"k": relay.IncompleteType()},
    )
    ir.assert_structural_equal(ir.load_json(ir.save_json(e)), e)
    write = relay.RefWrite(relay.RefCreate(relay.const(1)), relay.const(2))
    ir.assert_structural_equal(ir.load_json(ir.save_json(write)), write)


def test_damaged_json_is_told():
    with pytest.raises(ValueError, match="the program is damaged"):
        ir.load_json('{"loopwright":1,"root":{"@":0},"nodes":[["relay.Nothing",{}]]}')
    with pytest.raises(ValueError, match="the program is damaged"):
        ir.load_json('{"loopwright":1,"root":{"@":0},"nodes":[["other.Call",{}]]}')


def test_parameters_are_saved_as_the_runtime_does():
    saved = relay.save_param_dict({"w": np.ones(3, "float32")})
    np.testing.assert_array_equal(relay.load_param_dict(saved)["w"].numpy(), np.ones(3))


def test_operators_work_before_anything_else_of_relay_is_used():
    code = "from loopwright import relay; x = relay.var('x', shape=(2,)); print((x + x).op.name, (-x).op.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["add", "negative"]
