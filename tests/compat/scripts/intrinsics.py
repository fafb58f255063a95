"""Mathematical functions: the built-in ones, those of the C library, and one's own with a rule for lowering it."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.ir import register_intrin_lowering, register_op_attr

n = te.var("n")
A = te.placeholder((n,), name="A")
x = np.linspace(0.1, 4, 101).astype("float32")


def applied(fcompute):
    B = te.compute(A.shape, fcompute, name="B")
    func = tvm.build(te.create_prim_func([A, B]), target="llvm")
    b = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), b)
    return b.numpy()


def built_in():
    exact = x.astype("float64")
    for ours, theirs in [
        (te.exp, np.exp),
        (te.log, np.log),
        (te.sqrt, np.sqrt),
        (te.tanh, np.tanh),
        (te.sin, np.sin),
        (te.floor, np.floor),
        (tvm.tir.sigmoid, lambda v: 1 / (1 + np.exp(-v))),
    ]:
        got = applied(lambda i: ours(A[i]))  # noqa: B023, called at once
        tvm.testing.assert_allclose(got, theirs(exact), rtol=1e-6, atol=1e-6)
    tvm.testing.assert_allclose(applied(lambda i: te.power(A[i], 2.5)), exact**2.5, rtol=1e-6)


def from_the_c_library():
    got = applied(lambda i: tvm.tir.call_pure_extern("float32", "expf", A[i]))
    tvm.testing.assert_allclose(got, np.exp(x.astype("float64")), rtol=1e-6)


def ones_own():
    def mylog(value):
        """A function that no target knows."""
        return tvm.tir.call_intrin(value.dtype, "tir.mylog", value)

    def my_log_rule(op):
        """What it means on a CPU: the C library's, by the type of its argument."""
        if op.dtype == "float32":
            return tvm.tir.call_pure_extern("float32", "logf", op.args[0])
        if op.dtype == "float64":
            return tvm.tir.call_pure_extern("float64", "log", op.args[0])
        return op

    register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    register_intrin_lowering("tir.mylog", target="llvm", f=my_log_rule, level=99)
    assert tvm.ir.Op.get("tir.mylog").name == "tir.mylog"
    tvm.testing.assert_allclose(applied(lambda i: mylog(A[i])), np.log(x.astype("float64")), rtol=1e-6, atol=1e-7)


def a_rule_for_a_function_there_is():
    def rough_exp(op):
        """exp by its series: 1 + x + x²/2, so that one sees which rule was taken."""
        value = op.args[0]
        return 1.0 + value + value * value * 0.5

    register_intrin_lowering("tir.exp", target="llvm", f=rough_exp, level=99)
    try:
        tvm.testing.assert_allclose(applied(lambda i: te.exp(A[i])), 1 + x + x * x * 0.5, rtol=1e-6)
    finally:
        register_intrin_lowering("tir.exp", target="llvm", f=lambda op: None, level=100)
    tvm.testing.assert_allclose(applied(lambda i: te.exp(A[i])), np.exp(x.astype("float64")), rtol=1e-6)


if __name__ == "__main__":
    built_in()
    from_the_c_library()
    ones_own()
    a_rule_for_a_function_there_is()
    print("ok")
