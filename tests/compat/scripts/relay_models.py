"""A small network as a graph: built, looked at, rewritten, compiled, run by a graph executor, saved and loaded."""

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor, utils
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.testing import run_infer_type


def network():
    data = relay.var("data", shape=(1, 3, 8, 8), dtype="float32")
    weight = relay.var("weight")
    conv = relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=8, padding=(1, 1))
    names = ["gamma", "beta", "moving_mean", "moving_var"]
    normal = relay.nn.batch_norm(conv, *[relay.var(name) for name in names])[0]
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.nn.relu(normal)))
    scores = relay.nn.softmax(relay.nn.dense(pooled, relay.var("fc"), units=4))
    return relay.Function(relay.analysis.free_vars(scores), scores)


def parameters(mod):
    rng = np.random.default_rng(0)
    params = {}
    for param in mod["main"].params[1:]:
        shape = [int(size) for size in param.checked_type.shape]
        params[param.name_hint] = tvm.nd.array(np.abs(rng.standard_normal(shape)).astype("float32"))
    return params


mod = relay.transform.InferType()(tvm.IRModule.from_expr(network()))
params = parameters(mod)
assert [str(size) for size in mod["main"].checked_type.ret_type.shape] == ["1", "4"]
tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod)

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)

dev = tvm.cpu(0)
module = graph_executor.GraphModule(lib["default"](dev))
data = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32")
module.set_input("data", data)
module.run()
out = module.get_output(0, tvm.nd.empty((1, 4))).numpy()
reference = relay.create_executor("debug", mod, dev, "llvm", params).evaluate()(data)
tvm.testing.assert_allclose(out, np.asarray(reference), rtol=1e-5)
assert module.benchmark(dev, number=1, repeat=2).mean > 0

# Saved, and loaded without the graph.
folder = utils.tempdir()
lib.export_library(folder.relpath("network.so"))
loaded = tvm.runtime.load_module(folder.relpath("network.so"))
again = np.zeros((1, 4), "float32")
loaded["default"](data, again)
tvm.testing.assert_allclose(again, out, rtol=0)

stored = relay.save_param_dict(params)
assert sorted(relay.load_param_dict(stored)) == sorted(params)


# A pass by visitor, and one by pattern: both leave the same graph.
class Swish(ExprMutator):
    def visit_call(self, call):
        new = super().visit_call(call)
        if new.op == relay.op.get("nn.relu"):
            return new.args[0] * relay.sigmoid(new.args[0])
        return new


class SwishByPattern(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre, post, node_map):
        x = node_map[self.x][0]
        return x * relay.sigmoid(x)


@relay.transform.function_pass(opt_level=0)
def swish(func, mod, ctx):
    return Swish().visit(func)


one = run_infer_type(swish(mod)["main"])
other = run_infer_type(rewrite(SwishByPattern(), mod["main"]))
tvm.ir.assert_structural_equal(one, other)
assert relay.analysis.list_op_freqs(swish(mod))["sigmoid"] == 1
print("ok")
