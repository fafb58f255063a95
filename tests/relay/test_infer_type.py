"""Type inference: what flows forward, what flows back, and what is refused."""

from __future__ import annotations

import pytest

from loopwright import relay, te
from loopwright.relay.errors import DiagnosticError, NotInferred
from loopwright.relay.infer_type import Inference, infer
from loopwright.relay.types import same_type, type_text


def of(expression) -> str:
    return type_text(infer(expression))


def test_types_flow_forward():
    x = relay.var("x", shape=(3, 1))
    y = relay.var("y", shape=(4,))
    assert of(x + y) == "Tensor[(3, 4), float32]"
    assert of(relay.Tuple([x, y])) == "(Tensor[(3, 1), float32], Tensor[(4), float32])"
    assert of(relay.TupleGetItem(relay.Tuple([x, y]), 1)) == "Tensor[(4), float32]"
    assert of(relay.Function([x, y], x + y)) == (
        "fn (Tensor[(3, 1), float32], Tensor[(4), float32]) -> Tensor[(3, 4), float32]"
    )


def test_sizes_that_are_not_known():
    n = te.size_var("n")
    x = relay.var("x", relay.TensorType((n, relay.AnyDim(), 3), "float32"))
    y = relay.var("y", relay.TensorType((relay.AnyDim(), 5, 1), "float32"))
    assert of(x + y) == "Tensor[(n, 5, 3), float32]" or of(x + y) == "Tensor[(?, 5, 3), float32]"
    assert of(relay.nn.relu(x)) == "Tensor[(n, ?, 3), float32]"


def test_a_weight_without_a_type_gets_it_from_its_operator():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w")
    conv = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=5, padding=(1, 1))
    function = relay.Function([x, w], conv)
    assert of(function).endswith("-> Tensor[(1, 5, 8, 8), float32]")
    assert type_text(w.checked_type) == "Tensor[(5, 3, 3, 3), float32]"


def test_a_loop_gets_the_type_of_its_end():
    i = relay.var("i", shape=(), dtype="int32")
    loop = relay.loops.while_loop(lambda i: i < relay.const(3), [i], lambda i: [i + relay.const(1)])
    assert of(loop(relay.const(0))) == "(int32,)"


def test_an_inference_that_is_kept_answers_for_what_is_new():
    kept = Inference()
    x = relay.var("x", shape=(2,))
    first = relay.exp(x)
    assert type_text(kept.visit(first)) == "Tensor[(2), float32]"
    assert type_text(kept.visit(relay.Tuple([first, first]))) == "(Tensor[(2), float32], Tensor[(2), float32])"


def test_a_long_chain_does_not_nest():
    value = relay.var("x", shape=(2,))
    for _ in range(20_000):
        value = relay.exp(value)
    assert of(value) == "Tensor[(2), float32]"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, y: x + y, r"add is unable to show the following types match: shapes \(3, 4\) and \(3, 5\)"),
        (lambda x, y: x + relay.cast(x, "int32"), "data types float32 and int32 do not match in BroadcastRel"),
        (lambda x, y: relay.TupleGetItem(x, 0), "which is no tuple"),
        (lambda x, y: relay.TupleGetItem(relay.Tuple([x]), 2), "field 2 was asked of a tuple of 1"),
        (lambda x, y: relay.If(x, x, x), r"a condition is one bool, and not Tensor\[\(3, 4\), float32\]"),
        (lambda x, y: relay.Call(x, [y]), "which is no function"),
        (lambda x, y: relay.Call(relay.Function([relay.var("a", shape=(1,))], x), [y]), "is wanted"),
        (lambda x, y: relay.Call(relay.Function([], x), [y]), "1 arguments are given to a function of 0"),
        (lambda x, y: relay.If(relay.const(True), x, relay.Tuple([y])), "the branches of an if are unable"),
        (lambda x, y: relay.Function([x], x, relay.TensorType((9,))), "is declared to return"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(DiagnosticError, match=message):
        infer(make(relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 5))))


def test_a_type_before_inference():
    with pytest.raises(NotInferred, match="has not been inferred"):
        relay.var("x", shape=(2,)).checked_type


def test_an_unknown_size_keeps_its_name_of_tvm():
    assert relay.Any is relay.AnyDim
    with pytest.warns(DeprecationWarning, match="relay.types.Any is deprecated: write AnyDim"):
        assert relay.ty.Any is relay.AnyDim


def test_same_type():
    assert same_type(relay.TensorType((1, relay.AnyDim())), relay.TensorType((1, relay.AnyDim())))
    assert not same_type(relay.TensorType((1, 2)), relay.TensorType((1, 2), "int32"))
    assert not same_type(relay.TensorType((1, 2)), relay.TensorType((1, relay.AnyDim())))


def test_a_function_of_which_nothing_is_said_learns_from_its_first_call():
    f, v = relay.var("f"), relay.var("v")
    let = relay.Let(f, relay.Function([v], v), f(relay.const(2)))
    assert relay.transform.InferTypeLocal(let) == relay.scalar_type("int32") == v.checked_type
    again, w = relay.var("g"), relay.var("w", shape=(1,))
    endless = relay.Let(again, relay.Function([w], again(w)), again(w))
    with pytest.raises(TypeError, match="the type of what g returns cannot be found: it never returns"):
        relay.transform.InferTypeLocal(endless)


def test_a_parameter_that_is_called_is_a_function():
    x, f = relay.var("x", "int32"), relay.var("f")
    of = relay.transform.InferTypeLocal(relay.Function([x, f], f(x), relay.scalar_type("int32")))
    assert str(of) == "fn (int32, fn (int32) -> int32) -> int32"


def test_a_parameter_that_is_written_is_a_cell():
    r, x = relay.var("r"), relay.var("x", shape=(2,))
    of = relay.transform.InferTypeLocal(relay.Function([r, x], relay.RefWrite(r, x)))
    assert str(of) == "fn (ref(Tensor[(2), float32]), Tensor[(2), float32]) -> ()"
