"""tvmc for scripts: a model is loaded, compiled to a package and run; texts of the command line are read."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from loopwright import relay
from loopwright.compat import tvmc
from loopwright.compat.tvmc.config_options import convert_config_json_to_cli
from loopwright.compat.tvmc.pass_config import parse_configs
from loopwright.compat.tvmc.pass_list import parse_pass_list_str
from loopwright.compat.tvmc.result_utils import get_top_results
from loopwright.compat.tvmc.shape_parser import parse_shape_string
from loopwright.compat.tvmc.target import (
    generate_target_args,
    parse_target,
    reconstruct_target_args,
    target_from_cli,
)
from loopwright.compat.tvmc.tracker import tracker_host_port_from_cli
from loopwright.compat.tvmc.transform import apply_graph_transforms
from loopwright.ir import IRModule, structural_equal


@pytest.fixture
def model(tmp_path: Path) -> tvmc.TVMCModel:
    x = relay.var("x", shape=(2, 4), dtype="float32")
    mod = relay.transform.InferType()(IRModule.from_expr(relay.nn.relu(x) + relay.const(1.0, "float32")))
    path = tmp_path / "model.relay"
    path.write_text(str(mod), encoding="utf-8")
    return tvmc.load(str(path))


def test_load_compile_run(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    package = tvmc.compile(model, target="llvm", package_path=str(tmp_path / "model.tar"))
    array = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
    result = tvmc.run(package, device="cpu", inputs={"x": array}, benchmark=True, repeat=2, number=1)
    np.testing.assert_allclose(result.get_output("output_0"), np.maximum(array, 0) + 1)
    assert len(result.times.results) == 2 and "std (ms)" in result.format_times()
    places, values = get_top_results(result, 2)
    assert list(places) == [7, 6] and values[0] == 2
    again = tvmc.run(tvmc.TVMCPackage(package.package_path), device="cpu", fill_mode="ones")
    assert again.times == [] and again.outputs["output_0"].max() == 2
    for arguments, problem in (({"inputs": {"y": array}}, "no input named 'y'"), ({"device": "cuda"}, "'cuda'")):
        with pytest.raises(tvmc.TVMCException, match=problem):
            tvmc.run(package, **arguments)
    with pytest.raises(tvmc.TVMCException, match="before running it"):
        tvmc.run(model)


def test_a_model_is_saved_and_loaded(model: tvmc.TVMCModel, tmp_path: Path) -> None:
    model.save(str(tmp_path / "saved.tar"))
    again = tvmc.TVMCModel(model_path=str(tmp_path / "saved.tar"))
    assert structural_equal(again.mod, model.mod)
    with pytest.raises(tvmc.TVMCException, match="no saved TVMCModel"):
        tvmc.TVMCModel(model_path=str(tmp_path / "nowhere.tar"))
    with pytest.raises(tvmc.TVMCException, match="does not exist"):
        tvmc.load(str(tmp_path / "nowhere.onnx"))


def test_targets_as_text() -> None:
    target, extras = target_from_cli("llvm", {"llvm": {"mcpu": "skylake"}})
    assert "-mcpu=skylake" in str(target) and extras == []
    (one, two) = parse_target("cmsis-nn -a=1 --flag, c -mcpu=cortex-m55")
    assert one["name"] == "cmsis-nn" and one["opts"] == {"a": "1", "flag": True} and not one["is_tvm_target"]
    assert two["opts"] == {"mcpu": "cortex-m55"} and two["is_tvm_target"]
    for text, options, problem in (
        ("llvm", {"opencl": {"max_num_threads": 4}}, "Passed --target-opencl-max_num_threads but did not specify"),
        ("llvm, cmsis-nn", {}, "last target needs to be"),
        ("llvm, llvm", {}, "Duplicate target"),
        ("nothing", {}, "Error parsing target string"),
    ):
        with pytest.raises(tvmc.TVMCException, match=problem):
            target_from_cli(text, options)
    parser = argparse.ArgumentParser()
    generate_target_args(parser)
    parsed = parser.parse_args(["--target=llvm", "--target-llvm-mcpu=skylake", "--target-llvm-num-cores=4"])
    assert reconstruct_target_args(parsed) == {"llvm": {"mcpu": "skylake", "num-cores": 4}}


def test_shapes_settings_and_the_rest_as_text() -> None:
    assert parse_shape_string("x:[1,3] y:[4]") == {"x": [1, 3], "y": [4]}
    with pytest.raises(argparse.ArgumentTypeError, match="no list of input shapes"):
        parse_shape_string("x=(1,3)")
    assert parse_configs(["tir.disable_vectorize=true"]) == {"tir.disable_vectorize": True}
    for text in ("", "tir.disable_vectorize", "no.such.setting=1", "tir.add_lower_pass=a,tir.transform.UnrollLoop"):
        with pytest.raises(tvmc.TVMCException, match=r"Invalid format|does not exist"):
            parse_configs([text])
    assert parse_pass_list_str("FuseOps,FoldConstant") == ["FuseOps", "FoldConstant"]
    with pytest.raises(argparse.ArgumentTypeError, match="no passes MyPass"):
        parse_pass_list_str("MyPass,FuseOps")
    assert tracker_host_port_from_cli("10.0.0.1:9191") == ("10.0.0.1", 9191)
    assert tracker_host_port_from_cli("board") == ("board", 9090) and tracker_host_port_from_cli(None) == (None, None)
    given = {"targets": [{"kind": "llvm", "mcpu": "x"}], "executor": {"kind": "graph"}, "pass-config": {"a.b": "1"}}
    assert convert_config_json_to_cli(given) == [
        {"target_llvm_mcpu": "x"}, {"target": "llvm"}, {"executor": "graph"}, {"pass_config": ["a.b=1"]}
    ]  # fmt: skip


def test_layouts_of_a_graph() -> None:
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.nn.conv2d(x, w)))
    changed = apply_graph_transforms(mod, {"desired_layout": ["NHWC:HWIO"], "desired_layout_ops": ["nn.conv2d"]})
    assert 'data_layout="NHWC"' in str(changed) and "layout_transform" in str(changed)
    with pytest.raises(tvmc.TVMCException, match="2 layouts for 1 operators"):
        apply_graph_transforms(mod, {"desired_layout": ["NHWC", "NCHW"], "desired_layout_ops": ["nn.conv2d"]})
