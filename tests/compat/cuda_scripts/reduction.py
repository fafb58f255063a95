"""Sums of rows on a GPU: rfactor and threads that join their parts, a mean over two axes, maxima across threads."""

import numpy as np
import tvm
from tvm import te
from tvm.testing import assert_allclose


def sums_of_rows():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")

    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    shown = str(tvm.lower(s, [A, B], simple_mode=True))
    assert 'T.launch_thread("threadIdx.x", 16)' in shown and "tvm_thread_allreduce" in shown

    fcuda = tvm.build(s, [A, B], "cuda")
    assert "__global__" in fcuda.imported_modules[0].get_source()
    dev = tvm.cuda(0)
    a = tvm.nd.array(np.random.uniform(size=(45, 128)).astype(A.dtype), dev)
    b = tvm.nd.array(np.zeros(45, dtype=B.dtype), dev)
    fcuda(a, b)
    assert_allclose(b.numpy(), np.sum(a.numpy(), axis=1), rtol=1e-4)


def mean_over_two_axes():
    A = te.placeholder((9, 12, 20), name="A")
    y, x = te.reduce_axis((0, 12), "y"), te.reduce_axis((0, 20), "x")
    S = te.compute((9,), lambda c: te.sum(A[c, y, x], axis=[y, x]), name="S")
    M = te.compute((9,), lambda c: S[c] / 240.0, name="M")
    s = te.create_schedule(M.op)
    fused = s[S].fuse(*s[S].op.reduce_axis)
    _, inner = s[S].split(fused, factor=32)
    s[S].bind(inner, te.thread_axis("threadIdx.x"))
    s[M].bind(s[M].op.axis[0], te.thread_axis("blockIdx.x"))
    s[S].compute_at(s[M], s[M].op.axis[0])
    f = tvm.build(s, [A, M], "cuda")
    a = np.random.uniform(size=(9, 12, 20)).astype("float32")
    m = tvm.nd.empty((9,), "float32", tvm.cuda(0))
    f(tvm.nd.array(a, tvm.cuda(0)), m)
    assert_allclose(m.numpy(), a.mean((1, 2)), rtol=1e-5)


def maxima_across_threads():
    A = te.placeholder((7, 100), name="A")
    k = te.reduce_axis((0, 100), "k")
    B = te.compute((7,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(s[B].op.reduce_axis[0], factor=32)
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    f = tvm.build(s, [A, B], tvm.target.Target("cuda"))
    a = np.random.uniform(-1, 1, (7, 100)).astype("float32")
    b = tvm.nd.empty((7,), "float32", tvm.cuda(0))
    f(tvm.nd.array(a, tvm.cuda(0)), b)
    assert_allclose(b.numpy(), a.max(1), rtol=0)


if __name__ == "__main__":
    sums_of_rows()
    mean_over_two_axes()
    maxima_across_threads()
    print("ok")
