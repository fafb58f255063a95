"""Softmax of rows: maxima and sums across threads, in one kernel; and what needs no schedule at all."""

import numpy as np
import tvm
from tvm import te
from tvm.testing import assert_allclose

rows, columns, threads = 6, 70, 32
A = te.placeholder((rows, columns), name="A")
k = te.reduce_axis((0, columns), "k")
largest = te.compute((rows,), lambda i: te.max(A[i, k], axis=k), name="largest")
powers = te.compute((rows, columns), lambda i, j: te.exp(A[i, j] - largest[i]), name="powers")
k2 = te.reduce_axis((0, columns), "k2")
total = te.compute((rows,), lambda i: te.sum(powers[i, k2], axis=k2), name="total")
B = te.compute((rows, columns), lambda i, j: powers[i, j] / total[i], name="B")

s = te.create_schedule(B.op)
thread_x = te.thread_axis((0, threads), "threadIdx.x")
row = s[B].op.axis[0]
_, column = s[B].split(s[B].op.axis[1], factor=threads)
s[B].bind(row, te.thread_axis("blockIdx.x"))
s[B].bind(column, thread_x)
for stage in (total, powers, largest):
    s[stage].set_scope("shared")
    s[stage].compute_at(s[B], row)
    axis = s[stage].op.reduce_axis[0] if s[stage].op.reduce_axis else s[stage].op.axis[1]
    _, inner = s[stage].split(axis, factor=threads)
    s[stage].bind(inner, thread_x)

dev = tvm.cuda(0)
a = np.random.uniform(-3, 3, (rows, columns)).astype("float32")
exact = np.exp(a.astype("float64"))
exact /= exact.sum(1, keepdims=True)
for func in (tvm.build(s, [A, B], "cuda"), tvm.build(te.create_prim_func([A, B]), "cuda")):
    b = tvm.nd.array(np.zeros((rows, columns), "float32"), dev)
    func(tvm.nd.array(a, dev), b)
    assert_allclose(b.numpy(), exact, rtol=1e-5)
print("ok")
