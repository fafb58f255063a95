"""Questions about graphs."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay import analysis
from loopwright.relay.analysis import CallGraph, Feature

X, Y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))


def names(variables):
    return [var.name_hint for var in variables]


def test_variables():
    v = relay.var("v")
    f = relay.Function([X], relay.Let(v, X + Y, relay.exp(v)))
    assert names(analysis.free_vars(f)) == ["y"] and names(analysis.bound_vars(f)) == ["x", "v"]
    assert sorted(names(analysis.all_vars(f))) == ["v", "x", "y"]
    assert names(analysis.free_vars(Y + X + Y)) == ["y", "x"]


def test_type_variables():
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    p = relay.Var("p", relay.TupleType([a, b]))
    f = relay.Function([p], p, type_params=[a])
    assert analysis.bound_type_vars(f) == [a] and analysis.free_type_vars(f) == [b]
    assert set(map(str, analysis.all_type_vars(relay.FuncType([a], b, [a])))) == {"A", "B"}
    assert analysis.free_type_vars(relay.FuncType([a], relay.RefType(b), [a])) == [b]


def test_post_order_visit_meets_each_once():
    met = []
    shared = relay.exp(X)
    analysis.post_order_visit(shared + shared, met.append)
    assert len(met) == 3 and met[0] is X and met[1] is shared


def test_well_formed():
    v = relay.var("v")
    let = relay.Let(v, relay.exp(X), v)
    assert analysis.well_formed(let) and analysis.well_formed(X) and analysis.well_formed(relay.Function([X], let))
    assert not analysis.well_formed(relay.Tuple([let, v]))  # used outside
    assert not analysis.well_formed(relay.Let(v, relay.exp(v), v))  # used in its own value
    assert not analysis.well_formed(relay.Let(v, X, relay.Let(v, Y, v)))  # bound twice
    assert not analysis.well_formed(relay.Tuple([relay.Function([X], X), X]))
    shared = relay.exp(v)
    assert not analysis.well_formed(relay.Tuple([relay.Let(v, X, shared), shared]))
    f, p = relay.var("f"), relay.var("p", shape=())
    assert analysis.well_formed(relay.Let(f, relay.Function([p], f(p)), f(relay.const(1.0))))
    mod = relay.IRModule({"main": relay.Function([X], relay.exp(X))})
    assert analysis.well_formed(mod)
    mod["bad"] = relay.Function([X, X], X)
    assert not analysis.well_formed(mod)


def test_operators_and_element_types():
    e = relay.exp(relay.cast(relay.exp(X) + Y, "float16"))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(e))
    assert analysis.list_op_freqs(mod) == {"exp": 2, "add": 1, "cast": 1}
    assert analysis.all_dtypes(mod["main"]) == {"float32", "float16"}
    assert analysis.count_layers(relay.exp(X) + relay.exp(relay.exp(Y)), ["exp"]) == 2
    assert analysis.count_layers(mod, ["exp", "add"]) == 3 and analysis.count_layers(X, ["exp"]) == 0


def test_check_constant():
    one = relay.const(1)
    assert analysis.check_constant(one) and analysis.check_constant(relay.Tuple([one, relay.Tuple([])]))
    assert not analysis.check_constant(relay.Tuple([one, X])) and not analysis.check_constant(relay.exp(one))


def test_features():
    shared = relay.exp(X)
    assert analysis.detect_feature(relay.Function([X], shared + shared)) == {
        Feature.fVar,
        Feature.fFunction,
        Feature.fCall,
        Feature.fOp,
        Feature.fGraph,
    }
    f, p = relay.var("f"), relay.var("p", shape=())
    loop = relay.Let(f, relay.Function([p], f(p)), f(relay.const(1.0)))
    assert {Feature.fLet, Feature.fLetRec, Feature.fConstant} <= analysis.detect_feature(loop)
    mod = relay.IRModule({"main": relay.Function([X], relay.Tuple([X]))})
    assert Feature.fTuple in analysis.detect_feature(mod)
    assert {Feature.fTuple, Feature.fLetRec} <= analysis.detect_feature(loop, mod)


def call_graph():
    a, b, c, d = (relay.GlobalVar(name) for name in "abcd")
    one = [X]
    return CallGraph(
        relay.IRModule(
            {
                a: relay.Function(one, b(b(X))),
                b: relay.Function(one, c(X)),
                c: relay.Function(one, b(X)),
                d: relay.Function(one, X),
            }
        )
    )


def test_call_graph():
    graph = call_graph()
    assert graph.is_recursive("b") and graph.is_recursive("c") and not graph.is_recursive("a")
    assert graph.ref_count("b") == 2 and graph.ref_count("a") == 0 and graph.global_call_count("a") == 2
    assert {var.name: count for var, count in graph["a"].items()} == {"b": 2}
    order = [var.name for var in graph]
    assert order.index("a") < order.index("b") and sorted(order) == ["a", "b", "c", "d"]
    assert [var.name for var in graph.reachable_from("a")] == ["a", "b", "c"]
    assert "a" in graph and "z" not in graph and "call b: 2" in graph.print_var("a") and "@d" in repr(graph)
    with pytest.raises(ValueError, match="the module has no function 'z'"):
        graph.ref_count("z")


def test_fused_functions_are_listed_once():
    def kernel():
        p = relay.var("p0", shape=(2, 3))
        return relay.Function([p], relay.exp(p), attrs={"Primitive": 1})

    p = relay.var("p0", shape=(2, 3))
    other = relay.Function([p], relay.sqrt(p), attrs={"Primitive": 1})
    mod = relay.IRModule.from_expr(relay.Function([X], other(kernel()(kernel()(X)))))
    found = analysis.extract_fused_functions(mod)
    assert sorted(function.body.op.name for function in found.values()) == ["exp", "sqrt"]


def test_one_value_out_of_a_graph():
    mod = relay.IRModule.from_expr(relay.Function([X, Y], relay.exp(X) + relay.sqrt(Y)))
    first = analysis.extract_intermdeiate_expr(mod, 0)
    assert first["main"].body.op.name == "exp" and names(first["main"].params) == ["x"]
    with pytest.raises(ValueError, match="main computes 3 values, and none has the number 3"):
        analysis.extract_intermediate_expr(mod, 3)


def test_calibration_data():
    p = relay.var("p", shape=(2, 3))
    part = relay.GlobalVar("part")
    mod = relay.IRModule({part: relay.Function([p], p + p, attrs={"Compiler": "other"})})
    mod["main"] = relay.Function([X], part(relay.negative(X)))
    data = np.arange(6, dtype="float32").reshape(2, 3)
    found = analysis.get_calibration_data(mod, {"x": data})
    np.testing.assert_array_equal(found[part]["inputs"][0], -data)
    np.testing.assert_array_equal(found[part]["outputs"][0], -2 * data)
    with pytest.raises(ValueError, match="main needs x, which data does not have"):
        analysis.get_calibration_data(mod, {})


def macs(call):
    return analysis.get_total_mac_number(relay.Function(analysis.free_vars(call), relay.exp(call)))


@pytest.mark.parametrize(
    ("data", "kernel", "options", "expected"),
    [
        ((1, 4, 8, 8), (6, 4, 3, 3), {}, 6 * 6 * 6 * 4 * 9),
        ((2, 4, 8, 8), (6, 4, 3, 3), {"padding": (1, 1), "strides": (2, 2)}, 2 * 6 * 16 * 4 * 9),
        ((1, 4, 8, 8), (4, 1, 3, 3), {"groups": 4, "channels": 4, "kernel_size": (3, 3)}, 4 * 36 * 9),
        ((1, 8, 8, 4), (3, 3, 4, 6), {"data_layout": "NHWC", "kernel_layout": "HWIO"}, 6 * 6 * 6 * 4 * 9),
    ],
)
def test_multiplications_of_convolutions(data, kernel, options, expected):
    call = relay.nn.conv2d(relay.var("d", shape=data), relay.var("k", shape=kernel), **options)
    assert macs(call) == expected


def test_multiplications_of_products():
    a, b = relay.var("a", shape=(5, 7)), relay.var("b", shape=(3, 7))
    assert macs(relay.nn.dense(a, b)) == 5 * 7 * 3
    c, d = relay.var("c", shape=(2, 5, 7)), relay.var("d", shape=(2, 3, 7))
    assert macs(relay.nn.batch_matmul(c, d)) == 2 * 5 * 7 * 3
    assert macs(relay.nn.matmul(relay.var("e", shape=(7, 5)), relay.var("f", shape=(7, 3)), transpose_a=True)) == 105
    up = relay.nn.conv2d_transpose(relay.var("g", shape=(1, 4, 8, 8)), relay.var("h", shape=(4, 6, 3, 3)))
    assert macs(up) == 4 * 64 * 6 * 9
    assert macs(relay.exp(a)) == 0


def test_layers_and_transposed_weights():
    x, w = relay.var("x", shape=(5, 7)), relay.var("w", shape=(7, 3))
    layer = relay.nn.dense(x, relay.transpose(w, (1, 0)))
    assert analysis.count_layers(layer, ["nn.dense"]) == 1
    assert analysis.search_fc_transpose(layer) == ["w"]
    assert analysis.search_fc_transpose(relay.nn.dense(x, relay.var("v", shape=(3, 7)))) == []


def test_operators_between_dequantize_and_quantize():
    scale, zero = relay.const(0.5), relay.const(0)

    def dequantized(name):
        return relay.qnn.op.dequantize(relay.var(name, shape=(2, 3), dtype="int8"), scale, zero)

    whole = relay.qnn.op.quantize(relay.reshape(dequantized("a") + dequantized("b"), (6,)), scale, zero)
    broken = relay.qnn.op.quantize(dequantized("c") + X, scale, zero)
    mod = relay.IRModule.from_expr(relay.Tuple([whole, broken]))
    assert analysis.list_fake_quantized_op_freqs(mod) == {"add": 1, "reshape": 1}
