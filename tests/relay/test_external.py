"""Parts of a graph that another compiler takes over: registered, called, linked, exported; and C sources as modules."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.contrib import graph_executor
from loopwright.relay.external import NoSuchCompiler
from loopwright.runtime import CSourceModuleCreate, get_global_func, load_module, register_func, remove_global_func
from loopwright.runtime.c_source import BadCSource

ROOTS = """
#include <math.h>
#include <tvm/runtime/c_runtime_api.h>
extern const float SYMBOL_scale[];
int32_t SYMBOL(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code) {
  DLTensor *x = args[0].v_handle, *y = args[1].v_handle;
  if (count != 2 || codes[0] != kTVMDLTensorHandle) return -1;
  for (int64_t k = 0; k < x->shape[0] * x->shape[1]; ++k)
    ((float*)y->data)[k] = SYMBOL_scale[0] * sqrtf(((float*)x->data)[k]);
  return 0;
}
"""


@pytest.fixture
def roots():
    """A compiler for square roots, which scales them by a constant of its own."""
    seen = []

    def compile_roots(function):
        symbol = function.attrs["global_symbol"]
        seen.append(symbol)
        return CSourceModuleCreate(ROOTS.replace("SYMBOL", symbol), "c", [symbol], [f"{symbol}_scale"])

    register_func("relay.ext.roots", compile_roots)
    register_func(
        "relay.ext.roots.constant_updater", lambda function, symbol: {f"{symbol}_scale": lw.nd.array(np.float32([2]))}
    )
    relay.op.get("sqrt").set_attr("target.roots", lambda call: True)
    yield seen
    relay.op.get("sqrt").reset_attr("target.roots")
    for name in ("relay.ext.roots", "relay.ext.roots.constant_updater"):
        remove_global_func(name)


def partitioned(body, *params):
    mod = relay.IRModule.from_expr(relay.Function(params, body))
    passes = [relay.transform.AnnotateTarget("roots"), relay.transform.PartitionGraph()]
    return lw.transform.Sequential(passes)(mod)


def test_a_users_compiler_makes_part_of_a_model(roots, tmp_path):
    x = relay.var("x", shape=(3, 4))
    mod = partitioned(relay.exp(relay.sqrt(x + relay.const(1.0))), x)
    lib = relay.build(mod, "llvm")
    given = np.random.rand(3, 4).astype("float32")
    wanted = np.exp(2 * np.sqrt(given + 1))
    symbol = "tvmgen_default_roots_main_0"
    assert roots == [symbol] and lib.get_params()[f"{symbol}_scale"] == 2
    np.testing.assert_allclose(lib(given), wanted, rtol=1e-5)
    assert [module.function_names for module in lib.lib.imported_modules] == [[symbol]]

    path = str(tmp_path / "model.so")
    lib.export_library(path, fcompile=False, options=["-O1"])
    loaded = load_module(path)
    model = graph_executor.GraphModule(loaded["default"](lw.cpu()))
    model.set_input("x", given)
    model.run()
    np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-5)
    assert model.get_num_outputs() == 1 and model.get_input_info()[1] == {"x": "float32"}

    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), lw.cpu())
    np.testing.assert_allclose(vm.run(given).numpy(), wanted, rtol=1e-5)


def test_what_is_wrong_with_a_compiler(roots):
    x = relay.var("x", shape=(3, 4))
    mod = partitioned(relay.sqrt(x), x)
    register_func("relay.ext.roots", lambda function: 3, override=True)
    with pytest.raises(NoSuchCompiler, match=r"relay.ext.roots gave int for tvmgen_default_roots_main_0"):
        relay.build(mod, "llvm")
    register_func("relay.ext.roots", lambda function: lw.runtime.Module({"other": print}), override=True)
    with pytest.raises(NoSuchCompiler, match="has no compiled function 'tvmgen_default_roots_main_0'; it has other"):
        relay.build(mod, "llvm")
    remove_global_func("relay.ext.roots")
    with pytest.raises(NoSuchCompiler, match=r"no compiler is registered as relay\.ext\.roots"):
        relay.build(mod, "llvm")
    register_func("relay.ext.roots", print)  # for the fixture


def test_a_compiler_may_return_what_build_makes():
    from loopwright.script import tir as T

    @T.prim_func
    def part_0(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(3)

    register_func("relay.ext.own_loops", lambda function: lw.build(part_0, target="llvm"))
    try:
        a, x = relay.var("a", shape=(4,)), relay.var("x", shape=(4,))
        attrs = {"Compiler": "own_loops", "global_symbol": "part_0", "Primitive": 1}
        mod = relay.IRModule({"part_0": relay.Function([a], a + a).with_attr(attrs)})
        mod["main"] = relay.Function([x], relay.Call(mod.get_global_var("part_0"), [x]))
        np.testing.assert_allclose(relay.build(mod, "llvm")(np.float32([1, 2, 3, 4])), [3, 6, 9, 12])
    finally:
        remove_global_func("relay.ext.own_loops")


def test_ccompiler_writes_sums_and_products():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    part = relay.Tuple([(x + y) * relay.const(np.float32([[2], [3]])), x - y])
    attrs = {"Compiler": "ccompiler", "global_symbol": "part_1", "Primitive": 1}
    mod = relay.IRModule({"part_1": relay.Function([x, y], part).with_attr(attrs)})
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(3,))
    mod["main"] = relay.Function([a, b], relay.Call(mod.get_global_var("part_1"), [a, b]))
    given = np.random.rand(2, 3).astype("float32"), np.random.rand(3).astype("float32")
    product, difference = relay.build(mod, "llvm")(*given)
    np.testing.assert_allclose(product, (given[0] + given[1]) * np.float32([[2], [3]]))
    np.testing.assert_allclose(difference, given[0] - given[1])
    mod["part_1"] = relay.Function([x, y], relay.exp(x)).with_attr(attrs)
    mod["main"] = relay.Function([a, b], relay.Call(mod.get_global_var("part_1"), [a, b]))
    with pytest.raises(relay.errors.CannotCompile, match="ccompiler computes add, subtract, multiply, and not exp"):
        relay.build(mod, "llvm")


def test_functions_are_named_by_the_first_mark():
    def marked(value):
        return relay.annotation.compiler_begin(value, "a-b")

    x = relay.var("x", shape=(2,))
    first = relay.annotation.compiler_end(relay.add(marked(x), marked(x)), "a-b")
    second = relay.annotation.compiler_end(relay.exp(marked(first)), "a-b")
    mod = relay.IRModule({"other": relay.Function([x], second)})
    names = [var.name for var in relay.transform.PartitionGraph()(mod).get_global_vars()]
    assert sorted(names) == ["other", "tvmgen_default_a_b_other_0", "tvmgen_default_a_b_other_2"]


def test_several_results_are_flat_and_unique():
    def begin(value):
        return relay.annotation.compiler_begin(value, "c")

    def end(value):
        return relay.annotation.compiler_end(value, "c")

    x = relay.var("x", shape=(4,))
    halves = relay.split(begin(x), 2).astuple()
    root = relay.sqrt(relay.TupleGetItem(halves, 0))
    out = relay.Tuple([relay.concatenate(end(halves), 0), relay.exp(end(root)), relay.log(end(root))])
    mod = relay.transform.PartitionGraph()(relay.IRModule.from_expr(relay.Function([x], out)))
    part = mod["tvmgen_default_c_main_0"]
    assert len(part.body.fields) == 3
    assert relay.analysis.well_formed(mod["main"])


def test_tuples_of_constants_are_inside():
    def begin(value):
        return relay.annotation.compiler_begin(value, "c")

    x = relay.var("x", shape=(2,))
    ones = relay.Tuple([relay.const(np.float32([1, 1])), relay.const(np.float32([2, 2]))])
    joined = relay.annotation.compiler_end(relay.concatenate(begin(ones), 0), "c")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.concatenate([x, joined], 0)))
    part = relay.transform.PartitionGraph()(mod)["tvmgen_default_c_main_0"]
    assert not part.params and isinstance(part.body.args[0], relay.Tuple)


def test_passes_of_a_compiler_run_over_its_functions():
    register_func("relay.ext.folds.optimize", lambda mod: relay.transform.FoldConstant()(mod))
    try:
        one = relay.annotation.compiler_begin(relay.const(np.float32([1, 2])), "folds")
        x = relay.var("x", shape=(2,))
        body = relay.annotation.compiler_end(relay.add(one, one), "folds") * x
        mod = relay.transform.PartitionGraph()(relay.IRModule.from_expr(relay.Function([x], body)))
        part = mod["tvmgen_default_folds_main_0"]
        assert part.body.data.numpy().tolist() == [2, 4] and part.attrs["Compiler"] == "folds"
    finally:
        remove_global_func("relay.ext.folds.optimize")


def test_c_sources_run_and_report():
    code = '#include <tvm/runtime/packed_func.h>\nint count(DLTensor* x, int more) { return x->ndim + more; }\n'
    module = CSourceModuleCreate(code + "TVM_DLL_EXPORT_TYPED_FUNC(counted, count);", "cc", ["counted"])
    assert module["counted"](lw.nd.empty((2, 3)), 5) == 7
    with pytest.raises(RuntimeError, match="counted, a function of a C source, reported a failure"):
        module["counted"](1, 2, 3)
    made = CSourceModuleCreate("int f;", "c", ["f"], ["weights"])
    assert made.get_const_vars() == ["weights"]
    with pytest.raises(BadCSource, match="the constant 'weights' of a C source has no value"):
        made["f"]()
    register_func("tests.make_source", lambda: made)
    assert get_global_func("tests.make_source")() is made
    remove_global_func("tests.make_source")
