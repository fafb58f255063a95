"""Functions of ours under the names that scripts ask `get_global_func` for."""

import sys
import types

import numpy as np
import pytest

from loopwright import nd, relay
from loopwright.compat import registered_functions
from loopwright.compat.global_functions import get_global_func
from loopwright.runtime import Module, register_func, remove_global_func


def test_modules_by_their_makers():
    module = get_global_func("runtime.CSourceModuleCreate")("int f();", "c", ["f"], None)
    assert module.function_names == ["f"] and get_global_func("runtime.ModuleGetTypeKey")(module) == "c"
    assert get_global_func("runtime.ModuleGetSource")(module, "c") == "int f();"
    assert get_global_func("runtime.SourceModuleCreate")("text", "txt").get_source() == "text"


def test_parameters_come_back():
    data = get_global_func("runtime.SaveParams")({"w": nd.array(np.arange(3))})
    assert get_global_func("runtime.LoadParams")(data)["w"].numpy().tolist() == [0, 1, 2]


def test_a_module_crosses_a_packed_function_as_itself():
    module = Module({"main": lambda x: x + 1})
    register_func("mine.first", lambda given: given["main"](1), override=True)
    assert get_global_func("mine.first")(module) == 2
    remove_global_func("mine.first")


@pytest.mark.parametrize("name", ["graph_executor", "graph_executor_debug"])
def test_an_executor_by_graph_and_library(name):
    x = relay.var("x", shape=(3,))
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    model = get_global_func(f"tvm.{name}.create")(lib.get_graph_json(), lib.get_lib(), 1, 0)
    model["set_input"]("x", nd.array(np.zeros(3, "float32")))
    model["run"]()
    assert model["get_output"](0).numpy().tolist() == [1, 1, 1]


def test_functions_of_a_namespace_become_attributes():
    register_func("mine.space.f", lambda: 7, override=True)
    module = sys.modules["mine_api"] = types.ModuleType("mine_api")
    try:
        registered_functions._init_api("tvm.mine.space", "mine_api")
        assert module.f() == 7
    finally:
        del sys.modules["mine_api"]
        remove_global_func("mine.space.f")
