"""Reading models: what is no model, what contradicts itself, where weights may be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from loopwright.frontends import from_onnx
from loopwright.frontends.onnx.compiled import CompiledModel
from loopwright.frontends.onnx.errors import (
    AbsurdSize,
    BadNode,
    BadTensor,
    BrokenGraph,
    DataOutsideFolder,
    UnreadableModel,
    UnsupportedType,
)
from loopwright.frontends.onnx.load import load
from loopwright.frontends.onnx.tensors import to_array
from loopwright.runtime.errors import LoopwrightError
from tests.frontends.onnx.onnx_models import model, run

FLOAT = TensorProto.FLOAT


def info(name, shape=(4,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def with_nodes(*nodes, inputs=("x",), outputs=("y",), tensors=(), sparse=()):
    graph = helper.make_graph(
        list(nodes), "g", [info(name) for name in inputs], [info(name) for name in outputs], list(tensors),
        sparse_initializer=list(sparse),
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def test_a_path_bytes_a_file_and_a_model_are_read(tmp_path):
    graph = model("(float[3] x) => (float[3] y) { y = Relu(x) }")
    path = tmp_path / "m.onnx"
    path.write_bytes(graph.SerializeToString())
    for source in (graph, path, str(path), path.read_bytes(), path.open("rb")):
        assert load(source).opsets[""] == 21


@pytest.mark.parametrize("content", [b"", b"these bytes are no model", b"\x08\x01", bytes(range(256))])
def test_bytes_that_are_no_model(content):
    with pytest.raises(UnreadableModel, match=r"cannot read .* as an ONNX model"):
        from_onnx(content)


def test_a_file_that_was_cut_off(tmp_path):
    whole = with_nodes(
        helper.make_node("Add", ["x", "w"], ["y"]), tensors=[numpy_helper.from_array(np.ones(4, "f"), "w")]
    )
    content = whole.SerializeToString()
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for end in range(len(content)):
            try:
                from_onnx(content[:end])
            except LoopwrightError:
                refused += 1
    assert refused > len(content) // 2


def test_what_is_no_file(tmp_path):
    with pytest.raises(UnreadableModel, match=r"cannot read '.*nowhere\.onnx' as an ONNX model: there is no such file"):
        from_onnx(str(tmp_path / "nowhere.onnx"))
    with pytest.raises(UnreadableModel, match=r"cannot read an object of type int as an ONNX model"):
        from_onnx(5)
    with pytest.raises(UnreadableModel, match="Is a directory"):
        from_onnx(tmp_path)


def test_a_tensor_that_nothing_makes():
    with (
        pytest.warns(UserWarning),
        pytest.raises(BrokenGraph, match=r"node 'Add_0' \(Add\) uses 'w', which nothing makes"),
    ):
        from_onnx(with_nodes(helper.make_node("Add", ["x", "w"], ["y"])))


def test_a_cycle_is_named():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"], name="two")]
    with pytest.warns(UserWarning), pytest.raises(BrokenGraph, match="2 nodes wait for one another, 'one', 'two'"):
        from_onnx(with_nodes(*nodes, outputs=["b"]))


def test_nodes_in_another_order_are_put_in_order():
    nodes = [helper.make_node("Exp", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"])]
    graph = with_nodes(*nodes)
    with pytest.warns(UserWarning):
        found = run(graph, np.float32([-1, 0, 1, 2]))
    np.testing.assert_allclose(found, np.exp([0, 0, 1, 2]), rtol=1e-6)
    assert [node.op_type for node in graph.graph.node] == ["Exp", "Relu"]


def test_a_tensor_made_twice():
    nodes = [helper.make_node("Exp", ["x"], ["y"], name="a"), helper.make_node("Relu", ["x"], ["y"], name="b")]
    with pytest.warns(UserWarning), pytest.raises(BrokenGraph, match="'y' is made twice: by node 'a' and by node 'b'"):
        from_onnx(with_nodes(*nodes))


def test_an_output_that_no_node_makes():
    with pytest.warns(UserWarning), pytest.raises(BrokenGraph, match="the output 'z' is made by no node"):
        from_onnx(with_nodes(helper.make_node("Relu", ["x"], ["y"]), outputs=["z"]))


def test_sizes_that_cannot_be():
    graph = model("(float[1000000, 1000000000, 99] x) => (float[n] y) { y = Relu(x) }")
    with pytest.raises(AbsurdSize, match=r"would take 396,000,000,000,000,000 bytes"):
        from_onnx(graph)
    with pytest.raises(AbsurdSize, match="a size is a number that is not negative"):
        from_onnx(with_nodes(helper.make_node("Relu", ["x"], ["y"])), shape={"x": (-4,)})
    grown = model("(float[3] x) => (float[n] y) <int64[1] n = {99999999999999999}> { y = Tile(x, n) }")
    with pytest.raises(AbsurdSize, match=r"the result of node 'Tile_0' \(Tile\) has shape"):
        from_onnx(grown)


def test_texts_are_refused_with_a_reason():
    with pytest.raises(UnsupportedType, match=r"the input 'x' is of type string.*\n[\s\S]*texts are not computed with"):
        from_onnx(model("(string[3] x) => (string[3] y) { y = Identity(x) }"))


def test_a_tensor_with_too_few_bytes():
    w = numpy_helper.from_array(np.ones(4, "f"), "w")
    w.raw_data = w.raw_data[:9]
    with (
        pytest.warns(UserWarning),
        pytest.raises(BadTensor, match=r"'w': 9 bytes are stored, and shape \(4,\) of float takes 16"),
    ):
        from_onnx(with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), tensors=[w]))


def test_a_tensor_that_says_it_is_huge_is_not_allocated():
    w = TensorProto(name="w", data_type=FLOAT, dims=[1 << 40, 1 << 40])
    with pytest.warns(UserWarning), pytest.raises(AbsurdSize, match="tensor 'w' has shape"):
        from_onnx(with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), tensors=[w]))


def external(location, offset=None, length=None):
    w = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": length}
    for key, value in entries.items():
        if value is not None:
            w.external_data.add(key=key, value=str(value))
    return with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), tensors=[w])


def test_weights_in_a_file_beside_the_model(tmp_path):
    (tmp_path / "sub").mkdir()
    np.arange(8, dtype="f").tofile(tmp_path / "sub" / "w.bin")
    (tmp_path / "m.onnx").write_bytes(external("sub/w.bin", 16, 16).SerializeToString())
    np.testing.assert_array_equal(run(tmp_path / "m.onnx", np.zeros(4, "f")), [4, 5, 6, 7])


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "sub/../../w.bin", "link/w.bin"])
def test_weights_outside_the_folder_are_not_read(tmp_path, location):
    inside = tmp_path / "model"
    inside.mkdir()
    np.arange(8, dtype="f").tofile(tmp_path / "w.bin")
    (inside / "link").symlink_to(tmp_path)
    (inside / "m.onnx").write_bytes(external(location, 0, 16).SerializeToString())
    with pytest.raises(DataOutsideFolder, match="which is outside the folder of the model"):
        from_onnx(inside / "m.onnx")


@pytest.mark.parametrize(
    ("offset", "length", "text"),
    [
        (0, 12, "shape .* takes 16"),
        (24, 16, "16 bytes from 24 on .* which has 32"),
        (-4, 16, "from -4 on"),
        ("x", 16, "not a number"),
    ],
)
def test_weights_that_are_not_all_there(tmp_path, offset, length, text):
    np.arange(8, dtype="f").tofile(tmp_path / "w.bin")
    (tmp_path / "m.onnx").write_bytes(external("w.bin", offset, length).SerializeToString())
    with pytest.raises(BadTensor, match=text):
        from_onnx(tmp_path / "m.onnx")


def test_weights_elsewhere_need_the_folder(tmp_path):
    with pytest.raises(BadTensor, match="the folder of the model is not known"):
        from_onnx(external("w.bin"))
    (tmp_path / "m.onnx").write_bytes(external("missing.bin").SerializeToString())
    with pytest.raises(BadTensor, match="there is no such file beside the model"):
        from_onnx(tmp_path / "m.onnx")


def test_sparse_weights():
    values = numpy_helper.from_array(np.float32([5, 7]), "w")
    places = numpy_helper.from_array(np.int64([1, 3]), "places")
    sparse = helper.make_sparse_tensor(values, places, [4])
    graph = with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), sparse=[sparse])
    np.testing.assert_array_equal(run(graph, np.ones(4, "f")), [1, 6, 1, 8])
    sparse.indices.CopyFrom(numpy_helper.from_array(np.int64([1, 4]), "places"))
    with pytest.warns(UserWarning), pytest.raises(BadTensor, match="a place of an element is outside"):
        from_onnx(with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), sparse=[sparse]))
    sparse.dims[:] = [1 << 40]
    with pytest.raises(AbsurdSize, match="stored by few elements"):
        from_onnx(with_nodes(helper.make_node("Add", ["x", "w"], ["y"]), sparse=[sparse]))


@pytest.mark.parametrize(
    "name",
    "float16 float64 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float4_e2m1fn int4 uint4 int2 uint2 int8 "
    "uint64 bool".split(),
)
def test_tensors_of_every_type_are_read(name):
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, name, name))
    array = np.array([0, 1, 1, 0, 1]).astype(kind)
    for raw in (True, False):
        if raw:
            proto = numpy_helper.from_array(array, "w")
        else:
            proto = helper.make_tensor(
                "w", helper.np_dtype_to_tensor_dtype(kind), [5], array.astype("float32").tolist()
            )
        found = to_array(proto, None)
        assert found.dtype == kind
        np.testing.assert_array_equal(found.astype("float32"), array.astype("float32"))


def test_negative_small_integers_are_unpacked():
    import ml_dtypes

    array = np.array([-8, 7, -1, 0, 3]).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(to_array(numpy_helper.from_array(array, "w"), None).astype(int), [-8, 7, -1, 0, 3])


@pytest.mark.parametrize("least", [0, 1 << 23])
def test_what_the_checker_says_of_a_compiled_model_is_heard_in_the_end(monkeypatch, least):
    """Of a large model it says so from another process."""
    monkeypatch.setattr("loopwright.frontends.onnx.load._WORTH_A_PROCESS", least)
    odd = model("(float[3] x) => (float[3] y) { y = Relu(x) }")
    odd.ir_version = 1
    with pytest.warns(UserWarning, match="ONNX's checker says") as warned:
        compiled = CompiledModel(odd)
    assert [warning.filename for warning in warned] == [__file__]
    np.testing.assert_array_equal(compiled(np.float32([-1, 0, 2])), [0, 0, 2])
    broken = model("(float[3] x) => (float[3] y) { y = Add(x) }")
    with pytest.warns(UserWarning, match="checker"), pytest.raises(BadNode, match="it has 1 inputs"):
        CompiledModel(broken)
