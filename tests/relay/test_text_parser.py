"""Text as graphs: what is written comes back, and what is wrong is said with its place."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright import ir, relay, te
from loopwright.relay.op.registry import REQUIRED, Op, load_all
from loopwright.relay.text.errors import (
    BadCall,
    BadMetadata,
    BadText,
    BadType,
    DefinedTwice,
    UnboundName,
    UnknownVersion,
    UnknownWord,
)


def round_trip(expression):
    back = relay.parse_expr(expression.astext())
    ir.assert_structural_equal(back, expression, map_free_vars=True)
    assert back.astext() == expression.astext()
    assert ir.structural_hash(back, True) == ir.structural_hash(expression, True)
    return back


def test_a_module_comes_back():
    x, w = relay.var("x", shape=(2, 3)), relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    f = relay.Function([x], relay.add(relay.exp(x), w), relay.TensorType((2, 3)))
    g = relay.GlobalVar("g")
    mod = relay.IRModule({"main": relay.Function([x], g(x)), g: f}).with_attr("seed", 3)
    back = relay.parse(mod.astext())
    ir.assert_structural_equal(back, mod)
    assert back.attrs == {"seed": 3}
    assert str(back["main"].body.checked_type) == "Tensor[(2, 3), float32]"
    np.testing.assert_array_equal(back["g"].body.args[1].data, w.data)


def test_fromtext_and_a_module_to_begin_with():
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @f(%x: float32) { exp(%x) }')
    more = relay.parse("def @main(%x: float32) { @f(%x) }", init_module=mod)
    assert [var.name for var in more] == ["f", "main"] and len(mod) == 1
    assert more["main"].body.op is mod.get_global_var("f")


def test_a_table_of_constants_from_outside():
    made = relay.const(np.ones((2, 2), "float32"))
    assert relay.parse_expr("meta[relay.Constant][0]", {"relay.Constant": [made]}) is made


def load_operators():
    load_all()
    return sorted(Op.registry)


@pytest.mark.parametrize("start", "abcdefghijklmnopqrstuvwxyz")
def test_a_call_of_every_operator_comes_back(start):
    for name in load_operators():
        attributes = Op.registry[name].attributes
        if not name.startswith(start):
            continue
        given = {field: 1 for field, default in attributes.fields.items() if default is REQUIRED}
        args = [relay.var(f"a{k}", shape=(2, 3)) for k in range(1 if attributes.variadic else len(attributes.inputs))]
        try:
            call = relay.Call(Op.registry[name], args, attributes(**given))
        except (TypeError, ValueError, AttributeError):
            continue  # its attributes want more than a number
        round_trip(call)
        loaded = ir.load_json(ir.save_json(call))
        ir.assert_structural_equal(loaded, call, map_free_vars=True)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_come_back(seed):
    round_trip(random_function(random.Random(seed)))


def random_function(rng, depth=0):
    n = te.var("n")
    shape = [(n, 2), (3,), (n * 2, relay.AnyDim())][rng.randrange(3)]
    params = [relay.var(rng.choice(["x", "y", "a b"]), shape=shape) for _ in range(rng.randrange(1, 4))]
    return relay.Function(params, random_body(rng, list(params), depth), attrs={"k": (1, "two", None, 0.5, True, (n,))})


def random_body(rng, values, depth):
    lets = []
    for _ in range(rng.randrange(1, 8)):
        pick = rng.randrange(9)
        if pick <= 2:
            made = relay.add(rng.choice(values), rng.choice(values))
        elif pick == 3:
            made = relay.TupleGetItem(relay.Tuple([rng.choice(values), rng.choice(values)]), rng.randrange(2))
        elif pick == 4:
            made = relay.RefRead(relay.RefCreate(rng.choice(values)))
        elif pick == 5:
            made = relay.const(np.asarray(rng.choice([1, 2.5, [1.0, 2.0]]), "float32"))
        elif pick == 6 and depth < 3:
            inner = list(values)
            made = relay.If(
                relay.const(True), random_body(rng, inner, depth + 1), random_body(rng, list(values), depth + 1)
            )
        elif pick == 7 and depth < 2:
            made = random_function(rng, depth + 1)(rng.choice(values))
        else:
            var = relay.var("v")
            lets.append((var, relay.exp(rng.choice(values))))
            # What is made so far does not see it, what comes later does.
            inner = random_body(rng, [*values, var], depth + 1) if depth < 3 else var
            made = relay.Let(*lets.pop(), inner)
        values.append(made)
    return relay.Tuple(rng.sample(values, min(3, len(values))))


def test_ten_thousand_calls_and_lets():
    x = relay.var("x", shape=(2,))
    value = x
    for _ in range(10_000):
        value = relay.exp(value)
    f = relay.Function([x], value)
    back = relay.parse_expr(f.astext())
    ir.assert_structural_equal(back, f)
    assert not ir.structural_equal(back, relay.Function([x], relay.exp(value)))
    ir.assert_structural_equal(ir.load_json(ir.save_json(f)), f)
    names = [relay.var("v") for _ in range(3_000)]
    chain = names[-1]
    for k in reversed(range(3_000)):
        chain = relay.Let(names[k], relay.exp(names[k - 1] if k else x), chain)
    f = relay.Function([x], chain)
    ir.assert_structural_equal(relay.parse_expr(f.astext()), f)


def test_operators_between_values_and_calls_inside_calls():
    e = relay.parse_expr("fn (%x: float32, %y: float32) { exp(%x + %y * -%x) < 2f - 1f }")
    x, y = e.params
    ir.assert_structural_equal(
        e,
        relay.Function([x, y], relay.less(relay.exp(x + y * relay.negative(x)), relay.const(2.0) - relay.const(1.0))),
    )


def test_comments_trailing_commas_and_nested_projections():
    e = relay.parse_expr("// first\n((1, (2, 3,)),).0.1.0 /* a\n comment */")
    assert isinstance(e, relay.TupleGetItem) and e.tuple_value.tuple_value.index == 0


def test_a_statement_is_a_let_without_a_name():
    e = relay.parse_expr("fn (%r: ref(float32)) { ref_write(%r, 1f); ref_read(%r) }")
    assert isinstance(e.body, relay.Let) and e.body.var.name_hint == "_"


def test_a_function_that_calls_itself():
    e = relay.parse_expr("let %f = fn (%x: float32) -> float32 { %f(%x) }; %f(1f)")
    assert e.value.body.op is e.var
    round_trip(e)


def test_else_if():
    e = relay.parse_expr("if (True) { 1 } else if (False) { 2 } else { 3 }")
    assert isinstance(e.false_branch, relay.If)


def test_types():
    e = relay.parse_expr(
        "fn [A](%f: fn (A, float32) -> (A,), %r: ref(int8), %t: Tensor[(n, n // 2, ?), bool], %u) -> A { %u }"
    )
    f, r, t, u = e.params
    assert str(f.type_annotation) == "fn (A, float32) -> (A,)"
    assert f.type_annotation.arg_types[0] is e.type_params[0] is e.ret_type
    assert str(r.type_annotation) == "ref(int8)" and u.type_annotation is None
    assert str(t.type_annotation) == "Tensor[(n, n // 2, ?), bool]"
    round_trip(e)


def test_a_size_is_one_variable_within_a_function():
    mod = relay.parse(
        "def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x }\n"
        "def @g(%x: Tensor[(n: int64), float32]) { %x }"
    )
    x, y = mod["f"].params
    assert x.type_annotation.shape[0] is y.type_annotation.shape[0]
    other = mod["g"].params[0].type_annotation.shape[0]
    assert other is not x.type_annotation.shape[0] and other.dtype == "int64"


def test_sizes_in_attributes():
    n = te.var("n")
    x = relay.var("x", shape=(n, 4))
    back = round_trip(relay.Function([x], relay.reshape(x, (n * 2, (n + 1) // 2, -1)), attrs={"size": n // 2}))
    size = back.params[0].type_annotation.shape[0]
    assert back.body.attrs.newshape[0].a is size


@pytest.mark.parametrize(
    ("source", "error", "message", "place"),
    [
        ("(1, 2", BadText, "',' is needed between the fields of a tuple, and the text ends there", "1:6"),
        ("fn (%data: float32) {\n  %dat }", UnboundName, "did you mean %data?", "2:3"),
        ("%0 = exp(1f); %1", UnboundName, "%1 is not defined here", "1:15"),
        ("exq(1f)", UnknownWord, "no operator is called 'exq'", "1:1"),
        ("exp(1f, 2f)", BadCall, "exp takes 1 inputs (data), and gets 2", "1:1"),
        ("exp(1f, axis=2)", BadCall, "there is no parameter axis", "1:1"),
        ("ref_read(1, 2)", BadCall, "ref_read takes 1 value, and gets 2", "1:1"),
        ("fn (%x: flaot32) { %x }", BadType, "did you mean float32?", "1:9"),
        ("fn (%x: Tensor[(3) float32]) { %x }", BadText, "needed between the sizes and the element type", "1:20"),
        ("meta[relay.Constant][3]", BadMetadata, "the text has no metadata meta[relay.Constant][3]", "1:1"),
        ("fn (%x: int8, %x: int8) { %x }", DefinedTwice, "parameter %x is defined twice", "1:15"),
        ("1 2", BadText, "the expression should end, and '2' stands there", "1:3"),
        ("1q", BadText, "", "1:1"),
        ("300i8", BadText, "300i8 is no int8", "1:1"),
        ("1i7", BadText, "no type of numbers is written 'i7'", "1:1"),
        ("let %x = 1 2", BadText, "';' is needed after the value of a let", "1:12"),
        ("if (True) { 1 }", BadText, "'else' is needed", "1:16"),
        ("$", BadText, "'$' has no place", "1:1"),
        ("", BadText, "a value is needed, and the text ends there", "1:1"),
        ('%"a\\q"', BadText, "badly quoted", "1:1"),
        ("sum(1f, axis=q())", BadText, "'q' is no function of sizes", "1:14"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(source, error, message, place):
    with pytest.raises(error) as caught:
        relay.parse_expr(source)
    assert message in str(caught.value)
    assert f"at from_string:{place}\n" in str(caught.value) + "\n"


def test_errors_of_modules():
    with pytest.raises(UnknownVersion, match=r"of version '9.0'"):
        relay.parse('#[version = "9.0"] def @main() { 1 }')
    with pytest.raises(DefinedTwice, match="@f is defined twice"):
        relay.parse("def @f() { 1 } def @f() { 2 }")
    with pytest.raises(UnboundName, match=r"(?s)@g is not defined.*model.txt:1:14.*\^\^"):
        relay.parse("def @main() {@g() }", "model.txt")
    with pytest.raises(BadText, match="def is needed, and 'dfe' stands there"):
        relay.parse("dfe @main() { 1 }")
    with pytest.raises(BadMetadata, match="the metadata is damaged"):
        relay.parse("def @main() { 1 }\n#[metadata]\n{")
    with pytest.raises(BadMetadata, match="no kind 'x' of metadata"):
        relay.parse('def @main() { 1 }\n#[metadata]\n{"x": []}')


def test_the_caret_stands_under_the_word():
    with pytest.raises(BadType) as caught:
        relay.parse_expr("fn (%x: flaot32) { %x }")
    lines = str(caught.value).splitlines()
    assert lines[2:4] == ["  > fn (%x: flaot32) { %x }", "            ^^^^^^^"]


def test_comments_hold_comments_and_end():
    assert relay.parse_expr("1 /* two /* three */ */").data == 1
    with pytest.raises(BadText, match="a comment that begins here does not end"):
        relay.parse_expr("1 /* /* */")


def test_signs_before_numbers_and_the_order_of_comparisons():
    assert relay.parse_expr("--10").data == 10 and relay.parse_expr("3f32").checked_type.dtype == "float32"
    one = relay.parse_expr("1 == 1 < 2 + 3")
    assert one.op.name == "equal" and one.args[1].op.name == "less"


def test_an_extern_type_has_no_cases():
    mod = relay.fromtext('#[version = "0.0.5"]\nextern type Storage[A]')
    (header,) = mod.get_global_type_vars()
    assert header.name == "Storage" and not mod[header].constructors
    assert "type Storage" in mod.astext()
