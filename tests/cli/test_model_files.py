from __future__ import annotations

import numpy as np
import pytest

from loopwright.cli.model_files import (
    BadShapes,
    NoSuchModel,
    UnknownModelFormat,
    format_of,
    is_model_file,
    is_package,
    read_model,
    read_shapes,
)
from loopwright.runtime.params import save_param_dict
from tests.cli.models import MLP, NET, save


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (None, {}),
        ("", {}),
        ("x:[1,3,224,224]", {"x": [1, 3, 224, 224]}),
        ("x:[1, 3] y:[4]", {"x": [1, 3], "y": [4]}),
        ("x:[],y:[2]", {"x": [], "y": [2]}),
        ("input/a.b:0:[1,-1]", {"input/a.b:0": [1, -1]}),
        ("x: [0, -7, ?]", {"x": [-1, -1, -1]}),
        ("x:[batch,2]", {"x": ["batch", 2]}),
    ],
)
def test_shapes(text, shapes):
    assert read_shapes(text) == shapes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "is not NAME"),
        ("x=(1,2)", "is not NAME"),
        ("x:[1,2", "is not NAME"),
        ("x:[1,2]y", "is not NAME"),
        ("x:[1,]", "'' is neither a number nor a name"),
        ("x:[1.5]", "'1.5' is neither a number nor a name"),
        ("x:[1] x:[2]", "'x' is there twice"),
    ],
)
def test_shapes_that_cannot_be_read(text, why):
    with pytest.raises(BadShapes, match=why.replace("(", r"\(")):
        read_shapes(text)


def test_formats():
    assert format_of("a/model.ONNX") == "onnx" and format_of("model.pt2") == "pytorch"
    assert format_of("model.bin", "onnx") == "onnx"
    assert is_package("m.tar") and is_package("m.so") and not is_package("m.onnx")
    assert is_model_file("m.onnx") and is_model_file("m.tar") and not is_model_file("m.py")
    with pytest.raises(UnknownModelFormat, match=r"model\.bin does not say what kind of model it is"):
        format_of("model.bin")
    with pytest.raises(UnknownModelFormat, match="there is no format 'caffe'"):
        format_of("model.onnx", "caffe")
    with pytest.raises(UnknownModelFormat, match="is a model of tflite, which is not read here") as caught:
        format_of("model.tflite")
    assert "save it as ONNX first" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(NoSuchModel, match=r"modle\.onnx does not exist") as caught:
        read_model(str(tmp_path / "modle.onnx"))
    assert "did you mean" in str(caught.value)
    with pytest.raises(NoSuchModel, match="is a directory"):
        read_model(str(tmp_path))


def test_relay_text_and_the_parameters_beside_it(tmp_path):
    (tmp_path / "net.relay").write_text(NET)
    model = read_model(str(tmp_path / "net.relay"))
    assert model.format == "relay" and model.params == {} and "nn.dense" in str(model.mod)
    (tmp_path / "net.params").write_bytes(save_param_dict({"w": np.ones((3, 4), "float32")}))
    assert list(read_model(str(tmp_path / "net.relay")).params) == ["w"]


def test_onnx_with_its_names_and_what_its_checker_says(tmp_path):
    pytest.importorskip("onnx")
    path = save(tmp_path / "mlp.onnx", MLP)
    model = read_model(path, shapes={"x": [5, 4]})
    assert model.output_names == ("y",) and "Tensor[(5, 4), float32]" in str(model.mod)
    assert model.warnings == ()
    odd = save(tmp_path / "odd.onnx", MLP.replace("ir_version: 8", "ir_version: 1"))
    assert any("checker" in text for text in read_model(odd).warnings)


def test_shapes_in_place_of_those_of_relay_text(tmp_path):
    (tmp_path / "net.relay").write_text(NET)
    path = str(tmp_path / "net.relay")
    assert "Tensor[(7, 3), float32]" in str(read_model(path, shapes={"x": [7, -1]}).mod)
    assert "Tensor[(rows, 3), float32]" in str(read_model(path, shapes={"x": ["rows", 4]}).mod)
    with pytest.raises(BadShapes, match="the model has no input 'y'; it has x, w"):
        read_model(path, shapes={"y": [7, 4]})
    with pytest.raises(BadShapes, match="'x' has 2 dimensions"):
        read_model(path, shapes={"x": [7]})
