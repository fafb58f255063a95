"""relay.build: graphs compiled to one function, held against the interpreter."""

from __future__ import annotations

import json

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.contrib import graph_executor
from loopwright.ir.pass_context import PassContext
from loopwright.model.errors import BadModelInput
from loopwright.relay.errors import CannotCompile, NotAGraph
from loopwright.relay.expr import Function
from loopwright.relay.testing import mlp
from loopwright.relay.visitor import bind
from tests.relay.rounding_check import assert_rounded


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def both(function, *inputs, **options):
    """What the compiled model returns and what the interpreter does."""
    module = relay.IRModule.from_expr(function)
    expected = relay.create_executor("debug", module).evaluate()(*inputs)
    return relay.build(module, "llvm", **options)(*inputs), expected


def test_element_wise_chains_are_one_kernel():
    x = relay.var("x", shape=(7, 5))
    function = relay.Function([x], relay.tanh(relay.exp(relay.negative(x))))
    model = relay.build(relay.IRModule.from_expr(function))
    assert len(model.program.launches()) == 1
    assert_rounded(model(numbers(7, 5)), lambda x: np.tanh(np.exp(-x)), numbers(7, 5))


def test_without_fusion_each_operator_is_a_kernel():
    x = relay.var("x", shape=(7, 5))
    module = relay.IRModule.from_expr(relay.Function([x], relay.tanh(relay.exp(relay.negative(x)))))
    with PassContext(opt_level=3, disabled_pass=["FuseOps"]):
        model = relay.build(module)
    assert len(model.program.launches()) == 3
    assert_rounded(model(numbers(7, 5)), lambda x: np.tanh(np.exp(-x)), numbers(7, 5))


def test_tuples_go_in_and_out():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    function = relay.Function([x, y], relay.Tuple([x + y, relay.Tuple([x - y, x])]))
    found, expected = both(function, numbers(3), numbers(3))
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1][0])
    np.testing.assert_array_equal(found[2], expected[1][1])


def test_an_input_a_constant_and_a_value_twice_as_results():
    x = relay.var("x", shape=(3,))
    twice = relay.exp(x)
    constant = relay.const(np.arange(3.0, dtype="float32"))
    found, _ = both(relay.Function([x], relay.Tuple([x, constant, twice, twice, relay.reshape(x, (3, 1))])), numbers(3))
    np.testing.assert_array_equal(found[0], numbers(3))
    np.testing.assert_array_equal(found[1], [0, 1, 2])
    np.testing.assert_array_equal(found[2], found[3])
    assert found[4].shape == (3, 1)


def perceptron(params):
    """What `mlp` computes, as a formula of its data."""

    def formula(data):
        value = data.reshape(-1, 784)
        for layer in (1, 2, 3):
            weight = np.asarray(params[f"fc{layer}_weight"], "float64")
            value = value @ weight.T + np.asarray(params[f"fc{layer}_bias"], "float64")
            value = np.maximum(value, 0) if layer < 3 else value
        powers = np.exp(value - value.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return formula


def test_parameters_become_constants():
    module, params = mlp.get_workload()
    model = relay.build(module, "llvm", params={**params, "not_there": np.zeros(1)})
    assert model.input_names == ["data"]
    x = numbers(1, 1, 28, 28)
    assert_rounded(model(x), perceptron(params), x)
    np.testing.assert_array_equal(model(data=x), model(x))


def test_one_model_for_any_batch():
    module, params = mlp.get_workload()
    main = module["main"]
    data = relay.var("data", relay.TensorType((relay.AnyDim(), 1, 28, 28), "float32"))
    any_batch = Function([data, *main.params[1:]], bind(main.body, {main.params[0]: data}))
    model = relay.build(relay.IRModule.from_expr(any_batch), "llvm", params=params)
    for batch in (1, 2, 17):
        x = numbers(batch, 1, 28, 28, seed=batch)
        assert_rounded(model(x), perceptron(params), x)


def test_sizes_that_values_decide():
    x = relay.var("x", shape=(4, 5))
    where = relay.argwhere(x)
    values = relay.gather_nd(x, relay.transpose(where)) + relay.const(1.0)
    module = relay.IRModule.from_expr(relay.Function([x], relay.Tuple([where, relay.transpose(where), values])))
    model = relay.build(module, "llvm")
    for chance in (0.6, 1.0, 0.0):
        a = (np.random.default_rng(3).random((4, 5)) > chance).astype("float32")
        for found, expected in zip(model(a), relay.create_executor("debug", module).evaluate()(a), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_if():
    choose, x = relay.var("choose", shape=(), dtype="bool"), relay.var("x", shape=(3,))
    function = relay.Function([choose, x], relay.If(choose, relay.exp(x), relay.negative(x)))
    model = relay.build(relay.IRModule.from_expr(function), "llvm")
    assert_rounded(model(np.array(True), numbers(3)), np.exp, numbers(3))
    np.testing.assert_array_equal(model(np.array(False), numbers(3)), -numbers(3))


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_loop(turns):
    i, s = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(3,))
    limit = relay.var("limit", shape=(), dtype="int32")
    loop = relay.loops.while_loop(
        lambda i, s: i < limit, [i, s], lambda i, s: [i + relay.const(1), s + relay.cast(i, "float32")]
    )
    x = relay.var("x", shape=(3,))
    function = relay.Function([limit, x], loop(relay.const(0), x))
    found, expected = both(function, np.array(turns, "int32"), numbers(3))
    assert found[0] == expected[0] == turns
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_loop_whose_value_grows_is_interpreted():
    s = relay.var("s", relay.TensorType((relay.AnyDim(),), "float32"))
    loop = relay.loops.while_loop(
        lambda s: relay.less(relay.ndarray_size(s), relay.const(8)),
        [s],
        lambda s: [relay.concatenate([s, s], 0)],
    )
    x = relay.var("x", shape=(3,))
    module = relay.IRModule.from_expr(relay.Function([x], relay.TupleGetItem(loop(x), 0)))
    with pytest.raises(CannotCompile, match=r"known sizes|known before the model runs|changes its shape"):
        relay.build(module, "llvm")
    assert relay.create_executor("vm", module).evaluate()(numbers(3)).shape == (12,)


def test_memory_is_planned():
    x = relay.var("x", shape=(64, 64))
    value = x
    for _ in range(6):
        value = relay.nn.softmax(relay.nn.dense(value, relay.const(numbers(64, 64))))
    plan = relay.build(relay.IRModule.from_expr(relay.Function([x], value))).plan
    assert plan.peak <= 2 * 64 * 64 * 4
    assert "lower bound" in str(plan)


def test_a_model_for_another_machine():
    x = relay.var("x", shape=(1, 4, 8, 8))
    function = relay.Function([x], relay.nn.conv2d(x, relay.const(numbers(4, 4, 3, 3)), padding=(1, 1)))
    model = relay.build(relay.IRModule.from_expr(function), "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    assert "aarch64" in model.module.get_source("ll")


def test_saved_and_loaded(tmp_path):
    module, params = mlp.get_workload()
    model = relay.build(module, "llvm", params=params)
    path = tmp_path / "mlp.so"
    model.export_library(str(path))
    x, y = numbers(1, 1, 28, 28), np.zeros((1, 10), "float32")
    lw.load_module(str(path))["default"](x, y)
    np.testing.assert_array_equal(y, model(x))


def test_graph_json_names_every_launch():
    module, params = mlp.get_workload()
    model = relay.build(module, "llvm", params=params)
    graph = json.loads(model.get_graph_json())
    launches = [node for node in graph["nodes"] if node["op"] == "tvm_op" and node["attrs"]["func_name"] != "__nop"]
    assert len(launches) == len(model.program.launches())
    assert graph["heads"] == [[len(graph["nodes"]) - 1, 0, 0]]


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((numbers(3),), {}, None),
        ((numbers(4),), {}, r"input 'x' has shape \(4,\), expected \(3\): dimension 0 is 4, not 3"),
        ((numbers(3, 1),), {}, "has 2 dimensions"),
        ((np.zeros(3),), {}, "dtype float64, expected float32"),
        ((), {}, "input 'x' is not given"),
        ((), {"y": numbers(3)}, "has no input 'y'"),
        ((numbers(3), numbers(3)), {}, "2 inputs are given, and the model has 1"),
    ],
)
def test_wrong_inputs(args, named, message):
    x = relay.var("x", shape=(3,))
    model = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    if message is None:
        assert model(*args, **named).shape == (3,)
        return
    with pytest.raises(BadModelInput, match=message):
        model(*args, **named)


@pytest.mark.parametrize("given", ["model.onnx", lw.IRModule({}), 3])
def test_what_is_no_graph(given):
    with pytest.raises(NotAGraph, match="a graph function called main"):
        relay.build(given)


def test_graph_module():
    module, params = mlp.get_workload()
    model = graph_executor.GraphModule(relay.build(module, "llvm", params=params)["default"](lw.cpu()))
    x = numbers(1, 1, 28, 28)
    with pytest.raises(RuntimeError, match="input 'data' is not set"):
        model.run()
    with pytest.raises(RuntimeError, match="could not find 'nothing'"):
        model.set_input("nothing", x)
    model.set_input("data", x, unknown=x)
    model.run()
    assert model.get_num_inputs() == model.get_num_outputs() == 1
    assert model.get_input_index("data") == 0 and model.get_input_index("none") == -1
    assert model.get_input_info() == ({"data": (1, 1, 28, 28)}, {"data": "float32"})
    first = model.get_output(0).numpy()
    assert first.shape == (1, 10)
    into = np.zeros((1, 10), "float32")
    model.set_output_zero_copy(0, into)
    model.run(data=x)
    np.testing.assert_array_equal(into, first)
    assert model.benchmark(number=1, repeat=2).results


def test_sizes_may_be_variables_of_the_user():
    n = te.size_var("n")
    x, y = relay.var("x", relay.TensorType((n, 3))), relay.var("y", relay.TensorType((n, 3)))
    model = relay.build(relay.IRModule.from_expr(relay.Function([x, y], relay.sum(x * y, axis=1))))
    a, b = numbers(5, 3), numbers(5, 3, seed=1)
    assert_rounded(model(a, b), lambda a, b: (a * b).sum(axis=1), a, b)


def test_a_constant_without_elements():
    x = relay.var("x", shape=(2, 3))
    empty = relay.const(np.zeros((0,), "float32"))
    found, _ = both(relay.Function([x], relay.concatenate([relay.reshape(x, (6,)), empty], 0)), numbers(2, 3))
    np.testing.assert_array_equal(found, numbers(2, 3).reshape(6))


def test_several_results_whose_sizes_values_decide():
    x = relay.var("x", shape=(6,), dtype="int32")
    function = relay.Function([x], relay.unique(x).astuple())
    for found, expected in zip(*both(function, np.array([3, 1, 3, 2, 1, 1], "int32")), strict=True):
        assert found.dtype == expected.dtype


def test_sizes_that_no_dimension_is_by_itself():
    batch, sequence = te.size_var("batch"), te.size_var("sequence")
    x = relay.var("x", relay.TensorType((batch, sequence, 8), "float32"))
    rows = relay.reshape(relay.exp(x), (batch * sequence, 8))
    product = relay.nn.relu(relay.nn.dense(rows, relay.const(numbers(4, 8))))
    function = relay.Function([x], relay.reshape(product, (batch, sequence, 4)))
    model = relay.build(relay.IRModule.from_expr(function), "llvm")
    weight = numbers(4, 8).astype("float64").T
    for shape in ((2, 3, 8), (1, 7, 8)):
        assert_rounded(model(numbers(*shape)), lambda x: np.maximum(np.exp(x) @ weight, 0), numbers(*shape))


def test_a_constant_without_elements_before_another():
    x = relay.var("x", shape=(3,))
    empty, table = relay.const(np.zeros((0,), "float32")), relay.const(np.arange(12).reshape(2, 6), "int64")
    found, _ = both(relay.Function([x], relay.Tuple([relay.exp(x), empty, table])), numbers(3))
    np.testing.assert_array_equal(found[2], np.arange(12).reshape(2, 6))


def test_equal_operators_that_decide_sizes():
    x = relay.var("x", shape=(4, 5))
    zero = relay.const(0.0)
    function = relay.Function([x], relay.Tuple([relay.argwhere(x > zero), relay.argwhere(x < zero)]))
    for found, expected in zip(*both(function, numbers(4, 5) - np.float32(0.5)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_kernel_that_decides_sizes_is_called_with_others():
    n, m = te.size_var("n"), te.size_var("m")
    x, y = relay.var("x", shape=(n,)), relay.var("y", shape=(m,))
    found = [relay.argwhere(x), relay.argwhere(y), relay.argwhere(relay.reshape(x, (n, 1)))]
    model = relay.build(relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple(found))))
    results = model(np.ones(2, "float32"), np.ones(5, "float32"))
    assert [len(result) for result in results] == [2, 5, 2]


def test_sizes_that_values_decide_of_a_product_of_sizes():
    n, m = te.size_var("n"), te.size_var("m")
    x = relay.var("x", shape=(n, m))
    function = relay.Function([x], relay.argwhere(relay.reshape(x, (n * m,))))
    model = relay.build(relay.IRModule.from_expr(function))
    data = np.array([[0, 1, 0], [1, 1, 0]], "float32")
    assert np.array_equal(model(data), np.argwhere(data.reshape(-1)))


def test_a_value_without_elements():
    x = relay.var("x", shape=(0, 3))
    found, _ = both(relay.Function([x], relay.nn.softmax(relay.nn.dense(x, relay.const(numbers(4, 3))))), numbers(0, 3))
    assert found.shape == (0, 4)


def test_a_model_by_its_parts_converts_its_inputs():
    x = relay.var("x", shape=(3,))
    with pytest.warns(DeprecationWarning, match="one object"):
        graph, library, params = relay.build(relay.IRModule.from_expr(relay.Function([x], x + x)))
    model = graph_executor.create(graph, library, lw.cpu())
    model.set_input("x", lw.nd.array(np.arange(3, dtype="int32")))
    model.run(**params)
    assert model.get_output(0).numpy().tolist() == [0, 2, 4]


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_parameters_may_share_a_name(kind):
    first, second = relay.var("x", shape=(2,)), relay.var("x", shape=(3,))
    function = relay.Function([first, second], relay.concatenate([first, second], axis=0))
    result = relay.create_executor(kind, target="llvm").evaluate(function)(numbers(2), numbers(3, seed=1))
    assert (np.asarray(result) == np.concatenate([numbers(2), numbers(3, seed=1)])).all()
    built = relay.build(relay.IRModule.from_expr(function), "llvm")
    assert built.input_names == ["x", "x_1"]


def test_another_value_of_a_constant_is_refused():
    """The weights are compiled into the model: what would change them must not pass in silence."""
    from loopwright.contrib.graph_executor import GraphModule

    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x, w], x * w))
    lib = relay.build(mod, "llvm", params={"w": np.array([2, 3], "float32")})
    model = GraphModule(lib["default"](lw.cpu()))
    weights = lib.get_params()
    model.set_input(x=np.ones(2, "float32"), **weights)
    model.run()
    assert model.get_output(0).numpy().tolist() == [2, 3]
    with pytest.raises(BadModelInput, match="'p0' is a constant of the model, compiled into it"):
        model.set_input(p0=weights["p0"] * 0)
