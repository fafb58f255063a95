"""The walk over a model: known values, sizes with names, functions, spans, parameters."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from loopwright import relay
from loopwright.frontends import from_onnx
from loopwright.frontends.errors import ValueNeeded
from loopwright.frontends.onnx import converter
from loopwright.frontends.onnx.errors import BadNode, ShapeNeeded, UnknownInput
from loopwright.frontends.op_errors import OpAttributeInvalid, OpAttributeRequired, OpNotImplemented
from loopwright.relay.analysis import post_order_visit
from tests.frontends.onnx.onnx_models import imported, model, random, run


def operators(mod) -> list[str]:
    found: list[str] = []
    post_order_visit(mod["main"], lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None)
    return found


def test_inputs_keep_their_names_and_types():
    mod, params = from_onnx(model("(float[2, 3] x, int64[4] k) => (float[2, 3] y) { y = Relu(x) }"))
    assert [p.name_hint for p in mod["main"].params] == ["x", "k"]
    assert str(mod["main"].params[0].type_annotation) == "Tensor[(2, 3), float32]"
    assert str(mod["main"].params[1].type_annotation) == "Tensor[(4), int64]"
    assert params == {}


def test_a_named_dimension_is_one_size_wherever_it_occurs():
    mod, _ = from_onnx(model("(float[n, 3] x, float[n, 3] z) => (float[n, 3] y) { y = Add(x, z) }"))
    x, z = mod["main"].params
    assert x.type_annotation.shape[0] is z.type_annotation.shape[0]
    assert x.type_annotation.shape[0].name == "n"
    assert mod["main"].body.checked_type.shape[0] is x.type_annotation.shape[0]


def test_an_unnamed_dimension_is_a_size_of_its_own():
    mod, _ = from_onnx(model("(float[?, 3] x) => (float[?, 3] y) { y = Relu(x) }"))
    assert mod["main"].params[0].type_annotation.shape[0].name == "x_d0"


def test_shape_arithmetic_of_numbers_leaves_one_reshape():
    graph = model(
        """(float[2, 3, 4] x) => (float[2, 12] y) <int64[1] zero = {0}, int64[1] rest = {-1}> {
            s = Shape(x)
            first = Gather(s, zero)
            shape = Concat<axis = 0>(first, rest)
            y = Reshape(x, shape)
        }"""
    )
    mod, _ = from_onnx(graph)
    assert operators(mod) == ["reshape"]
    assert str(mod["main"].body.checked_type) == "Tensor[(2, 12), float32]"


def test_shape_arithmetic_of_names_stays_a_formula():
    graph = model(
        """(float[n, 3, 4] x) => (float[m, 6] y)
        <int64 zero = {0}, int64 two = {2}, int64[1] six = {6}, int64[1] ax = {0}> {
            s = Shape(x)
            n = Gather(s, zero)
            doubled = Mul(n, two)
            column = Unsqueeze(doubled, ax)
            shape = Concat<axis = 0>(column, six)
            y = Reshape(x, shape)
        }"""
    )
    mod, _ = from_onnx(graph)
    assert operators(mod) == ["reshape"]
    assert str(mod["main"].body.checked_type) == "Tensor[(n * 2, 6), float32]"
    x = random(5, 3, 4)
    np.testing.assert_array_equal(run(graph, x), x.reshape(10, 6))


def test_the_size_that_is_left_may_have_a_name():
    graph = model("(float[n, 3, 4] x) => (float[k, 4] y) <int64[2] s = {-1, 4}> { y = Reshape(x, s) }")
    mod, _ = from_onnx(graph)
    assert str(mod["main"].body.checked_type.shape[0]) == "n * 3"


def test_constants_are_computed_at_once():
    graph = model(
        """(float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> {
            c = Mul(a, b)
            d = Exp(c)
            y = Add(x, d)
        }"""
    )
    mod, _ = from_onnx(graph)
    assert operators(mod) == ["add"]
    np.testing.assert_allclose(mod["main"].body.args[1].data, np.exp([3, 8]), rtol=1e-6)


def test_a_large_result_of_small_constants_is_left_to_run():
    graph = model("() => (float[99999999] y) <int64[1] s = {99999999}> { y = ConstantOfShape(s) }")
    assert operators(from_onnx(graph)[0]) == ["full"]


def test_weights_as_parameters():
    graph = model(
        "(float[2] x) => (float[1, 2] y) <float[2] w = {1, 2}, int64[2] s = {1, 2}> { t = Add(x, w) y = Reshape(t, s) }"
    )
    mod, params = from_onnx(graph, freeze_params=False)
    assert [p.name_hint for p in mod["main"].params] == ["x", "w", "s"]
    assert sorted(params) == ["s", "w"]
    np.testing.assert_array_equal(params["w"].numpy(), [1, 2])
    assert str(mod["main"].body.checked_type) == "Tensor[(1, 2), float32]"


def test_shape_puts_numbers_in_the_place_of_names():
    graph = model("(float[n, c] x) => (float[n, c] y) { y = Relu(x) }")
    mod, _ = from_onnx(graph, shape={"x": (2, "channels")})
    assert str(mod["main"].params[0].type_annotation) == "Tensor[(2, channels), float32]"
    mod, _ = from_onnx(graph, shape={"x": (None, relay.AnyDim())})
    assert str(mod["main"].params[0].type_annotation) == "Tensor[(n, ?), float32]"


def test_dtype_of_an_input_may_be_given():
    graph = model("(float[3] x) => (float[3] y) { y = Relu(x) }")
    assert str(from_onnx(graph, dtype={"x": "float64"})[0]["main"].params[0].type_annotation) == "Tensor[(3), float64]"


@pytest.mark.parametrize("what", ["shape", "dtype", "values"])
def test_an_input_that_is_not_there_is_named(what):
    graph = model("(float[3] x) => (float[3] y) { y = Relu(x) }")
    with pytest.raises(UnknownInput, match=r"is given for 'z', which is no input of the model[\s\S]*its inputs are x"):
        from_onnx(graph, **{what: {"z": "float32" if what == "dtype" else (3,)}})


def test_a_value_that_is_needed_names_the_input_it_comes_from():
    graph = model("(float[4] x, int64[1] n) => (float[m] y) { k = Add(n, n) y = Tile(x, k) }")
    with pytest.raises(ValueNeeded, match=r"node 'Tile_1' \(Tile\) needs the value of 'k'[\s\S]*input 'n'") as caught:
        imported(graph, dynamic=False)
    assert caught.value.sources == ("n",)
    mod, _ = from_onnx(graph, values={"n": [1]})
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    assert str(mod["main"].body.checked_type) == "Tensor[(8), float32]"


def test_the_shape_of_an_input_is_no_value_of_it():
    graph = model("(float[n] x, float[4] y) => (float[k] z) { s = Shape(x) z = Expand(y, s) }")
    assert imported(graph, dynamic=False).inputs[0].name == "x"


def test_an_input_of_no_rank_needs_its_shape():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y]))
    with pytest.warns(UserWarning), pytest.raises(ShapeNeeded, match=r"the input 'x' does not say how many dimensions"):
        from_onnx(graph)
    with pytest.warns(UserWarning):
        mod, _ = from_onnx(graph, shape={"x": (2, 2)})
    assert str(mod["main"].params[0].type_annotation) == "Tensor[(2, 2), float32]"


def test_calls_carry_the_name_of_their_node():
    graph = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gelu", ["x"], ["y"], name="act/gelu")],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    spans: set[object] = set()
    mod, _ = from_onnx(graph)
    post_order_visit(mod["main"], lambda e: spans.add(e.span) if isinstance(e, relay.Call) else None)
    assert spans == {"act/gelu"}


def test_unsupported_operators_are_named_all_at_once():
    graph = model("(float[3] x) => (float[3] y) { a = Foo(x) b = Bar(a) c = Foo(b) y = Relu(c) }")
    with (
        pytest.warns(UserWarning),
        pytest.raises(OpNotImplemented, match=r"not supported for frontend ONNX: Bar, Foo[\s\S]*Foo: Foo_0, Foo_2"),
    ):
        from_onnx(graph)


def test_a_converter_of_ones_own():
    @converter("Twice", domain="my.own")
    def twice(node, x):
        return relay.add(x, x)

    graph = model("(float[3] x) => (float[3] y) { y = my.own.Twice(x) }", extra=', "my.own": 1')
    np.testing.assert_array_equal(run(graph, np.float32([1, 2, 3])), [2, 4, 6])


def test_local_functions_are_expanded():
    graph = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[3] x) => (float[3] y) { y = local.scaled<by = 3.0>(x) }
        <domain: "local", opset_import: ["" : 18]>
        scaled<by>(x) => (y) { k = Constant<value_float: float = @by>() y = Mul(x, k) }"""
    )
    np.testing.assert_array_equal(run(graph, np.float32([1, 2, 3])), [3, 6, 9])


def test_operators_defined_by_others_are_expanded_with_their_defaults():
    # HannWindow has no converter of its own; `output_datatype` is left to its default.
    window = model("() => (float[5] y) <int64 n = {5}> { y = HannWindow<periodic = 0>(n) }")
    np.testing.assert_allclose(run(window), np.hanning(5), atol=1e-6)


def test_a_node_that_does_not_fit_is_named():
    graph = model("(float[3] x, float[4] z) => (float[3] y) { y = Add(x, z) }")
    with pytest.raises(BadNode, match=r"node 'Add_0' \(Add\): .*shapes \(3,\) and \(4,\)"):
        from_onnx(graph)
    graph = model("(float[3] x) => (float[3] y) { y = Add(x) }")
    with pytest.warns(UserWarning, match="checker"), pytest.raises(BadNode, match=r"'Add_0' \(Add\): it has 1 inputs"):
        from_onnx(graph)


def test_attributes_that_are_missing_or_wrong():
    graph = model("(float[1, 1, 8] x) => (float[1, 1, 7] y) { y = MaxPool(x) }")
    with pytest.warns(UserWarning), pytest.raises(OpAttributeRequired, match="the attribute kernel_shape is missing"):
        from_onnx(graph)
    graph = model('(float[2, 2] x, int64[4] p) => (float[4, 4] y) { y = Pad<mode = "odd">(x, p) }')
    with pytest.raises(OpAttributeInvalid, match="mode is 'odd'"):
        from_onnx(graph, values={"p": [1, 1, 1, 1]})


def test_the_model_with_named_nodes_is_written(tmp_path):
    import onnx

    graph = model("(float[3] x) => (float[3] y) { a = Relu(x) y = Exp(a) }")
    from_onnx(graph, export_node_renamed_model_path=tmp_path / "named.onnx")
    assert [node.name for node in onnx.load(tmp_path / "named.onnx").graph.node] == ["Relu_0", "Exp_1"]
    assert graph.graph.node[0].name == ""
    from_onnx(graph, export_node_renamed_model_path=tmp_path / "new")
    (written,) = (tmp_path / "new").iterdir()
    assert written.name.startswith("tvm_exported_model_") and onnx.load(written).graph.node[1].name == "Exp_1"


def test_a_scalar_of_the_model_may_be_given_a_shape():
    mod, _ = from_onnx(model("(float x) => (float y) { y = Relu(x) }"), shape={"x": (1,)})
    assert mod["main"].params[0].type_annotation.shape == (1,)


def test_an_output_that_is_not_made_is_an_error_only_where_it_is_used():
    fine = model("(float[2, 3, 4] x, float[3] s) => (float[2, 3, 4] y) { y, unused = InstanceNormalization(x, s, s) }")
    with pytest.warns(UserWarning):
        from_onnx(fine)
    broken = model(
        "(float[2, 3, 4] x, float[3] s) => (float[2, 3, 4] y) { z, w = InstanceNormalization(x, s, s) y = Relu(w) }"
    )
    with pytest.warns(UserWarning), pytest.raises(BadNode, match="its output 1, 'w', is used, and is not made"):
        from_onnx(broken)


def test_inputs_with_initialisers_are_no_inputs():
    w = numpy_helper.from_array(np.float32([1, 2]), "w")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", infos[:2], infos[2:], [w])
    assert [p.name_hint for p in from_onnx(helper.make_model(graph))[0]["main"].params] == ["x"]


def test_old_broadcasting_lines_up_with_an_axis():
    graph = model(
        "(float[2, 3, 4] x, float[3] b) => (float[2, 3, 4] y) { y = Add<axis = 1, broadcast = 1>(x, b) }", opset=6
    )
    x, b = random(2, 3, 4), random(3, seed=1)
    np.testing.assert_array_equal(run(graph, x, b), x + b[:, None])


def test_the_newest_converter_that_is_not_newer_is_used():
    x = random(2, 3, 4)
    flat = np.exp(x.reshape(2, 12) - x.reshape(2, 12).max(1, keepdims=True))
    np.testing.assert_allclose(
        run(model("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax(x) }", opset=11), x),
        (flat / flat.sum(1, keepdims=True)).reshape(2, 3, 4),
        rtol=1e-6,
    )
    last = np.exp(x - x.max(-1, keepdims=True))
    found = run(model("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax(x) }", opset=13), x)
    np.testing.assert_allclose(found, last / last.sum(-1, keepdims=True), rtol=1e-6)


def test_batched_products_turn_their_operand_unless_told_otherwise():
    graph = model("(float[2, 3, 4] a, float[2, 4, 5] b) => (float[2, 3, 5] y) { y = MatMul(a, b) }")
    assert operators(from_onnx(graph)[0]) == ["transpose", "nn.batch_matmul"]
    assert operators(from_onnx(graph, convert_config={"use_nt_batch_matmul": False})[0]) == ["nn.batch_matmul"]


def test_without_onnx_the_message_says_how_to_have_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs the package onnx: pip install onnx"):
        from_onnx("model.onnx")
