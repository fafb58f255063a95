"""Describe computations element by element, schedule them, build them, run them."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

target = tvm.target.Target(target="llvm", host="llvm")
dev = tvm.device(target.kind.name, 0)


def vector_add():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    assert isinstance(C.op, te.ComputeOp)
    assert [axis.var.name for axis in C.op.axis] == ["i"]

    sch = tvm.tir.Schedule(te.create_prim_func([A, B, C]))
    (i,) = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, factors=[None, 16])
    sch.parallel(outer)
    sch.vectorize(inner)
    assert "T.parallel" in sch.mod.script() and "T.vectorized(16)" in sch.mod.script()

    fadd = tvm.build(sch.mod, target=target, name="vector_add")
    for size in (1, 15, 16, 17, 1024):
        a = tvm.nd.array(np.random.uniform(size=size).astype(A.dtype), dev)
        b = tvm.nd.array(np.random.uniform(size=size).astype(B.dtype), dev)
        c = tvm.nd.array(np.zeros(size, dtype=C.dtype), dev)
        fadd(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


def matrix_product():
    M, N, K = 65, 48, 33
    k = te.reduce_axis((0, K), name="k")
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.compute((M, N), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")

    mod = tvm.IRModule({"main": te.create_prim_func([A, B, C])})
    sch = tvm.tir.Schedule(mod)
    block = sch.get_block("C", func_name="main")
    x, y, kk = sch.get_loops(block)
    xo, xi = sch.split(x, factors=[None, 8])
    yo, yi = sch.split(y, factors=[None, 16])
    ko, ki = sch.split(kk, factors=[None, 4])
    sch.reorder(xo, yo, ko, xi, ki, yi)
    sch.vectorize(yi)
    sch.parallel(xo)

    func = tvm.build(sch.mod, target="llvm")
    a = np.random.rand(M, K).astype("float32")
    b = np.random.rand(K, N).astype("float32")
    c = tvm.nd.empty((M, N), "float32", dev)
    func(tvm.nd.array(a, dev), tvm.nd.array(b, dev), c)
    tvm.testing.assert_allclose(c.numpy(), a.astype("float64") @ b, rtol=K * 2**-23)


def several_outputs_and_stages():
    m, n = 5, 7
    X = te.placeholder((m, n), name="X", dtype="float32")
    bias = te.placeholder((n,), name="bias", dtype="float32")
    shifted = te.compute((m, n), lambda i, j: X[i, j] + bias[j], name="shifted")
    both = te.compute(
        (m, n), lambda i, j: (te.max(shifted[i, j], 0.0), te.if_then_else(shifted[i, j] > 0, 1, 0)), name="both"
    )
    func = tvm.build(te.create_prim_func([X, bias, both[0], both[1]]), target="llvm")
    x = np.random.randn(m, n).astype("float32")
    shift = np.random.randn(n).astype("float32")
    relu = tvm.nd.array(np.zeros((m, n), "float32"))
    mask = tvm.nd.array(np.zeros((m, n), "int32"))
    func(tvm.nd.array(x), tvm.nd.array(shift), relu, mask)
    np.testing.assert_array_equal(relu.numpy(), np.maximum(x + shift, 0))
    np.testing.assert_array_equal(mask.numpy(), (x + shift > 0).astype("int32"))


if __name__ == "__main__":
    np.random.seed(0)
    vector_add()
    matrix_product()
    several_outputs_and_stages()
    print("ok")
