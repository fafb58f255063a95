"""A model run with a clock around its kernels: times, values in between, and outputs as the plain executor has them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.contrib.debugger.debug_executor import GraphModuleDebug, create
from loopwright.contrib.graph_executor import GraphModule
from loopwright.runtime import load_param_dict


@pytest.fixture(scope="module")
def lib():
    x = relay.var("x", shape=(3, 8))
    hidden = relay.nn.relu(relay.nn.dense(x, relay.const(np.full((4, 8), 0.5, "float32"))))
    return relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(hidden))), "llvm")


@pytest.fixture
def x():
    return np.arange(24, dtype="float32").reshape(3, 8) - 12


def debug(lib, folder=None):
    return GraphModuleDebug(lib["debug_create"]("default", lw.cpu()), [lw.cpu()], lib.get_graph_json(), folder)


def test_a_run_has_the_outputs_of_the_plain_executor(lib, x, tmp_path):
    model = debug(lib, tmp_path / "dump")
    model.run(x=x)
    np.testing.assert_array_equal(model.get_output(0).numpy(), lib(x))
    times = json.loads((tmp_path / "dump" / "times.json").read_text())
    assert [row["name"] for row in times] == [row.name for row in model.profile().rows]
    assert json.loads((tmp_path / "dump" / "graph.json").read_text())["nodes"]
    folder = tmp_path / "dump" / "_tvmdbg_device_CPU_0"
    written = load_param_dict((folder / "output_tensors.params").read_bytes())
    np.testing.assert_array_equal(written[f"{times[1]['name']}____topo-index:1____output-num:0"].numpy(), lib(x))
    assert len(json.loads((folder / "_tvmdbg_execution_trace.json").read_text())["traceEvents"]) == 4
    assert json.loads((folder / "_tvmdbg_graph_dump.json").read_text())["nodes"]


def test_values_in_between_by_name_and_position(lib, x):
    expected = np.maximum(x @ np.full((8, 4), 0.5, "float32"), 0)
    for model in (debug(lib), create(None, lib, lw.cpu()), GraphModule(lib["default"](lw.cpu()))):
        model.set_input("x", x)
        names = [row.name for row in lib.compiled.profile(x).rows]
        np.testing.assert_array_equal(model.debug_get_output(0).numpy(), expected)
        np.testing.assert_array_equal(model.debug_get_output(names[0]).numpy(), expected)
        np.testing.assert_array_equal(model.debug_get_output(-1).numpy(), lib(x))
        with pytest.raises(KeyError, match="no launch is called 'nothing'; the model runs"):
            model.debug_get_output("nothing")
        with pytest.raises(KeyError, match="no launch is called 7"):
            model.debug_get_output(7)


def test_times_of_single_kernels(lib, x):
    model = debug(lib)
    with pytest.raises(RuntimeError, match="input 'x' is not set"):
        model.profile()
    profile = model.profile(repeat=2, x=x)
    assert len(profile.rows) == 2 and profile.seconds > 0 and "fused_nn_softmax" in str(profile)
    assert profile.configuration["Executor"] == "Graph" and profile.profile.rows is profile.rows
    assert [len(figures) for figures in model.run_individual(number=2, repeat=3)] == [3, 3]
    assert len(model.run_individual_node(1, repeat=2)) == 2
    model.exit()


def test_tensors_are_written_where_they_are(lib, x):
    model = GraphModule(lib["default"](lw.cpu()))
    given, out, into = lw.nd.array(np.zeros_like(x)), lw.nd.empty((3, 4)), lw.nd.empty((3, 4))
    model.set_input_zero_copy("x", given)
    model.set_output_zero_copy(0, into)
    given.copyfrom(x)  # before the run: what stands there then is the input
    model.run()
    np.testing.assert_array_equal(into.numpy(), lib(x))
    model.get_output(0, out)
    np.testing.assert_array_equal(out.numpy(), lib(x))
    model.get_input("x", out=given)
    np.testing.assert_array_equal(given.numpy(), x)


def test_functions_by_name(lib, x):
    executor = lib["default"](lw.cpu())
    assert executor.type_key == "GraphExecutor" and executor["get_num_inputs"]() == executor["get_num_outputs"]() == 1
    executor["set_input"]("x", lw.nd.array(x))
    executor.get_function("run")()
    np.testing.assert_array_equal(executor["get_output"](0).numpy(), lib(x))
    np.testing.assert_array_equal(GraphModule(executor).get_output(0).numpy(), lib(x))  # of the same executor
    assert "profile" in lib["debug_create"]("default", lw.cpu()).function_names


def test_an_input_is_the_executors_memory(lib, x):
    model = GraphModule(lib["default"](lw.cpu()))
    model.get_input(0).copyfrom(x)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), lib(x))


def test_timing_needs_no_inputs(lib):
    model = GraphModule(lib["default"](lw.cpu()))
    assert len(model.module.time_evaluator("run", lw.cpu(), number=1, repeat=2)().results) == 2
    once = model.benchmark(lw.cpu(), repeat=1, number=1, end_to_end=True)
    assert once.mean > 0 and not model.get_input("x").numpy().any()


def test_what_does_not_fit_is_refused_when_it_is_set(lib, x):
    model = GraphModule(lib["default"](lw.cpu()))
    for call, message in (
        (lambda: model.set_input("x", x[:1]), r"input 'x' has shape \(1, 8\), expected \(3, 8\)"),
        (lambda: model.set_input("x", x.astype("complex64")), "input 'x' has dtype complex64, expected float32"),
        (lambda: model.set_input_zero_copy("x", x.astype("float64")), "input 'x' has dtype float64, expected float32"),
        (lambda: model.set_output_zero_copy(0, lw.nd.empty((4,))), r"output 0 has shape \(4,\), expected \(3, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
