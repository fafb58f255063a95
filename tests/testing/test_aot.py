"""testing.aot: a model in a C program of its own; and what scripts have beside it."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.compat.name_transforms import (
    BadName,
    mangle_module_name,
    prefix_generated_name,
    to_c_constant_style,
    to_c_function_style,
)
from loopwright.compat.supply import GlobalVarSupply, NameSupply
from loopwright.contrib.graph_executor import AotModule
from loopwright.model.errors import BadModelInput
from loopwright.runtime import load_module
from loopwright.testing.aot import AOTTestModel, AOTTestRunner, compile_and_run, generate_ref_data
from loopwright.testing.usmp import is_tvm_backendallocworkspace_calls


def test_a_model_runs_in_a_c_program():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x + y, relay.cast(x, "int8")])))
    inputs, params = {"x": np.float32([[1, 2, 3], [4, 5, 6]])}, {"y": np.ones(3, "float32")}
    outputs = generate_ref_data(mod, inputs, params)
    assert list(outputs) == ["output0", "output1"] and outputs["output1"].dtype == "int8"
    model = AOTTestModel(module=mod, inputs=inputs, outputs=outputs, params=params)
    assert compile_and_run(model, AOTTestRunner(), "c", True)
    assert not is_tvm_backendallocworkspace_calls(relay.build(mod, "llvm", params=params).lib)
    wrong = model._replace(outputs={**outputs, "output0": outputs["output0"] + 1})
    with pytest.raises(AssertionError, match=r"output output0\[0\] is 2, expected 3"):
        compile_and_run(wrong, AOTTestRunner())


def test_an_aot_executor_is_strict_about_names(tmp_path):
    x = relay.var("in:0", shape=(3,))
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    path = str(tmp_path / "model.so")
    lib.export_library(path, cc="c++", options=["-std=gnu++17"])
    model = AotModule(load_module(path)["default"](lw.cpu()))
    model.set_input(in_0=np.zeros(3, "float32"))
    model.run()
    assert model.get_output(0).numpy().tolist() == [1, 1, 1] and model.get_input_index("in:0") == 0
    assert model.get_input_info() == ({model.get_input_name(0): (3,)}, {"in:0": "float32"})
    with pytest.raises(BadModelInput, match="Invalid input name"):
        model.set_input(other=np.zeros(3, "float32"))


def test_names_for_c():
    assert to_c_function_style(prefix_generated_name(["model", "run"])) == "TVMGenModelRun"
    assert to_c_constant_style("TVM_a") == "TVM_A" and mangle_module_name("net") == "tvmgen_net"
    with pytest.raises(BadName, match="Function not TVM prefixed"):
        to_c_function_style("run")


def test_supplies_of_names():
    names = NameSupply("p")
    assert names.reserve_name("a") == "p_a" and names.fresh_name("a") == "p_a_1"
    assert not names.contains_name("a_2") and names.contains_name("p_a", False)
    x = relay.var("x", shape=(3,))
    supply = GlobalVarSupply(relay.IRModule({"f": relay.Function([x], x)}))
    assert supply.fresh_global("f", False).name == "f_1" and supply.unique_global_for("f", False).name == "f"
    assert supply.unique_global_for("f").name == "tvmgen_default_f"
