"""A pass of one's own: find loops, vectorize them, and hook the pass into lowering."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, tir
from tvm.ir import instrument

n = 128
a = te.placeholder((n,), name="a")
b = te.placeholder((n,), name="b")
c = te.compute((n,), lambda i: a[i] + b[i], name="c")
func = te.create_prim_func([a, b, c])

found = []


def find_width8(op):
    """Remember every loop whose extent is a multiple of 8."""
    if isinstance(op, tir.For) and isinstance(op.extent, tir.IntImm) and op.extent.value % 8 == 0:
        found.append(op)


def vectorize8(op):
    """Split such a loop by 8, and vectorize the inner part."""
    if not any(op is loop or op.loop_var.same_as(loop.loop_var) for loop in found):
        return None
    extent, name = op.extent.value, op.loop_var.name
    outer, inner = te.var(name + ".outer"), te.var(name + ".inner")
    body = tir.stmt_functor.substitute(op.body, {op.loop_var: outer * 8 + inner})
    body = tir.For(inner, 0, 8, tir.ForKind.VECTORIZED, body)
    return tir.For(outer, 0, extent // 8, tir.ForKind.SERIAL, body)


@tvm.tir.transform.prim_func_pass(opt_level=0)
def vectorize(f, mod, ctx):
    found.clear()
    tir.stmt_functor.post_order_visit(f.body, find_width8)
    return f.with_body(tir.stmt_functor.ir_transform(f.body, None, vectorize8, ["tir.For"]))


def run(module):
    x, y = np.random.rand(n).astype("float32"), np.random.rand(n).astype("float32")
    z = tvm.nd.array(np.zeros(n, "float32"))
    module(tvm.nd.array(x), tvm.nd.array(y), z)
    np.testing.assert_array_equal(z.numpy(), x + y)


def on_its_own():
    @tvm.script.ir_module
    class Module:
        @tvm.script.tir.prim_func
        def main(A: tvm.script.tir.Buffer((128,), "float32"), B: tvm.script.tir.Buffer((128,), "float32")):
            for i in range(128):
                B[i] = A[i] * tvm.script.tir.float32(2)

    after = vectorize(Module)
    assert "T.vectorized(8)" in after.script() and "range(16)" in after.script()
    assert vectorize.info.name == "vectorize"
    x = np.random.rand(n).astype("float32")
    y = tvm.nd.array(np.zeros(n, "float32"))
    tvm.build(after, target="llvm")(tvm.nd.array(x), y)
    np.testing.assert_array_equal(y.numpy(), x * 2)


def inside_lowering():
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        lowered = tvm.lower(func)
        built = tvm.build(func, target="llvm")
    assert found, "the pass did not run"
    assert "a_1[i" in str(lowered) or "a[i" in str(lowered), str(lowered)
    run(built)


def watched():
    seen = []

    @instrument.pass_instrument
    class Watch:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    @tvm.transform.module_pass(opt_level=1, name="count_functions")
    def count_functions(mod, ctx):
        assert len(mod.functions) == 1
        return mod

    with tvm.transform.PassContext(opt_level=3, instruments=[Watch()]):
        tvm.transform.Sequential([count_functions, vectorize])(tvm.IRModule({"main": func}))
    assert [name for name in seen if name in ("count_functions", "vectorize")] == ["count_functions", "vectorize"]


if __name__ == "__main__":
    np.random.seed(5)
    on_its_own()
    inside_lowering()
    watched()
    print("ok")
