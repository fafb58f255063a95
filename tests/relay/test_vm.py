"""relay.vm, relay.backend and the names of executors; sizes that must be equal."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.contrib import graph_executor
from loopwright.contrib.graph_executor import AotModule
from loopwright.model.errors import BadModelInput
from loopwright.relay.backend import Executor, Runtime, UnknownOption
from loopwright.relay.errors import CannotCompile
from loopwright.relay.vm import NotAnExecutable
from tests.relay.rounding_check import assert_rounded

ONES = np.ones((3, 4), "float32")


@pytest.fixture(scope="module")
def executable():
    x, w = relay.var("x", shape=(relay.AnyDim(), 4)), relay.var("w", shape=(3, 4))
    body = relay.Tuple([relay.nn.dense(x, w), relay.exp(x)])
    return relay.vm.compile(relay.IRModule.from_expr(relay.Function([x, w], body)), "llvm", params={"w": ONES})


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_vm_runs_any_number_of_rows(executable, rows):
    x = np.random.default_rng(rows).random((rows, 4), "float32")
    vm = relay.vm.VirtualMachine(executable, lw.cpu())
    product, exp = vm.run(x)
    assert_rounded(product.numpy(), lambda x: x @ ONES.T, x)
    assert_rounded(exp.numpy(), np.exp, x)
    vm.set_one_input("main", "x", x)
    np.testing.assert_array_equal(vm.run()[0].numpy(), product.numpy())
    vm.invoke_stateful("main", x=x)
    np.testing.assert_array_equal(vm.get_outputs()[1].numpy(), exp.numpy())
    into = [np.empty((rows, 3), "float32"), np.empty((rows, 4), "float32")]
    vm.invoke_with_outputs("main", [x], into)
    np.testing.assert_array_equal(into[0], product.numpy())


def test_a_saved_executable_is_read_back(executable):
    code, lib = executable.save()
    again = relay.vm.Executable.load_exec(code, lib)
    x = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(relay.vm.VirtualMachine(again).run(x)[0].numpy(), [[4] * 3] * 2)
    assert again.get_function_params("main") == ["x"] and "one native function" in again.stats
    for bad in (b"", b"some bytes that are no model", bytes(code[:-1]), bytes(code) + b"x"):
        with pytest.raises(NotAnExecutable, match=r"these bytes are no model|the model has .* bytes"):
            relay.vm.Executable.load_exec(bad)
    damaged = bytearray(code)
    damaged[code.index(b"{")] = 0
    with pytest.raises(NotAnExecutable, match="the head of the model is damaged"):
        relay.vm.Executable.load_exec(damaged)


def test_wrong_inputs_of_a_vm(executable):
    vm = relay.vm.VirtualMachine(executable)
    assert (vm.get_input_index("x"), vm.get_input_index("w")) == (0, -1)
    with pytest.raises(BadModelInput, match="input 'x' of main is not given"):
        vm.run()
    with pytest.raises(BadModelInput, match="main has no input 'y'"):
        vm.run(y=ONES)
    with pytest.raises(BadModelInput, match="2 inputs are given, and main has 1: x"):
        vm.set_input("main", ONES, ONES)
    with pytest.raises(KeyError, match="there is no function 'other'"):
        vm.invoke("other", ONES)
    with pytest.raises(ValueError, match="memory_cfg is 'large'; there are naive, pooled"):
        relay.vm.VirtualMachine(executable, memory_cfg="large")


def test_a_model_that_is_no_library_says_so(tmp_path):
    x, times = relay.var("x", shape=(2,)), relay.var("times", shape=(1,), dtype="int64")
    exe = relay.vm.compile(relay.Function([x, times], relay.tile(x, times)), "llvm")
    np.testing.assert_array_equal(
        relay.vm.VirtualMachine(exe).run(np.ones(2, "float32"), np.array([3])).numpy(), np.ones(6)
    )
    with pytest.raises(CannotCompile, match=r"cannot be written as one library: .* Tensor\[\(\?\), float32\]"):
        exe.export_library(str(tmp_path / "model.so"))
    assert list(tmp_path.iterdir()) == []


def test_executors_and_runtimes_are_checked():
    aot = Executor("aot", {"link-params": True, "interface-api": "c"})
    assert aot["link-params"] is True and aot["unpacked-api"] is None and aot == Executor("aot", dict(aot.attrs))
    assert Executor.list_registered() == ["graph", "aot", "vm"]
    assert Runtime.list_registered_options("crt") == {"system-lib": "IntImm"}
    for make, words in [
        (lambda: Executor("interpreter"), 'Executor "interpreter" is not defined'),
        (lambda: Executor("graph", {"link_params": True}), 'Attribute "link_params" is not available on this Executor'),
        (lambda: Executor("aot", {"unpacked-api": "yes"}), 'should have type "IntImm" but instead found'),
        (lambda: Executor("aot", {"interface-api": "rust"}), "is 'rust'"),
        (lambda: Runtime("java"), 'Runtime "java" is not defined'),
    ]:
        with pytest.raises(UnknownOption, match=words):
            make()


def test_build_takes_an_executor_and_results_have_numpy():
    x = relay.var("x", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    lib = relay.build(mod, "llvm", executor=Executor("aot"), runtime=Runtime("cpp"))
    model = AotModule(lib["default"](lw.cpu()))
    model.set_input("x", np.zeros(3, "float32"))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.ones(3))
    assert str(lib.executor) == "aot"
    with pytest.raises(TypeError, match=r"executor is relay.backend.Executor"):
        relay.build(mod, "llvm", executor=3)
    result = relay.create_executor("debug", mod).evaluate()(np.zeros(3, "float32"))
    assert type(result.numpy()) is np.ndarray and result.asnumpy().tolist() == [1, 1, 1]


def test_unknown_sizes_that_must_be_equal_are_one():
    def matrix(name):
        return relay.var(name, shape=(relay.AnyDim(), relay.AnyDim()))

    x, y = matrix("x"), matrix("y")
    product = relay.IRModule.from_expr(relay.Function([x, y], relay.nn.matmul(x, y)))
    assert [str(p.type_annotation) for p in relay.optimize(product, "llvm")[0]["main"].params] == [
        "Tensor[(x_0, x_1), float32]",
        "Tensor[(x_1, y_1), float32]",
    ]
    rows = relay.build(relay.IRModule.from_expr(relay.Function([x, y], relay.concatenate([x, y], 0))), "llvm")
    a, b = np.zeros((5, 7), "float32"), np.ones((2, 7), "float32")
    np.testing.assert_array_equal(rows(a, b), np.concatenate([a, b]))
    with pytest.raises(lw.runtime.CallError, match=r"argument y has shape \(2, 6\), expected \(2, 7\)"):
        rows(a, b[:, 1:])
    x = matrix("x")
    layer = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(ONES)))), "llvm")
    assert layer(np.ones((2, 4), "float32")).shape == (2, 3)
    with pytest.raises(BadModelInput, match="dimension 1 is 3, not 4"):
        layer(np.ones((2, 3), "float32"))


def test_results_count_as_tensors():
    x = relay.var("x", shape=(2,))
    main = relay.IRModule.from_expr(relay.Function([x], x + x))
    result = relay.create_executor("vm", main).evaluate()(np.ones(2, "float32"))
    assert isinstance(result, lw.nd.NDArray) and result.numpy().tolist() == [2, 2]
    assert not isinstance(np.ones(2), lw.nd.NDArray)
    assert type(lw.nd.array(result)) is lw.nd.NDArray


def test_a_virtual_machine_runs_a_library(tmp_path):
    x = relay.var("x", shape=(relay.Any(), 3))
    exe = relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.exp(x), x]))), "llvm")
    path = exe.mod.export_library(str(tmp_path / "model.so"))
    for machine in (relay.vm.VirtualMachine(exe.mod), relay.vm.VirtualMachine(lw.runtime.load_module(path), lw.cpu())):
        machine.set_input("main", x=np.zeros((2, 3), "float32"))
        outputs = machine.run()
        assert isinstance(outputs, lw.runtime.ADT) and outputs[0].numpy().tolist() == [[1] * 3] * 2
    assert lw.runtime.load_module(path).get_function("list_module_names")() == ["default"]


def test_older_names_build_the_same_model():
    from loopwright.relay.backend import build_steps, executor_factory

    x, w = relay.var("x", shape=(3,)), relay.var("w", shape=(3,))
    builder = build_steps.BuildModule()
    builder.set_params({"w": np.ones(3, "float32")})
    graph, library, params = builder.build(relay.IRModule.from_expr(relay.Function([x, w], x + w)), "llvm")
    model = graph_executor.create(graph, library, lw.cpu())
    model.run(x=np.zeros(3, "float32"), **params)
    assert model.get_output(0).numpy().tolist() == [1, 1, 1]
    assert isinstance(library.built, executor_factory.GraphExecutorFactoryModule)


def test_te_compiler_lowers_once():
    compiler = relay.backend.te_compiler.get()
    x = relay.var("x", shape=(4,))
    lowered = compiler.lower(relay.Function([x], x + x), "llvm")
    assert lowered.same_as(compiler.lower(relay.Function([x], x + x), "llvm"))
    out = lw.nd.empty((4,))
    compiler.jit(relay.Function([x], x + x), "llvm")(lw.nd.array(np.ones(4, "float32")), out)
    assert out.numpy().tolist() == [2] * 4
    compiler.clear()


def test_functions_of_the_module_that_call_themselves_are_interpreted():
    fib, n, x = relay.GlobalVar("fib"), relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(), dtype="int32")
    one, two = relay.const(1, "int32"), relay.const(2, "int32")
    mod = lw.IRModule()
    body = relay.If(relay.less(n, two), n, fib(n - one) + fib(n - two))
    mod[fib] = relay.Function([n], body, relay.scalar_type("int32"))
    mod["main"] = relay.Function([x], fib(x))
    assert int(relay.create_executor("vm", mod).evaluate()(np.array(7, "int32")).numpy()) == 13
    with pytest.raises(CannotCompile, match="a function that calls itself \\(@fib → @fib\\)"):
        relay.build(mod, "llvm")


def test_the_functions_of_a_vm_by_name(executable):
    x = np.full((2, 4), 0.5, "float32")
    vm = relay.vm.VirtualMachine(executable, lw.cpu())
    vm.module["set_input"]("main", x)
    assert len(vm.module.time_evaluator("invoke", lw.cpu(), number=1)("main").results) == 1
    vm.module["invoke_stateful"]("main")
    assert vm.module["get_num_outputs"]() == 2
    np.testing.assert_array_equal(vm.module["get_output"](0).numpy(), vm.module["invoke"]("main")[0].numpy())
    with pytest.raises(BadModelInput, match=r"input 'x' has shape \(2, 3\), expected .* dimension 1 is 3, not 4"):
        vm.set_input("main", x[:, :3])
